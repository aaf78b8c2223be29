"""WeightProgramBench as a plugin of verifiers (API v1): ``--env.taskset.id weight-program-bench``."""

from __future__ import annotations

import verifiers.v1 as vf

from weightgym.envs.registry import TaskSource
from weightgym.envs.weight_program.references import reference_answer
from weightgym.envs.weight_program.tasks import WeightProgramTasks
from weightgym.rewards.contracts import TaskError
from weightgym.rollouts.hub import HubTask, HubTaskset, HubTasksetConfig, InProcessHarness, ToolLoop

__all__ = ["InProcessHarness", "ToolLoop", "WeightProgramBench"]


class WeightProgramTask(HubTask):
    """One game."""

    def gold(self) -> str | None:
        """The stored answer of a game that comes with the package."""
        source, _, game = self.data.task.partition("/")
        try:
            return reference_answer(game) if source in ("builtin", "original") else None
        except TaskError:
            return None


class WeightProgramBenchConfig(HubTasksetConfig):
    """Which games, and how they are scored."""

    profile: str = "wpb-v1"
    """``wpb-v1`` (1,000 episodes), or ``wpb-v1-eN`` (the first N of them)."""
    variants: bool = False
    """Train on variants of the built-in games too."""


class WeightProgramBench(HubTaskset, vf.Taskset[WeightProgramTask, WeightProgramBenchConfig]):
    """Small games; the answer is the weights of a network that plays one."""

    env = "weight-program"

    def source(self, profile: str) -> TaskSource:
        """The games, with their variants if they are wanted."""
        return WeightProgramTasks(with_variants=self.config.variants)

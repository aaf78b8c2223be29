"""Golf as a plugin of verifiers (API v1): ``--env.taskset.id parameter-golf``."""

from __future__ import annotations

import verifiers.v1 as vf
from pydantic import Field

from weightgym.envs import registry
from weightgym.envs.golf.references import reference_answer
from weightgym.rewards.contracts import Completion
from weightgym.rollouts.hub import HubTask, HubTaskset, HubTasksetConfig, InProcessHarness, ToolLoop

__all__ = ["InProcessHarness", "ParameterGolf", "ToolLoop"]


class ParameterGolfTask(HubTask):
    """One invented language."""

    def gold(self) -> Completion:
        """The plain reference solution."""
        answer = reference_answer("baseline")
        return [{"role": "assistant", "content": answer}] if self.entry.max_turns > 1 else answer


class ParameterGolfConfig(HubTasksetConfig):
    """Which languages, how often the model may try, and how its solutions are evaluated."""

    profile: str = "golf-cpu-v1"
    """``golf-cpu-v1``, ``golf-full-v1``, ``golf-modal-h100x8`` or ``golf-smoke-v1``."""
    several_attempts: bool = False
    """Up to four attempts, with the evaluator's report after each; the best one's reward."""
    score_timeout: float = Field(6 * 3600.0, gt=0)
    """Wall seconds that the score of one answer may take: more than an evaluation's own limits on a busy machine."""


class ParameterGolf(HubTaskset, vf.Taskset[ParameterGolfTask, ParameterGolfConfig]):
    """Languages; the answer is a solution that builds and packs a small model of one."""

    @property
    def entry(self) -> registry.EnvSpec:
        """``golf``, or ``golf-turns``."""
        return registry.spec("golf-turns" if self.config.several_attempts else "golf")

"""WSP-Bench as a plugin of verifiers (API v1): ``--env.taskset.id wsp-bench``."""

from __future__ import annotations

import verifiers.v1 as vf

from weightgym.envs.wsp.oracle import oracle_conversation
from weightgym.rewards.contracts import Completion
from weightgym.rollouts.hub import HubTask, HubTaskset, HubTasksetConfig, InProcessHarness, ToolLoop

__all__ = ["InProcessHarness", "ToolLoop", "WspBench"]


class WspBenchTask(HubTask):
    """One instance."""

    def gold(self) -> Completion:
        """What the agent says that knows the truth. For validation alone: no model and no trace gets to see it."""
        return oracle_conversation(self._task())


class WspBench(HubTaskset, vf.Taskset[WspBenchTask, HubTasksetConfig]):
    """Faults in a small language model, to be found and repaired with tools."""

    env = "wsp-bench"

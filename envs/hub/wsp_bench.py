"""WSP-Bench as a plugin of verifiers (API v1): ``--env.taskset.id wsp-bench``."""

from __future__ import annotations

import verifiers.v1 as vf

from weightgym.rollouts.hub import HubTask, HubTaskset, HubTasksetConfig, InProcessHarness, ToolLoop

__all__ = ["InProcessHarness", "ToolLoop", "WspBench"]


class WspBench(HubTaskset, vf.Taskset[HubTask, HubTasksetConfig]):
    """Faults in a small language model, to be found and repaired with tools."""

    env = "wsp-bench"

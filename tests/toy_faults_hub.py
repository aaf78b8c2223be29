"""A plugin of verifiers for ``toy_scorers``: one answer, whose first word says what its scorer does."""

from __future__ import annotations

import toy_scorers
import verifiers.v1 as vf

from weightgym.envs import registry
from weightgym.rollouts.hub import HubTask, HubTaskset, HubTasksetConfig, InProcessHarness, ToolLoop

__all__ = ["InProcessHarness", "ToolLoop", "ToyFaults"]

registry.register(toy_scorers.SPEC)


class ToyFaults(HubTaskset, vf.Taskset[HubTask, HubTasksetConfig]):
    """Three tasks."""

    env = toy_scorers.ENV

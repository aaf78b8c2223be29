"""The environments as plugins of verifiers 0.3.1 to 0.4 (API v1): what the modules in ``envs/hub`` share.

Each of those modules exports a taskset, ``ToolLoop`` and ``InProcessHarness``. A module of one's own does the same: see
``docs/verifiers.md``.
"""

from weightgym.rollouts.hub.harness import InProcessHarness
from weightgym.rollouts.hub.loop import ToolLoop
from weightgym.rollouts.hub.task import HubData, HubTask
from weightgym.rollouts.hub.taskset import HubTaskset, HubTasksetConfig

__all__ = ["HubData", "HubTask", "HubTaskset", "HubTasksetConfig", "InProcessHarness", "ToolLoop"]

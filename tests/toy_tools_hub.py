"""A plugin of verifiers for ``toy_tools_env``, with episodes of up to 40 turns."""

from __future__ import annotations

import dataclasses

import toy_tools_env
import verifiers.v1 as vf

from weightgym.envs import registry
from weightgym.rewards.contracts import Completion
from weightgym.rollouts.hub import HubTask, HubTaskset, HubTasksetConfig, InProcessHarness, ToolLoop

__all__ = ["InProcessHarness", "ToolLoop", "ToyTools"]

toy_tools_env.MAX_TURNS = 40
SPEC = dataclasses.replace(toy_tools_env.SPEC, max_turns=40, step_timeout=1.5, pass_threshold=1.0)
registry.register(SPEC)


class ToyToolsTask(HubTask):
    """Add with tools."""

    def gold(self) -> Completion:
        """The right sum, at once; of a task of kind ``bad_gold``, a wrong one."""
        kind, _, number = self.data.task.partition("/")
        total = sum(range(int(number) + 1)) + (kind == "bad_gold")
        call = {"id": "c", "type": "function", "function": {"name": "submit", "arguments": f'{{"sum": {total}}}'}}
        return [{"role": "assistant", "content": "", "tool_calls": [call]}]


class ToyTools(HubTaskset, vf.Taskset[ToyToolsTask, HubTasksetConfig]):
    """Sums; some tasks misbehave."""

    env = toy_tools_env.ENV

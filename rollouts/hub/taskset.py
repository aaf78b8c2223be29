"""The tasks of an environment as a taskset of verifiers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import verifiers.v1 as vf
from pydantic import Field, SerializeAsAny

from weightgym.envs import registry
from weightgym.rewards.contracts import Split, Task
from weightgym.rollouts.hub.task import HubData, HubTask, HubTaskConfig


class HubTasksetConfig(vf.TasksetConfig):
    """Which tasks, and how they are scored."""

    task: SerializeAsAny[HubTaskConfig] = HubTaskConfig()
    split: Split = "train"
    """``train`` or ``test``."""
    task_ids: list[str] = Field(default_factory=list)
    """Only these tasks, in this order. Default: the whole split."""
    profile: str = ""
    """The set of scoring choices. Default: the environment's."""
    score_timeout: float = Field(600.0, gt=0)
    """Wall seconds that the score of one answer may take; then its process is killed and the rollout is an error."""


class HubTaskset(vf.Taskset[HubTask, HubTasksetConfig]):
    """The tasks of one environment. A subclass names it (``env``), or overrides ``entry`` and ``source``.

    Raises:
        TaskError: the environment has no such profile, or no such task.
    """

    env: ClassVar[str] = ""

    @property
    def entry(self) -> registry.EnvSpec:
        """The environment."""
        return registry.spec(self.env)

    def source(self, profile: str) -> registry.TaskSource:
        """Its tasks under a profile."""
        return self.entry.tasks_under(profile)

    def load(self) -> Iterator[HubTask]:
        """One task after the other."""
        config, entry = self.config, self.entry
        profile = entry.checked_profile(config.profile or None)
        source = self.source(profile)
        kind = type(self).task_type()
        for index, id in enumerate(config.task_ids or source.ids(config.split)):
            yield kind(self._data(index, source.task(id), profile, source.task(id, prompt=False)), config.task)

    def _data(self, index: int, task: Task, profile: str, bare: Task) -> HubData:
        messages = [message.model_dump() for message in task.prompt]
        plain = len(messages) == 1 and messages[0]["role"] == "user"
        return HubData(
            idx=index,
            id=task.id,
            name=task.id,
            prompt=messages[0]["content"] if plain else messages,
            system_prompt=task.system_prompt or None,
            env=task.env,
            task=task.id,
            profile=profile,
            task_sha256=bare.hash,
            score_timeout=self.config.score_timeout,
        )

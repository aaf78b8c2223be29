"""One episode in an environment of several turns. Every call may hang or raise: they run in threads of their own."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weightgym.envs.base import reply_of
from weightgym.envs.registry import EnvSpec, load
from weightgym.rewards.batch_worker import checked_score
from weightgym.rewards.contracts import GraderError, Score, Task


@dataclass(frozen=True)
class Start:
    """What an environment asks the model."""

    messages: tuple[dict[str, Any], ...]
    tools: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Turn:
    """What it says to a message: a reply, or a score at the end."""

    reply: Sequence[Mapping[str, Any]] = ()
    score: Score | None = None


class EnvEpisode:
    """An environment made for one episode.

    Errors that its methods raise are the environment's, not the model's.
    """

    def __init__(self, entry: EnvSpec, task: Task, profile: str) -> None:
        self._entry = entry
        self._task = task
        self._profile = profile
        self._env: Any = None
        self._tools: tuple[dict[str, Any], ...] = ()

    def start(self) -> Start:
        """Make the environment and start the episode of the task.

        Its random numbers depend on the task alone: the members of a group, which answer the same task, play the same
        episode.
        """
        make = load(self._entry.env)
        self._env = make(**env_options(make, self._entry, split=self._task.split, profile=self._profile))
        seed = int(self._task.hash[:8], 16)
        _, info = self._env.reset(seed=seed, options={"task": self._task.id})
        if info.get("task_hash") != self._task.hash:
            raise GraderError(f"{self._entry.name} started {info.get('task')!r}, not task {self._task.id!r} as it is")
        self._tools = tuple(copy.deepcopy(info.get("tools") or ()))
        return Start(tuple(copy.deepcopy(info["messages"])), self._tools)

    def step(self, message: Mapping[str, Any], turn: int) -> Turn:
        """Give it the model's message; ``turn`` counts from 1."""
        action = copy.deepcopy(dict(message)) if self._tools else str(message["content"])
        observation, _, terminated, truncated, info = self._env.step(action)
        if terminated or truncated:
            return Turn(score=checked_score(info.get("score"), self._profile))
        if turn == self._entry.max_turns:
            raise GraderError(
                f"{self._entry.name} goes on after {turn} turns, which its entry says are all (max_turns)"
            )
        return Turn(reply=reply_of(observation, info))

    def close(self) -> None:
        """Give back what the environment holds."""
        if self._env is not None:
            self._env.close()


def env_options(make: Any, entry: EnvSpec, *, split: str, profile: str) -> dict[str, Any]:
    """The flags that an environment is made with, of those that it has.

    Raises:
        ValueError: it has no ``profile``, and another one than its own is wanted.
    """
    parameters = inspect.signature(make).parameters
    if "profile" not in parameters and profile != entry.default_profile:
        raise ValueError(f"{entry.name} has no flag 'profile': it scores under {entry.default_profile} only")
    flags = {"split": split, "profile": profile}
    return {name: value for name, value in flags.items() if name in parameters}

"""The tasks of Golf: languages to train on, and others to test with."""

from __future__ import annotations

import functools

from pydantic import JsonValue

from weightgym.envs.golf.prompt import SYSTEM_PROMPT, task_prompt
from weightgym.rewards.contracts import Message, Split, Task, TaskError
from weightgym.rewards.golf.data.language import VERSION
from weightgym.rewards.golf.profile import DEFAULT
from weightgym.rewards.golf.profile import profile as find_profile
from weightgym.rewards.suggest import unknown_task

#: Of an episode of ``golf-turns``.
ATTEMPTS = 4
TRAIN, TEST = 24, 8
_IDS: dict[Split, tuple[str, ...]] = {
    "train": tuple(f"lang/{number}" for number in range(TRAIN)),
    "test": tuple(f"lang/{number}" for number in range(TRAIN, TRAIN + TEST)),
}
_SPLITS = {id: split for split, ids in _IDS.items() for id in ids}


class GolfTasks:
    """Task source. Ids are ``lang/<n>``: 24 languages to train on, 8 others to test with.

    Args:
        profile: whose budgets the prompt tells. The languages are the same under every profile.
        attempts: how many an episode has, for ``golf-turns``; None: the tasks of ``golf``.

    Raises:
        TaskError: there is no such profile.
    """

    def __init__(self, profile: str = DEFAULT, *, attempts: int | None = None) -> None:
        self.profile = find_profile(profile)
        self.attempts = attempts

    def under(self, profile: str) -> GolfTasks:
        """The same tasks under another profile.

        Raises:
            TaskError: there is no such profile.
        """
        return GolfTasks(profile, attempts=self.attempts)

    def ids(self, split: Split) -> tuple[str, ...]:
        """The ids of a split, by number."""
        return _IDS[split]

    def task(self, id: str, *, prompt: bool = True) -> Task:
        """The task of that id.

        Raises:
            TaskError: there is no such task.
        """
        if id not in _SPLITS:
            raise TaskError(unknown_task("golf", id, _SPLITS))
        messages = (Message(role="user", content=_prompt(id, self.profile, self.attempts)),) if prompt else ()
        data: dict[str, JsonValue] = {"language": id, "generator": VERSION}
        env = "golf"
        if self.attempts is not None:
            env, data["attempts"] = "golf-turns", self.attempts
        return Task(env=env, id=id, split=_SPLITS[id], prompt=messages, system_prompt=SYSTEM_PROMPT, data=data)


_prompt = functools.cache(task_prompt)

SOURCE = GolfTasks()
TURNS_SOURCE = GolfTasks(attempts=ATTEMPTS)

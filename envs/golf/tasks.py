"""The tasks of Golf: languages to train on, and others to test with."""

from __future__ import annotations

import functools

from weightgym.envs.golf.prompt import SYSTEM_PROMPT, task_prompt
from weightgym.envs.registry import suggest
from weightgym.rewards.contracts import Message, Split, Task, TaskError
from weightgym.rewards.golf.data.language import VERSION
from weightgym.rewards.golf.profile import DEFAULT, profile

ENV = "golf"
TRAIN, TEST = 24, 8
_IDS: dict[Split, tuple[str, ...]] = {
    "train": tuple(f"lang/{number}" for number in range(TRAIN)),
    "test": tuple(f"lang/{number}" for number in range(TRAIN, TRAIN + TEST)),
}
_SPLITS = {id: split for split, ids in _IDS.items() for id in ids}


class GolfTasks:
    """Task source. Ids are ``lang/<n>``: 24 languages to train on, 8 others to test with.

    ``profile``: whose budgets the prompt tells. The languages are the same under every profile.
    """

    def __init__(self, profile: str = DEFAULT) -> None:
        self.profile = profile

    def ids(self, split: Split) -> tuple[str, ...]:
        """The ids of a split, by number."""
        return _IDS[split]

    def task(self, id: str, *, prompt: bool = True) -> Task:
        """The task of that id.

        Raises:
            TaskError: there is no such task or profile.
        """
        if id not in _SPLITS:
            raise TaskError(f"unknown task {id!r}{suggest(id, _SPLITS)}")
        text = _prompt(id, self.profile) if prompt else ""
        messages = (Message(role="user", content=text),) if prompt else ()
        data = {"language": id, "generator": VERSION}
        return Task(env=ENV, id=id, split=_SPLITS[id], prompt=messages, system_prompt=SYSTEM_PROMPT, data=data)


@functools.cache
def _prompt(id: str, name: str) -> str:
    return task_prompt(id, profile(name))


SOURCE = GolfTasks()

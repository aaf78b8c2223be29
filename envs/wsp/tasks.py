"""The tasks of WSP-Bench: the public rows of a set of instances, with the prompts of their families and tiers."""

from __future__ import annotations

from pathlib import Path

from weightgym.envs.wsp.prompt import SYSTEM_PROMPT, task_prompt
from weightgym.rewards.contracts import Message, Split, Task, TaskError
from weightgym.rewards.suggest import unknown_task
from weightgym.rewards.wsp import sets
from weightgym.rewards.wsp.instances import PublicData
from weightgym.rewards.wsp.profile import DEFAULT
from weightgym.rewards.wsp.profile import profile as find_profile


class WSPTasks:
    """Task source. Ids are opaque: they say nothing of an instance.

    Args:
        profile: whose budgets and scores the prompts tell; instances of another one are left out.
        instances: the JSONL file of a set, whose instances alone these are then; None: those of all sets that are
            known, see ``rewards.wsp.sets``.

    Raises:
        TaskError: there is no such profile, or the file can't be read.
    """

    def __init__(self, profile: str = DEFAULT, instances: str | Path | None = None) -> None:
        self.profile = find_profile(profile)
        self.instances = instances

    def under(self, profile: str) -> WSPTasks:
        """The instances of another profile.

        Raises:
            TaskError: there is no such profile.
        """
        return WSPTasks(profile, self.instances)

    def ids(self, split: Split) -> tuple[str, ...]:
        """The ids of a split, sorted."""
        return tuple(sorted(id for id, row in self._rows.items() if row.split == split))

    def task(self, id: str, *, prompt: bool = True) -> Task:
        """The task of that id.

        Raises:
            TaskError: there is no such task, or its base model's chat form can't be read.
        """
        if (row := self._rows.get(id)) is None:
            raise TaskError(unknown_task("wsp-bench", id, self._rows))
        if not prompt:
            return row
        said = task_prompt(PublicData.model_validate(dict(row.data)), self.profile)
        messages = (Message(role="user", content=said),)
        return Task(env=row.env, id=id, split=row.split, prompt=messages, system_prompt=SYSTEM_PROMPT, data=row.data)

    @property
    def _rows(self) -> dict[str, Task]:
        rows = sets.tasks() if self.instances is None else sets.add(self.instances)
        return {id: row for id, row in rows.items() if row.data["profile"] == self.profile.name}


SOURCE = WSPTasks()

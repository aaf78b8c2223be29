"""Which task a row answers: by its key, else by its prompt."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from weightgym.envs import registry
from weightgym.envs.registry import EnvSpec
from weightgym.rewards.contracts import Split, Task, TaskError
from weightgym.rollouts.readers.messages import prompt_digests
from weightgym.rollouts.readers.record import BadRow, Record

_SPLITS: tuple[Split, ...] = ("train", "test")

#: The environment and the task (without its prompt) of a key. Raises ``TaskError``.
Find = Callable[[str, str], tuple[EnvSpec, Task]]


class Match(NamedTuple):
    """A row's task, and how it was found."""

    entry: EnvSpec
    task: Task
    by: str  #: "key" or "prompt"


class Matcher:
    """Finds the tasks of rows.

    Prompts are made when a row first needs them, one environment after the other, and once: those of Golf take ten
    seconds. The first environment that has a prompt counts.

    Args:
        find: how a key is looked up.
        profile: prompts are those under this profile, or the environment's default one where it has no such profile.
    """

    def __init__(self, find: Find, profile: str | None = None) -> None:
        self._find = find
        self._profile = profile
        self._prompts: dict[str, _Prompts] = {}

    def match(self, record: Record) -> Match:
        """The task that the row answers.

        Raises:
            BadRow: there is none; or its key and its prompt are those of two tasks.
        """
        problem = "it names no task (texts 'env' and 'task')"
        digests = prompt_digests(record.prompt)
        if record.env is not None and record.task is not None:
            try:
                entry, task = self._find(record.env, record.task)
            except TaskError as error:
                problem = str(error)
            else:
                self._check(entry, task, digests)
                return Match(entry, task, "key")
        if not digests:
            raise BadRow(problem)
        return self._by_prompt(record, digests, problem)

    def _check(self, entry: EnvSpec, task: Task, digests: tuple[str, ...]) -> None:
        """Rows whose prompts and keys have shifted against each other must not pass."""
        prompts = self._of(entry)
        if not digests or prompts.are_of(task.id, digests):
            return
        other = prompts.find(digests)
        if other not in (None, "", task.id):
            raise BadRow(f"its key is {task.id!r}, but its prompt is that of {other!r}: have rows shifted?")

    def _by_prompt(self, record: Record, digests: tuple[str, ...], problem: str) -> Match:
        entries: Sequence[EnvSpec] = sorted(registry.all_specs(), key=lambda entry: entry.prompt_seconds)
        if record.env is not None and record.task is None:
            try:
                entries = (registry.spec(record.env),)
            except TaskError as error:
                raise BadRow(str(error)) from error
        unmade = 0
        for entry in entries:
            prompts = self._of(entry)
            id = prompts.find(digests)
            if id == "":
                raise BadRow(f"{problem}, and several tasks of {entry.name} have its prompt")
            if id is not None:
                return Match(*self._find(entry.name, id), "prompt")
            unmade += prompts.unmade
        aside = f" ({unmade} prompts can't be made here: weightgym tasks ENV says why)" if unmade else ""
        raise BadRow(f"{problem}, and no task has its prompt{aside}")

    def _of(self, entry: EnvSpec) -> _Prompts:
        if entry.name not in self._prompts:
            self._prompts[entry.name] = _Prompts(entry, self._profile)
        return self._prompts[entry.name]


class _Prompts:
    """The prompts of one environment, by digest."""

    def __init__(self, entry: EnvSpec, profile: str | None) -> None:
        try:
            self._source = entry.tasks_under(profile or entry.default_profile)
        except TaskError:
            self._source = entry.tasks_under(entry.default_profile)
        self._digests: dict[str, tuple[str, ...]] = {}
        #: Tasks whose prompts need something that is not installed.
        self.unmade = 0

    def are_of(self, id: str, digests: tuple[str, ...]) -> bool:
        """Whether it is the prompt of that task, as far as that one can be made."""
        if id not in self._digests:
            try:
                self._digests[id] = prompt_digests(self._source.task(id).messages)
            except TaskError:
                self._digests[id] = ()
        return not self._digests[id] or not set(digests).isdisjoint(self._digests[id])

    def find(self, digests: tuple[str, ...]) -> str | None:
        """The task that has this prompt: the whole of it, or else without system messages. "" if several have."""
        return next((self._ids[digest] for digest in digests if digest in self._ids), None)

    @functools.cached_property
    def _ids(self) -> dict[str, str]:
        ids: dict[str, str] = {}
        for split in _SPLITS:
            for id in self._source.ids(split):
                try:
                    own = prompt_digests(self._source.task(id).messages)
                except TaskError:
                    self.unmade += 1
                    continue
                for digest in own:
                    ids[digest] = id if ids.get(digest, id) == id else ""
        return ids

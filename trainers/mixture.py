"""What a step trains on: environments by weight, and the tasks of each in shuffled rounds.

Every draw depends on the seed and the draws before it alone. An environment gets the group in which it is furthest
behind its share; its tasks come in rounds, each a permutation by hashes of (seed, environment, round, task).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weightgym.envs import registry
from weightgym.envs.registry import EnvSpec
from weightgym.rewards.contracts import Task, TaskError, canonical_json, sha256_hex
from weightgym.trainers.config import Environment


@dataclass(frozen=True, eq=False)
class Source:
    """One environment of the mixture."""

    entry: EnvSpec
    tasks: tuple[Task, ...]
    profile: str
    weight: float


@dataclass(frozen=True)
class Draw:
    """One group to roll out."""

    source: Source
    task: Task
    number: int  #: counts the draws of a run


class Mixture:
    """The sources, and how many groups each has got.

    Raises:
        TaskError: an environment, a task or a profile is unknown, or a split is empty.
    """

    def __init__(self, environments: Sequence[Environment], seed: int) -> None:
        self.sources = tuple(_source(one) for one in environments)
        self.drawn = [0] * len(self.sources)
        self._seed = seed

    def draw(self) -> Draw:
        """The next group."""
        total = sum(source.weight for source in self.sources)
        number = sum(self.drawn)
        behind = [
            source.weight / total * (number + 1) - drawn for source, drawn in zip(self.sources, self.drawn, strict=True)
        ]
        index = behind.index(max(behind))
        source = self.sources[index]
        round, place = divmod(self.drawn[index], len(source.tasks))
        self.drawn[index] += 1
        return Draw(source, self._round(index, round)[place], number)

    def _round(self, index: int, round: int) -> list[Task]:
        def key(task: Task) -> str:
            return sha256_hex(canonical_json(["round", self._seed, index, round, task.env, task.id]))

        return sorted(self.sources[index].tasks, key=key)


def _source(one: Environment) -> Source:
    entry = registry.spec(one.env)
    profile = entry.checked_profile(one.profile)
    tasks = entry.tasks_under(profile)
    ids = one.tasks or tasks.ids(one.split)
    if not ids:
        raise TaskError(f"{one.env}: split {one.split!r} has no tasks")
    return Source(entry, tuple(tasks.task(id) for id in ids), profile, one.weight)

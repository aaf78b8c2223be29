"""What is to be rolled out: tasks, groups of samples, and their seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weightgym.rewards.contracts import Task, canonical_json, sha256_hex


@dataclass(frozen=True)
class Job:
    """One rollout to make: sample ``index`` of a group, whose members answer the same task."""

    task: Task
    index: int
    seed: int
    label: str = ""  #: tells groups of the same task apart

    @property
    def id(self) -> str:
        """Its name within the run."""
        return f"{self.group}#{self.index}"

    @property
    def group(self) -> str:
        """The name of its group within the run."""
        return f"{self.task.env}/{self.task.id}" + (f"@{self.label}" if self.label else "")

    def turn_seed(self, turn: int) -> int:
        """What the model's message ``turn`` (from 0) is sampled with. The first one's is the job's own."""
        return self.seed if turn == 0 else _hash(["turn", self.seed, turn])


def sample_index(id: str) -> int:
    """The index of the rollout of that id within its group; -1 where it tells none."""
    number = id.rpartition("#")[2]
    return int(number) if number.isdecimal() and "#" in id else -1


def jobs(tasks: Sequence[Task], samples: int, seed: int, *, label: str = "") -> list[Job]:
    """``samples`` rollouts of each task. A rollout's seed is a hash of (seed, label, env, task, index)."""
    return [
        Job(task, index, _hash(["rollout", seed, label, task.env, task.id, index]), label)
        for task in tasks
        for index in range(samples)
    ]


def _hash(key: list[int | str]) -> int:
    return int(sha256_hex(canonical_json(key))[:15], 16)

"""Answers that are the same: to one task, word by word; and same answers with other scores, which should not be."""

from __future__ import annotations

from dataclasses import dataclass, field

from weightgym.trainers.reservoir import hash_of
from weightgym.trainers.scored_file import ScoredAnswer, completion_key

#: Distinct answers (and ids) that are remembered.
_TRACKED = 100_000
#: Repeated answers, contradictions and ids that are told.
_TOLD = 10


@dataclass
class Repeated:
    """An answer that was given several times to one task, under one profile."""

    id: str  #: of the first
    line: int
    offset: int
    env: str
    task: str
    reward: float | None
    count: int = 1


@dataclass
class Contradiction:
    """The same answer to the same task under the same profile with two results."""

    env: str
    task: str
    ids: tuple[str, str]
    lines: tuple[int, int]
    rewards: tuple[float | None, float | None]


@dataclass
class Duplicates:
    """All of a file."""

    answers: int = 0  #: that were compared
    distinct: int = 0
    untracked: int = 0  #: answers that came when the memory was full: they are compared with those before only
    contradictions: int = 0
    contradicting: list[Contradiction] = field(default_factory=list)
    repeated_ids: int = 0  #: lines whose id a line before them has
    ids: list[str] = field(default_factory=list)  #: of them, the first ones
    _first: dict[int, tuple[float | None, int, int]] = field(default_factory=dict)
    _repeated: dict[int, Repeated] = field(default_factory=dict)
    _ids: set[int] = field(default_factory=set)

    def add(self, one: ScoredAnswer) -> None:
        """Compare an answer with those before."""
        self._add_id(one)
        key = hash_of("\0".join((*one.part, one.task, completion_key(one.completion))))
        self.answers += 1
        first = self._first.get(key)
        if first is None:
            self.distinct += 1
            if len(self._first) < _TRACKED:
                self._first[key] = (one.score.reward, one.line, one.offset)
            else:
                self.untracked += 1
            return
        reward, line, offset = first
        found = self._repeated.setdefault(key, Repeated("", line, offset, one.env, one.task, reward))
        found.count += 1
        ours = one.score.reward is None or reward is None  # a fault may well go away
        if not ours and one.score.reward != reward:
            self.contradictions += 1
            if len(self.contradicting) < _TOLD:
                rewards = (reward, one.score.reward)
                self.contradicting.append(
                    Contradiction(one.env, one.task, (f":{line}", one.id), (line, one.line), rewards)
                )

    @property
    def most(self) -> list[Repeated]:
        """The answers that were given most often."""
        return sorted(self._repeated.values(), key=lambda one: (-one.count, one.line))[:_TOLD]

    @property
    def share(self) -> float:
        """Of answers that were given before."""
        return 1 - self.distinct / self.answers if self.answers else 0.0

    def _add_id(self, one: ScoredAnswer) -> None:
        key = hash_of(one.id)
        if key in self._ids:
            self.repeated_ids += 1
            if len(self.ids) < _TOLD and one.id not in self.ids:
                self.ids.append(one.id)
        elif len(self._ids) < _TRACKED:
            self._ids.add(key)

"""Groups of answers that are compared with each other: which have no spread, and which are worth a look."""

from __future__ import annotations

from dataclasses import dataclass, field

from weightgym.trainers.reservoir import Mean, Reservoir, hash_of
from weightgym.trainers.scored_file import ScoredAnswer

#: Groups that are open at once; the one that was longest without a new answer is closed then.
_OPEN = 5_000
#: Answers of a group that can be shown.
MEMBERS = 8

#: Which groups are shown, and what they are.
KINDS = {
    "widest": "the rewards differ most: this is what is learned from",
    "zero spread": "all rewards are equal: nothing is learned from it",
    "some invalid": "some answers could be read and some could not",
    "random": "chosen by a hash",
}


@dataclass
class Group:
    """One group. ``named``: the file says so; else it is all answers to a task."""

    env: str
    profile: str
    task: str
    name: str
    named: bool
    count: int = 0
    invalid: int = 0
    low: float = 0.0
    high: float = 0.0
    mean: Mean = field(default_factory=Mean)
    #: Where its answers begin in the file: offset and line.
    members: Reservoir[tuple[int, int]] = field(default_factory=lambda: Reservoir(MEMBERS))

    @property
    def spread(self) -> float:
        """Between the highest and the lowest reward."""
        return self.high - self.low if self.mean.count else 0.0

    @property
    def flat(self) -> bool:
        """Two rewards at least, all equal."""
        return self.mean.count > 1 and self.low == self.high

    def add(self, one: ScoredAnswer, key: int) -> None:
        """Count an answer in."""
        reward = one.score.reward
        self.count += 1
        self.invalid += one.score.status == "invalid"
        self.members.add(key, (one.offset, one.line))
        if reward is not None:
            self.low = min(self.low, reward) if self.mean.count else reward
            self.high = max(self.high, reward) if self.mean.count else reward
            self.mean.add(reward)


class Groups:
    """All groups of a file. Memory is bounded: groups whose answers lie far apart count as several."""

    def __init__(self) -> None:
        self.count = 0  #: with two rewards at least
        self.flat = 0
        self.flat_invalid = 0  #: of the flat ones, those in which every answer is invalid
        self.named = False  #: whether the file names groups
        self._open: dict[tuple[str, str, str, str], Group] = {}
        self._shown: dict[str, Group] = {}
        self._random: Reservoir[Group] = Reservoir(len(KINDS))
        self._ranks: dict[str, tuple[float, int]] = {}

    def add(self, one: ScoredAnswer, key: int) -> None:
        """Count an answer."""
        name = (*one.part, one.task, one.group)
        group = self._open.pop(name, None)
        if group is None:
            if len(self._open) == _OPEN:
                self._close(self._open.pop(next(iter(self._open))))
            group = Group(*name, named=bool(one.group))
            self.named = self.named or group.named
        group.add(one, key)
        self._open[name] = group  # the last one again

    def close(self) -> None:
        """Count the groups that are still open."""
        for group in self._open.values():
            self._close(group)
        self._open.clear()

    @property
    def shown(self) -> dict[str, Group]:
        """By kind, in the order of ``KINDS``; no group twice."""
        found: dict[str, Group] = {}
        for kind in KINDS:
            for group in self._random.values if kind == "random" else [self._shown.get(kind)]:
                if kind not in found and group is not None and all(group is not other for other in found.values()):
                    found[kind] = group
        return found

    def _close(self, group: Group) -> None:
        if group.mean.count < 2:
            return
        self.count += 1
        self.flat += group.flat
        self.flat_invalid += group.flat and group.invalid == group.count
        key = hash_of("\0".join((group.env, group.profile, group.task, group.name)))
        self._random.add(key, group)
        ranks = {"zero spread" if group.flat else "widest": -group.spread}
        if 0 < group.invalid < group.count:
            ranks["some invalid"] = -group.spread
        for kind, rank in ranks.items():
            if kind not in self._ranks or (rank, key) < self._ranks[kind]:
                self._ranks[kind], self._shown[kind] = (rank, key), group

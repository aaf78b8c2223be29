"""What a file of rollouts is like, read once, line by line: memory doesn't grow with the file."""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from weightgym.rollouts.trajectory import Trajectory

#: Rewards that are kept of one part of the run, to tell their distribution.
_KEPT = 2000
#: Parts of the run that distributions are told for, at most.
_PARTS = 40
#: Codes of reasons that are told apart; a scorer without codes could give every answer its own.
_CODES = 500
#: Steps that count as the last ones.
LAST = 10


@dataclass
class Reason:
    """Why answers are invalid: one code, how often, and an example."""

    code: str
    count: int = 0
    last: int = 0  #: of them in the last steps
    example: str = ""  #: the whole reason
    example_id: str = ""


@dataclass
class TaskTotals:
    """The rollouts of one task. ``last_…``: those of the last steps."""

    env: str
    task: str
    count: int = 0
    invalid: int = 0
    rewards: int = 0
    total: float = 0.0
    last_rewards: int = 0
    last_total: float = 0.0

    @property
    def mean(self) -> float | None:
        """Mean reward of the whole run."""
        return self.total / self.rewards if self.rewards else None

    @property
    def last_mean(self) -> float | None:
        """Mean reward of the last steps."""
        return self.last_total / self.last_rewards if self.last_rewards else None


@dataclass
class Part:
    """A stretch of the run: a sample of its rewards, chosen by a hash of the rollouts' ids."""

    first: int  #: policy versions
    last: int
    count: int = 0
    heap: list[tuple[int, float]] = field(default_factory=list)

    def add(self, key: int, reward: float) -> None:
        """Keep the rewards with the smallest keys."""
        self.count += 1
        if len(self.heap) < _KEPT:
            heapq.heappush(self.heap, (-key, reward))
        elif -key > self.heap[0][0]:
            heapq.heapreplace(self.heap, (-key, reward))

    @property
    def rewards(self) -> list[float]:
        """The sample, sorted."""
        return sorted(reward for _, reward in self.heap)


class RolloutSummary:
    """Counts, distributions and samples of rollouts. The same rollouts in another order give the same summary.

    Args:
        steps: optimiser steps of the run; the last ten are "the last steps". 0 for rollouts outside of a run.
    """

    def __init__(self, steps: int = 0) -> None:
        self.steps = steps
        self.since = max(0, steps - LAST)  #: the first policy version of the last steps
        self.count = 0
        self.truncated = 0
        self.statuses: Counter[str] = Counter()
        self.tasks: dict[tuple[str, str], TaskTotals] = {}
        self.parts: dict[int, Part] = {}
        #: Of the last steps: "best", "worst" (of those that are valid), "random", "invalid" and "fault".
        self.samples: dict[str, Trajectory] = {}
        self._ranks: dict[str, tuple[float, int]] = {}
        self._reasons: dict[str, Reason] = {}

    def add(self, one: Trajectory) -> None:
        """Count a rollout."""
        key, recent = _hash(one.id), one.policy_version >= self.since
        self.count += 1
        self.truncated += one.finish_reason == "length"
        self.statuses[one.score.status] += 1
        self._add_to_task(one, recent)
        if one.score.status == "invalid":
            self._add_reason(one, key, recent)
        if one.score.reward is not None:
            self._part(one.policy_version).add(key, one.score.reward)
        if recent:
            self._add_samples(one, key)

    def add_all(self, rollouts: Iterable[Trajectory]) -> RolloutSummary:
        """Count them all; returns itself."""
        for one in rollouts:
            self.add(one)
        return self

    @property
    def reasons(self) -> list[Reason]:
        """Why answers are invalid, the most frequent reason first."""
        return sorted(self._reasons.values(), key=lambda reason: (-reason.count, reason.code))

    def _add_to_task(self, one: Trajectory, recent: bool) -> None:
        totals = self.tasks.setdefault((one.env, one.task), TaskTotals(one.env, one.task))
        totals.count += 1
        totals.invalid += one.score.status == "invalid"
        reward = one.score.reward
        if reward is not None:
            totals.rewards += 1
            totals.total += reward
            totals.last_rewards += recent
            totals.last_total += reward * recent

    def _add_reason(self, one: Trajectory, key: int, recent: bool) -> None:
        code = one.score.code
        if code not in self._reasons and len(self._reasons) >= _CODES:
            code = "(others)"
        reason = self._reasons.setdefault(code, Reason(code))
        reason.count += 1
        reason.last += recent
        if self._is_better(f"reason {code}", (-float(recent), key)):  # rather one of the last steps
            reason.example, reason.example_id = one.score.reason, one.id

    def _part(self, version: int) -> Part:
        parts = max(1, min(_PARTS, self.steps))
        index = min(parts - 1, version * parts // max(1, self.steps))
        if index not in self.parts:
            self.parts[index] = Part(version, version)
        part = self.parts[index]
        part.first, part.last = min(part.first, version), max(part.last, version)
        return part

    def _add_samples(self, one: Trajectory, key: int) -> None:
        status, reward = one.score.status, one.score.reward
        ranks: dict[str, float] = {"random": 0.0}
        if reward is None:
            ranks["fault"] = 0.0
        elif status == "invalid":
            ranks["invalid"] = 0.0
        else:
            ranks |= {"best": -reward, "worst": reward}
        for kind, rank in ranks.items():
            if self._is_better(kind, (rank, key)):
                self.samples[kind] = one

    def _is_better(self, kind: str, rank: tuple[float, int]) -> bool:
        better = kind not in self._ranks or rank < self._ranks[kind]
        if better:
            self._ranks[kind] = rank
        return better


def _hash(id: str) -> int:
    return int.from_bytes(hashlib.blake2b(id.encode(), digest_size=8).digest(), "big")

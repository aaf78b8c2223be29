"""What a file of scored answers is like, read once, line by line: memory doesn't grow with the file."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from weightgym.trainers.duplicates import Duplicates
from weightgym.trainers.groups import Groups
from weightgym.trainers.part_summary import PartSummary, TaskTotals
from weightgym.trainers.reservoir import hash_of, quartiles
from weightgym.trainers.scored_file import ScoredAnswer
from weightgym.trainers.timeline import Timeline

#: Codes of reasons that are told apart; a scorer without codes could give every answer its own.
_CODES = 500
#: Environments and profiles that have a summary of their own; the answers of others are only counted.
_PARTS = 12
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
    offset: int = 0  #: of the example in the file
    line: int = 0


@dataclass
class Broken:
    """A metric that is no finite number in some lines."""

    count: int = 0
    id: str = ""  #: of the first


@dataclass
class RolloutSummary:
    """Counts, distributions and samples. The same answers in another order give the same summary, but for what is told
    of "the first" where there is too much to keep.

    Args:
        steps: optimiser steps of the run; the last ten are "the last steps". 0 for answers outside of a run.
    """

    steps: int = 0
    count: int = 0
    truncated: int = 0
    has_tokens: bool = False  #: whether one answer's tokens are stored
    policies: set[str] = field(default_factory=set)  #: the first ones
    statuses: Counter[str] = field(default_factory=Counter)
    timeline: Timeline = field(default_factory=Timeline)  #: over policy versions, all environments together
    parts: dict[tuple[str, str], PartSummary] = field(default_factory=dict)  #: by environment and profile
    left_out: Counter[tuple[str, str]] = field(default_factory=Counter)  #: answers of further ones
    groups: Groups = field(default_factory=Groups)
    duplicates: Duplicates = field(default_factory=Duplicates)
    broken: dict[str, Broken] = field(default_factory=dict)  #: by metric
    #: Of the last steps, by environment and profile: "best", "worst" (of those that are valid), "random", "invalid" and
    #: "fault".
    samples: dict[tuple[str, str], dict[str, ScoredAnswer]] = field(default_factory=dict)
    _ranks: dict[tuple[str, ...], tuple[float, int]] = field(default_factory=dict)
    _reasons: dict[str, Reason] = field(default_factory=dict)

    @property
    def since(self) -> int:
        """The first policy version of the last steps."""
        return max(0, self.steps - LAST)

    def add(self, one: ScoredAnswer) -> None:
        """Count an answer."""
        key, recent = hash_of(one.id), (one.version or 0) >= self.since
        score = one.score
        self.count += 1
        self.truncated += one.truncated
        self.has_tokens = self.has_tokens or one.sampled > 0
        self.statuses[score.status] += 1
        if len(self.policies) < _CODES:
            self.policies.add(one.policy)
        self._add_to_part(one, key, recent)
        if score.status == "invalid":
            self._add_reason(one, key, recent)
        self.timeline.add(one.version or 0, key, score.reward, score.status, {})
        self.groups.add(one, key)
        self.duplicates.add(one)
        for name in one.broken:
            if name in self.broken or len(self.broken) < _CODES:
                self.broken.setdefault(name, Broken(0, one.id)).count += 1
        if recent and one.part in self.parts:
            self._add_samples(one, key)

    def add_all(self, records: Iterable[ScoredAnswer]) -> RolloutSummary:
        """Count them all; returns itself."""
        for one in records:
            self.add(one)
        self.groups.close()
        return self

    @property
    def reasons(self) -> list[Reason]:
        """Why answers are invalid, the most frequent reason first."""
        return sorted(self._reasons.values(), key=lambda reason: (-reason.count, reason.code))

    @property
    def tasks(self) -> list[TaskTotals]:
        """By environment, profile and name."""
        return [part.tasks[task] for _, part in sorted(self.parts.items()) for task in sorted(part.tasks)]

    def _add_to_part(self, one: ScoredAnswer, key: int, recent: bool) -> None:
        if one.part not in self.parts and len(self.parts) >= _PARTS:
            if one.part in self.left_out or len(self.left_out) < _CODES:
                self.left_out[one.part] += 1
            return
        self.parts.setdefault(one.part, PartSummary(*one.part)).add(one, key, recent)

    def _add_reason(self, one: ScoredAnswer, key: int, recent: bool) -> None:
        code = one.score.code
        if code not in self._reasons and len(self._reasons) >= _CODES:
            code = "(others)"
        reason = self._reasons.setdefault(code, Reason(code))
        reason.count += 1
        reason.last += recent
        if self._is_better((code,), (-float(recent), key)):  # rather one of the last steps
            reason.example, reason.example_id = one.score.reason, one.id
            reason.offset, reason.line = one.offset, one.line

    def _add_samples(self, one: ScoredAnswer, key: int) -> None:
        status, reward = one.score.status, one.score.reward
        ranks: dict[str, float] = {"random": 0.0}
        if reward is None:
            ranks["fault"] = 0.0
        elif status == "invalid":
            ranks["invalid"] = 0.0
        else:
            ranks |= {"best": -reward, "worst": reward}
        for kind, rank in ranks.items():
            if self._is_better((*one.part, kind), (rank, key)):
                self.samples.setdefault(one.part, {})[kind] = one

    def _is_better(self, kind: tuple[str, ...], rank: tuple[float, int]) -> bool:
        better = kind not in self._ranks or rank < self._ranks[kind]
        if better:
            self._ranks[kind] = rank
        return better


def rollouts_summary(rollouts: RolloutSummary) -> dict[str, Any]:
    """The summary as JSON: numbers, no prompts and completions."""
    same, groups = rollouts.duplicates, rollouts.groups
    return {
        "count": rollouts.count,
        "truncated": rollouts.truncated,
        "statuses": dict(rollouts.statuses),
        "invalid": [
            {
                "code": one.code,
                "count": one.count,
                "last": one.last,
                "example": one.example,
                "example_id": one.example_id,
            }
            for one in rollouts.reasons
        ],
        "tasks": [
            {"env": one.env, "task": one.task, "count": one.count, "invalid": one.invalid}
            | {"mean": one.mean, "last_mean": one.last_mean}
            for one in rollouts.tasks
        ],
        "parts": [_part(part) for _, part in sorted(rollouts.parts.items())],
        "groups": {"count": groups.count, "zero_spread": groups.flat, "all_invalid": groups.flat_invalid},
        "duplicates": {
            "share": same.share,
            "contradictions": [dataclasses.asdict(one) for one in same.contradicting],
            "repeated_ids": same.repeated_ids,
        },
        "broken_metrics": {name: broken.count for name, broken in rollouts.broken.items()},
    }


def _part(part: PartSummary) -> dict[str, Any]:
    named = {"reward": part.rewards.values} | {name: values.values for name, values in part.components.items()}
    return {
        "env": part.env,
        "profile": part.profile,
        "count": part.count,
        "quartiles": {name: list(quartiles(values)) for name, values in named.items() if values},
        "length_correlation": part.correlation,
    }

"""What rollouts say of a policy: a row a task and one of all, and the comparison of two policies on the same samples.

Rollouts with status ``error`` or ``timeout`` have no reward through our fault: they are counted and left out, never 0.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from weightgym.rewards.contracts import Status
from weightgym.rewards.statistics import Interval, best_at_k, mean_interval, paired_interval, pass_at_k
from weightgym.rollouts.trajectory import Trajectory

#: ``(env, task)``.
Key = tuple[str, str]


class EvaluationError(ValueError):
    """These rollouts can't be put together, or not be compared; the message says why."""


@dataclass(frozen=True)
class Outcome:
    """What an evaluation needs of a trajectory, which may be large."""

    id: str
    key: Key
    task_sha256: str
    seed: int
    policy: str
    version: int
    profile: str
    status: Status
    reward: float | None
    cut: bool  #: at the limit of tokens
    max_tokens: int | None = None  #: of sampling, if it is known
    temperature: float | None = None

    @classmethod
    def of(cls, trajectory: Trajectory) -> Outcome:
        """That of a trajectory."""
        score = trajectory.score
        return cls(
            trajectory.id,
            (trajectory.env, trajectory.task),
            trajectory.task_sha256,
            trajectory.seed,
            trajectory.policy,
            trajectory.policy_version,
            score.profile,
            score.status,
            score.reward,
            trajectory.finish_reason == "length",
            trajectory.max_tokens,
            trajectory.temperature,
        )


@dataclass(frozen=True)
class Summary:
    """Of one task, or of all: then ``reward``, ``best`` and ``passed`` are means of the tasks that have them."""

    rollouts: int
    faults: int  #: no reward, through our fault
    invalid: int
    cut: int
    reward: Interval | None  #: None: there is no reward at all
    best: Mapping[int, float]  #: best@k by k; a k that there are too few rewards for is left out
    passed: Mapping[int, float]  #: pass@k, likewise; empty without a threshold


@dataclass(frozen=True)
class Evaluation:
    """One policy under one profile."""

    policy: str
    versions: tuple[int, int]  #: of the policy: the oldest and the newest
    profile: str
    thresholds: Mapping[str, float | None]  #: of passing, by environment
    tasks: Mapping[Key, Summary]
    overall: Summary


def evaluate(
    outcomes: Sequence[Outcome], ks: Sequence[int], thresholds: Mapping[str, float | None], *, seed: int = 0
) -> Evaluation:
    """Evaluate one policy.

    Args:
        ks: for best@k and pass@k.
        thresholds: of passing, by environment. None, or an environment left out: no pass@k for its tasks.
        seed: of the intervals.

    Raises:
        EvaluationError: there are no rollouts, two have one id, or they are of several policies or profiles.
    """
    if not outcomes:
        raise EvaluationError("there are no rollouts")
    if len({one.id for one in outcomes}) < len(outcomes):
        ((twice, count),) = Counter(one.id for one in outcomes).most_common(1)
        raise EvaluationError(f"rollout {twice} is there {count} times: leave one")
    policy = _only((one.policy for one in outcomes), "policies")
    profile = _only((one.profile for one in outcomes if one.reward is not None), "profiles")
    tasks = {
        key: _task_summary(group, ks, thresholds.get(key[0]), seed) for key, group in sorted(_by_task(outcomes).items())
    }
    versions = [one.version for one in outcomes]
    overall = _overall(outcomes, tasks, ks, seed)
    return Evaluation(policy, (min(versions), max(versions)), profile, thresholds, tasks, overall)


def _only(values: Iterable[str], what: str) -> str:
    found = sorted(set(values))
    if len(found) > 1:
        raise EvaluationError(f"they are of {len(found)} {what}, which can't be put together: {', '.join(found)}")
    return found[0] if found else ""


def _by_task(outcomes: Iterable[Outcome]) -> dict[Key, list[Outcome]]:
    groups: dict[Key, list[Outcome]] = {}
    for one in outcomes:
        groups.setdefault(one.key, []).append(one)
    return groups


def _rewards(outcomes: Iterable[Outcome]) -> list[float]:
    return [one.reward for one in outcomes if one.reward is not None]


def _task_summary(group: Sequence[Outcome], ks: Sequence[int], threshold: float | None, seed: int) -> Summary:
    rewards = _rewards(group)
    possible = [k for k in ks if k <= len(rewards)]
    return _summary(
        group,
        mean_interval([rewards], seed=seed) if rewards else None,
        {k: best_at_k(rewards, k) for k in possible},
        {} if threshold is None else {k: pass_at_k(rewards, k, threshold=threshold) for k in possible},
    )


def _overall(outcomes: Sequence[Outcome], tasks: Mapping[Key, Summary], ks: Sequence[int], seed: int) -> Summary:
    groups = [rewards for group in _by_task(outcomes).values() if (rewards := _rewards(group))]

    def means(columns: Sequence[Mapping[int, float]]) -> dict[int, float]:
        found = {k: [column[k] for column in columns if k in column] for k in ks}
        return {k: math.fsum(values) / len(values) for k, values in found.items() if values}

    rows = list(tasks.values())
    reward = mean_interval(groups, seed=seed) if groups else None
    return _summary(outcomes, reward, means([row.best for row in rows]), means([row.passed for row in rows]))


def _summary(
    group: Sequence[Outcome], reward: Interval | None, best: Mapping[int, float], passed: Mapping[int, float]
) -> Summary:
    return Summary(
        rollouts=len(group),
        faults=sum(one.reward is None for one in group),
        invalid=sum(one.status == "invalid" for one in group),
        cut=sum(one.cut for one in group),
        reward=reward,
        best=best,
        passed=passed,
    )


@dataclass(frozen=True)
class Difference:
    """Of one task, or of all: the first policy's rewards minus the second's, pair by pair."""

    pairs: int
    first: float  #: mean reward of the first policy; over these pairs, as the others
    second: float
    difference: Interval
    wins: int  #: of a task: samples; of all: tasks
    ties: int
    losses: int


@dataclass(frozen=True)
class Comparison:
    """Two policies on the same samples of the same tasks."""

    tasks: Mapping[Key, Difference]
    overall: Difference
    unpaired: int  #: rollouts of either side in no pair: they, or their partners, are missing or have no reward
    same_seeds: bool  #: else pairs share a task and nothing more: the interval stands, as of unpaired samples


def compare(first: Sequence[Outcome], second: Sequence[Outcome], *, seed: int = 0) -> Comparison:
    """Compare two policies: rollouts with the same id (environment, task and index) are a pair.

    Raises:
        EvaluationError: there is no pair; a task or the profile is not the same on both sides.
    """
    partners = {one.id: one for one in second if one.reward is not None}
    pairs = [(one, partners[one.id]) for one in first if one.reward is not None and one.id in partners]
    if not pairs:
        raise EvaluationError("no rollout of one policy has a partner of the same task and index in the other's")
    for one, other in pairs:
        if one.task_sha256 != other.task_sha256:
            raise EvaluationError(f"task {one.key[1]} is not the same for both policies: make one side again")
        if one.profile != other.profile:
            raise EvaluationError(f"scores compare within one profile only, not {one.profile} with {other.profile}")
    groups: dict[Key, list[tuple[float, float]]] = {}
    for one, other in pairs:
        groups.setdefault(one.key, []).append((one.reward or 0.0, other.reward or 0.0))  # neither is None: see above
    tasks = {key: _difference([group], [a - b for a, b in group], seed) for key, group in sorted(groups.items())}
    return Comparison(
        tasks,
        _difference(list(groups.values()), [row.difference.mean for row in tasks.values()], seed),
        len(first) + len(second) - 2 * len(pairs),
        all(one.seed == other.seed for one, other in pairs),
    )


def _difference(groups: Sequence[Sequence[tuple[float, float]]], won: Sequence[float], seed: int) -> Difference:
    def mean(side: int) -> float:
        return math.fsum(math.fsum(pair[side] for pair in group) / len(group) for group in groups) / len(groups)

    return Difference(
        pairs=sum(map(len, groups)),
        first=mean(0),
        second=mean(1),
        difference=paired_interval(groups, seed=seed),
        wins=sum(value > 0 for value in won),
        ties=sum(value == 0 for value in won),
        losses=sum(value < 0 for value in won),
    )

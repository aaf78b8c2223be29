"""Intervals, best@k, pass@k and paired differences against hand-worked numbers, brute force and their symmetries."""

from __future__ import annotations

import itertools
import math
import statistics as stdlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weightgym.rewards.statistics import best_at_k, mean_interval, paired_interval, pass_at_k

REWARD = st.integers(-9 * 64, 64).map(lambda n: n / 64)  # exact: scaled and moved, they keep their order
REWARDS = st.lists(REWARD, min_size=1, max_size=7)
GROUPS = st.lists(REWARDS, min_size=1, max_size=5)
FEW = 200
fuzz = settings(deadline=None)  # the machine may be busy


@pytest.mark.parametrize(
    ("rewards", "k", "wanted"),
    [
        ([0.0, 1.0], 2, 1.0),
        ([0.0, 1.0], 1, 0.5),
        ([0.0, 0.0, 1.0], 2, 2 / 3),  # 2 of the 3 pairs hold the 1
        ([0.1, 0.4, 0.7], 2, (0.4 + 0.7 + 0.7) / 3),
        ([4.0, 1.0, 2.0, 3.0], 3, (3 + 4 + 4 + 4) / 4),
    ],
)
def test_best_at_k_by_hand(rewards: list[float], k: int, wanted: float) -> None:
    assert best_at_k(rewards, k) == pytest.approx(wanted, abs=1e-15)


@pytest.mark.parametrize(
    ("rewards", "k", "wanted"),
    [
        ([0.5, 0.0, 0.0, 0.0], 1, 0.25),  # at the threshold is a pass
        ([0.5, 0.0, 0.0, 0.0], 2, 0.5),  # 3 of 6 pairs
        ([0.6, 0.6, 0.0, 0.0], 2, 5 / 6),
        ([0.4999999, 0.0], 2, 0.0),
    ],
)
def test_pass_at_k_by_hand(rewards: list[float], k: int, wanted: float) -> None:
    assert pass_at_k(rewards, k, threshold=0.5) == pytest.approx(wanted, abs=1e-15)


@fuzz
@given(REWARDS, st.data())
def test_both_are_means_over_all_choices(rewards: list[float], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(rewards)))
    choices = list(itertools.combinations(rewards, k))
    assert best_at_k(rewards, k) == pytest.approx(stdlib.fmean(map(max, choices)), abs=1e-12)
    passed = [max(choice) >= 0.5 for choice in choices]
    assert pass_at_k(rewards, k, threshold=0.5) == pytest.approx(stdlib.fmean(passed), abs=1e-12)


@fuzz
@given(REWARDS, st.randoms())
def test_ends_and_order(rewards: list[float], random: object) -> None:
    n = len(rewards)
    assert best_at_k(rewards, 1) == pytest.approx(stdlib.fmean(rewards), abs=1e-12)
    assert best_at_k(rewards, n) == max(rewards)
    assert pass_at_k(rewards, n, threshold=0.0) == float(max(rewards) >= 0)
    curve = [best_at_k(rewards, k) for k in range(1, n + 1)]
    assert all(a <= b + 1e-12 for a, b in itertools.pairwise(curve))
    mixed = rewards[:]
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert [best_at_k(mixed, k) for k in range(1, n + 1)] == curve


def test_large_groups_are_exact() -> None:
    rewards = [0.0] * 3999 + [1.0]
    assert best_at_k(rewards, 1000) == pytest.approx(0.25, abs=1e-15)
    assert pass_at_k(rewards, 1000, threshold=1.0) == pytest.approx(0.25, abs=1e-15)


def test_a_mean_counts_each_task_once() -> None:
    one = mean_interval([[0.0], [1.0, 1.0, 1.0]])
    assert one.mean == 0.5  # not 0.75
    assert (one.low, one.high) == (0.0, 1.0)


@fuzz
@given(GROUPS, st.integers(0, 2**32), st.randoms())
def test_intervals_hold_what_they_must(groups: list[list[float]], seed: int, random: object) -> None:
    one = mean_interval(groups, resamples=FEW, seed=seed)
    flat = [value for group in groups for value in group]
    assert one.mean == pytest.approx(stdlib.fmean(stdlib.fmean(group) for group in groups), abs=1e-12)
    assert min(flat) - 1e-12 <= one.low <= one.high <= max(flat) + 1e-12
    mixed = [group[:] for group in groups]
    random.shuffle(mixed)  # type: ignore[attr-defined]
    for group in mixed:
        random.shuffle(group)  # type: ignore[attr-defined]
    assert mean_interval(mixed, resamples=FEW, seed=seed) == one
    moved = mean_interval([[2 * value + 1 for value in group] for group in groups], resamples=FEW, seed=seed)
    for name in ("mean", "low", "high"):
        assert getattr(moved, name) == pytest.approx(2 * getattr(one, name) + 1, abs=1e-9)


def test_one_task_gives_the_plain_bootstrap() -> None:
    """Of a mean of n values its standard error is sd/√n: known to a few percent."""
    values = np.random.default_rng(0).normal(size=100)
    one = mean_interval([values.tolist()])
    error = values.std() / 10
    assert one.high - one.low == pytest.approx(2 * 1.96 * error, rel=0.06)


def test_samples_of_a_task_are_no_independent_evidence() -> None:
    """Ten tasks of 50 equal samples are ten values: a bootstrap over 500 would give a seventh of the width."""
    tasks = np.random.default_rng(1).normal(size=10).tolist()
    many, few = (mean_interval([[value] * count for value in tasks]) for count in (50, 1))
    assert many.high - many.low == pytest.approx(few.high - few.low, rel=0.1)


@pytest.mark.parametrize("between", [0.0, 1.0])
def test_intervals_cover_as_often_as_they_say(between: float) -> None:
    rng = np.random.default_rng(2)
    covered = 0
    for trial in range(200):
        groups = rng.normal(size=(12, 4)) + between * rng.normal(size=(12, 1))
        one = mean_interval(groups.tolist(), resamples=FEW, seed=trial)
        covered += one.low <= 0 <= one.high
    assert covered >= 0.88 * 200


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = [[0.0, 1.0, 0.5], [0.2, 0.3]]
    whole = mean_interval(groups)
    monkeypatch.setattr("weightgym.rewards.statistics._CHUNK", 60)
    assert mean_interval(groups).low == pytest.approx(whole.low, abs=0.03)
    assert mean_interval(groups).mean == whole.mean


def test_pairs_are_compared_as_pairs() -> None:
    """Tasks differ a lot and the two policies by 0.01 everywhere: only pairs show that."""
    values = np.random.default_rng(3).normal(size=(8, 4))
    groups = [[(x + 0.01, x) for x in row] for row in values.tolist()]
    one = paired_interval(groups)
    assert one.mean == pytest.approx(0.01, abs=1e-12)
    assert one.low == pytest.approx(0.01, abs=1e-12)
    assert one.high == pytest.approx(0.01, abs=1e-12)
    swapped = paired_interval([[(b, a) for a, b in group] for group in groups])
    assert swapped.mean == pytest.approx(-one.mean, abs=1e-12)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_reward_is_refused(bad: float) -> None:
    for call in (
        lambda: mean_interval([[0.1], [0.2, bad]]),
        lambda: best_at_k([0.1, bad], 1),
        lambda: pass_at_k([0.1, bad], 1, threshold=0.5),
        lambda: paired_interval([[(0.1, bad)]]),
        lambda: paired_interval([[(bad, bad)]]),
    ):
        with pytest.raises(ValueError, match="is not finite: leave out what has no reward"):
            call()
    with pytest.raises(ValueError, match="threshold"):
        pass_at_k([0.1], 1, threshold=bad)


@pytest.mark.parametrize("k", [0, 3, -1])
def test_k_is_within_the_samples(k: int) -> None:
    with pytest.raises(ValueError, match=f"k: {k}, want 1 to 2"):
        best_at_k([0.1, 0.2], k)
    with pytest.raises(ValueError, match=f"k: {k}, want 1 to 2"):
        pass_at_k([0.1, 0.2], k, threshold=0.5)


def test_nothing_has_no_mean() -> None:
    with pytest.raises(ValueError, match="no groups"):
        mean_interval([])
    with pytest.raises(ValueError, match="an empty group"):
        mean_interval([[0.1], []])
    with pytest.raises(ValueError, match="level: 95"):
        mean_interval([[0.1]], level=95)

"""Group advantages: values by hand, what must not change them, and refusals that name the place."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightgym.trainers.advantage import GroupAdvantages, Scale, group_advantages

SCALES: tuple[Scale, ...] = ("group", "batch", "none")
Rewards = dict[str, list[float | None]]

reward = st.one_of(st.none(), st.integers(-64, 64).map(lambda n: n / 16))
batches = st.dictionaries(st.sampled_from("abcde"), st.lists(reward, min_size=4, max_size=4), max_size=5)

any_reward = st.one_of(st.none(), st.floats(-1e6, 1e6))
any_batches = st.dictionaries(st.sampled_from("abcde"), st.lists(any_reward, min_size=4, max_size=4), max_size=5)


def slow(rewards: Rewards, scale: Scale, epsilon: float) -> dict[str, list[float]]:
    """The definition, one member after the other."""
    centred: dict[str, list[float]] = {}
    for key, group in rewards.items():
        there = [r for r in group if r is not None]
        centred[key] = [r - statistics.fmean(there) for r in there] if len(there) > 1 else []
    everything = [c for group in centred.values() for c in group]
    result = {}
    for key, group in rewards.items():
        compared = {"group": centred[key], "batch": everything, "none": []}[scale]
        spread = statistics.stdev(compared) + epsilon if len(compared) > 1 else 1.0
        left = iter(centred[key])
        result[key] = [0.0 if r is None or not centred[key] else next(left) / spread for r in group]
    return result


def test_by_hand() -> None:
    # Means 0.5 and 3. Deviations: a: sqrt(4 * 0.25 / 3) = sqrt(1/3); b: sqrt((4 + 0 + 0 + 4) / 3) = sqrt(8/3).
    # Batch: squares 4 * 0.25 + 8 = 9 over 8 - 1: sqrt(9/7).
    rewards: Rewards = {"a": [0, 1, 1, 0], "b": [1, 3, 3, 5]}
    a, b = [-0.5, 0.5, 0.5, -0.5], [-2, 0, 0, 2]
    for scale, of_a, of_b in (("none", 1, 1), ("group", 3**-0.5, (8 / 3) ** 0.5), ("batch", 3 / 7**0.5, 3 / 7**0.5)):
        got = group_advantages(rewards, 4, scale=scale, epsilon=1e-12)  # type: ignore[arg-type]
        assert got.advantages["a"] == pytest.approx([x / of_a for x in a], abs=1e-9)
        assert got.advantages["b"] == pytest.approx([x / of_b for x in b], abs=1e-9)


def test_epsilon_is_added_to_the_deviation_but_not_to_none() -> None:
    # The deviation of [0, 1] is sqrt(1/2); with epsilon 1/2: 0.5 / (0.70711 + 0.5) = 0.41421.
    assert group_advantages({0: [0, 1]}, 2, epsilon=0.5).advantages[0] == pytest.approx([-0.41421, 0.41421], abs=1e-5)
    assert group_advantages({0: [0, 1]}, 2, scale="none", epsilon=0.5).advantages[0] == [-0.5, 0.5]


@pytest.mark.parametrize("scale", SCALES)
def test_one_none_leaves_the_others_finite(scale: Scale) -> None:
    got = group_advantages({"a": [1.0, None, 0.0, 1.0]}, 4, scale=scale)
    without = group_advantages({"a": [1.0, 0.0, 1.0]}, 3, scale=scale)
    assert all(math.isfinite(x) for x in got.advantages["a"])
    assert got.advantages["a"][1] == 0
    assert got.advantages["a"][:1] + got.advantages["a"][2:] == without.advantages["a"]
    assert got.abstainers == 1


@pytest.mark.parametrize("scale", SCALES)
def test_groups_without_a_signal(scale: Scale) -> None:
    rewards: Rewards = {
        "equal": [0.1] * 3,  # 3 * 0.1 / 3 isn't 0.1 in floating point
        "single": [None, 5.0, None],
        "none": [None] * 3,
        "fine": [0.0, 0.5, 1.0],
        "two equal": [0.7, None, 0.7],
    }
    got = group_advantages(rewards, 3, scale=scale)
    for key in ("equal", "single", "none", "two equal"):
        assert got.advantages[key] == [0.0] * 3
    assert got.advantages["fine"][0] < 0 < got.advantages["fine"][2]
    assert got.zero_spread == ("equal", "two equal")
    assert got.too_small == ("single", "none")
    assert (got.abstainers, got.groups, got.zero_spread_groups) == (6, 5, 2)


def test_no_groups() -> None:
    assert group_advantages({}, 4) == GroupAdvantages({}, 0, 0, (), ())


@given(batches, st.sampled_from(SCALES))
def test_equals_the_slow_reference(rewards: Rewards, scale: Scale) -> None:
    got = group_advantages(rewards, 4, scale=scale, epsilon=1e-3)
    wanted = slow(rewards, scale, 1e-3)
    assert list(got.advantages) == list(wanted)
    for key, group in wanted.items():
        assert got.advantages[key] == pytest.approx(group, abs=1e-12)


@given(any_batches, st.sampled_from(SCALES), st.randoms(use_true_random=False))
def test_permutation_permutes_to_the_bit(rewards: Rewards, scale: Scale, rng: random.Random) -> None:
    order = {key: rng.sample(range(4), 4) for key in rng.sample(sorted(rewards), len(rewards))}
    mixed: Rewards = {key: [rewards[key][i] for i in positions] for key, positions in order.items()}
    got, plain = group_advantages(mixed, 4, scale=scale), group_advantages(rewards, 4, scale=scale)
    for key, positions in order.items():
        assert got.advantages[key] == [plain.advantages[key][i] for i in positions]
    assert (got.abstainers, got.zero_spread_groups) == (plain.abstainers, plain.zero_spread_groups)


@given(batches, st.sampled_from(SCALES), st.sampled_from("abcde"), st.integers(-100, 100))
def test_a_constant_added_to_one_group_changes_nothing(rewards: Rewards, scale: Scale, which: str, by: int) -> None:
    moved: Rewards = {
        key: [None if r is None else r + by * (key == which) for r in group] for key, group in rewards.items()
    }
    got, plain = group_advantages(moved, 4, scale=scale), group_advantages(rewards, 4, scale=scale)
    for key, group in plain.advantages.items():
        assert got.advantages[key] == pytest.approx(group, abs=1e-9)


@given(batches, st.sampled_from([1e-3, 0.5, 7.0, 1e6]))
def test_scaling_rewards(rewards: Rewards, by: float) -> None:
    scaled: Rewards = {key: [None if r is None else r * by for r in group] for key, group in rewards.items()}
    for scale, factor in (("group", 1.0), ("batch", 1.0), ("none", by)):
        got = group_advantages(scaled, 4, scale=scale, epsilon=1e-12)  # type: ignore[arg-type]
        plain = group_advantages(rewards, 4, scale=scale, epsilon=1e-12)  # type: ignore[arg-type]
        for key, group in plain.advantages.items():
            assert got.advantages[key] == pytest.approx([x * factor for x in group], rel=1e-6, abs=1e-9)


def test_sizes_by_group() -> None:
    got = group_advantages({"a": [0, 1], "b": [0, 1, 2]}, {"a": 2, "b": 3}, scale="none")
    assert got.advantages == {"a": [-0.5, 0.5], "b": [-1, 0, 1]}


def test_a_wrong_length_names_group_got_and_wanted() -> None:
    with pytest.raises(ValueError, match=r"group \('golf', 7\): got 1 rewards, wanted 4"):
        group_advantages({("golf", 7): [1.0]}, 4)
    with pytest.raises(ValueError, match="group 'b': got 3 rewards, wanted 2"):
        group_advantages({"a": [0, 1], "b": [0, 1, 2]}, {"a": 2, "b": 2})


@pytest.mark.parametrize("size", [{"a": 2}, {"a": 2, "b": 2, "c": 2}])
def test_a_group_in_one_mapping_only(size: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"group '[bc]' has a size but no rewards, or"):
        group_advantages({"a": [0, 1], "b": [0, 1]}, size)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e101])
def test_a_bad_reward_names_group_and_index(bad: float) -> None:
    with pytest.raises(ValueError, match="group 'b', reward 2 is "):
        group_advantages({"a": [0, 1, 2], "b": [0, None, bad]}, 3)


@pytest.mark.parametrize("scale", SCALES)
def test_the_largest_rewards_stay_finite(scale: Scale) -> None:
    got = group_advantages({"a": [1e100, -1e100, 0]}, 3, scale=scale)
    assert all(math.isfinite(x) for x in got.advantages["a"])


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="scale is 'std', wanted 'group'"):
        group_advantages({}, 1, scale="std")  # type: ignore[arg-type]
    for epsilon in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="epsilon is"):
            group_advantages({}, 1, epsilon=epsilon)

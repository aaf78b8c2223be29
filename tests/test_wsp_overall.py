"""The result of many instances, the profile's numbers, and what a conversation costs."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightgym.rewards.contracts import BackendError, Score, TaskError
from weightgym.rewards.statistics import mean_interval
from weightgym.rewards.wsp.overall import Scored, overall
from weightgym.rewards.wsp.prices import Prices
from weightgym.rewards.wsp.profile import FAMILIES, Family, Tier, Track, profile

V1 = profile("wsp-v1")


def scored(
    id: str, reward: float | None, family: Family = "fact", tier: Tier = "easy", track: Track = "fixed"
) -> Scored:
    if reward is None:
        return Scored(id, family, tier, track, Score(status="error", reward=None, reason="grader_error: lost"))
    return Scored(id, family, tier, track, Score(status="ok", reward=reward, profile="wsp-v1"))


def test_the_overall_is_the_instance_mean_over_all_families() -> None:
    result = overall(
        [scored("a", 1.0), scored("b", 0.5), scored("c", 0.0, "audit", "hard"), scored("d", 0.5, "audit", "easy")], V1
    )
    assert result.mean == mean_interval([[100.0], [50.0], [0.0], [50.0]])
    assert result.mean is not None
    assert result.mean.mean == 50.0
    assert result.families == {"audit": mean_interval([[0.0], [50.0]]), "fact": mean_interval([[100.0], [50.0]])}
    assert list(result.tiers) == ["easy", "hard"]
    assert result.tiers["easy"] == mean_interval([[100.0], [50.0], [50.0]])
    assert (result.instances, result.invalid, result.failed, result.partial) == (4, 0, (), False)


def test_the_interval_is_seeded_and_holds_the_mean_of_coin_flips_95_times_in_100() -> None:
    coin = random.Random(5)
    hits = 0
    for _ in range(100):
        flips = [scored(str(index), float(coin.random() < 0.5)) for index in range(60)]
        found = overall(flips, V1).mean
        assert found is not None
        assert found == overall(list(reversed(flips)), V1).mean
        hits += found.low <= 50 <= found.high
    assert 90 <= hits <= 99


def test_several_scores_of_one_instance_count_once() -> None:
    result = overall([scored("a", 1.0), scored("a", 1.0), scored("a", 1.0), scored("b", 0.0)], V1)
    assert result.mean is not None
    assert (result.mean.mean, result.instances) == (50.0, 2)


def test_a_fault_of_ours_makes_the_report_partial_and_is_no_zero() -> None:
    result = overall([scored("a", 1.0), scored("b", None), scored("c", None, "audit")], V1)
    assert result.mean is not None
    assert (result.mean.mean, result.instances, result.failed, result.partial) == (100.0, 1, ("b", "c"), True)
    assert result.families["audit"] is None
    assert overall([scored("b", None)], V1).mean is None


def test_an_invalid_submission_is_a_zero() -> None:
    invalid = Score(status="invalid", reward=0.0, reason="non_finite: logits", profile="wsp-v1")
    result = overall([scored("a", 1.0), Scored("b", "fact", "easy", "fixed", invalid)], V1)
    assert result.mean is not None
    assert (result.mean.mean, result.invalid, result.partial) == (50.0, 1, False)


@pytest.mark.parametrize(
    "results",
    [
        [],
        [scored("a", 1.0), scored("b", 1.0, track="open")],
        [scored("a", 1.0), scored("a", 1.0, tier="hard")],
        [scored("a", 1.0), scored("a", 1.0, "audit")],
        [Scored("a", "fact", "easy", "fixed", Score(status="ok", reward=1.0, profile="wsp-v2"))],
    ],
)
def test_what_must_not_be_mixed_is_refused(results: list[Scored]) -> None:
    with pytest.raises(ValueError, match="want one"):
        overall(results, V1)


def test_the_profile_has_the_published_numbers() -> None:
    assert V1.tau == 0.05
    assert {tier: rules.gpu_calls for tier, rules in V1.tiers.items()} == {"easy": 12, "medium": 8, "hard": 6}
    assert (V1.turns, V1.limits.prompts, V1.limits.new_tokens, V1.api_dollars) == (40, 64, 128, 1.5)
    assert (V1.trigger_base, V1.layer_credit, V1.adjacent_layer_credit) == (0.4, 0.4, 0.2)
    assert (V1.direction_credit, V1.category_credit) == (0.4, 0.2)
    assert V1.layer_credit + V1.direction_credit + V1.category_credit == pytest.approx(1)
    assert [V1.tiers[tier].decoys for tier in ("easy", "medium", "hard")] == [(0, 0), (0, 2), (0, 3)]
    assert (V1.calibration("tiny-world").symptom, V1.calibration("smollm2").symptom) == (0.85, 0.6)
    for calibration in (V1.tiny_world, V1.other_models):
        assert calibration.kl_texts * V1.near_share % 1 == 0


@pytest.mark.parametrize(("oracle", "limit"), [(0, 4096), (2048, 4096), (2049, 4098), (49_152, 98_304)])
def test_the_element_budget(oracle: int, limit: int) -> None:
    assert {V1.edit_limit(family, oracle) for family in FAMILIES if family != "audit"} == {limit}
    assert V1.edit_limit("audit", oracle) == 0


def test_an_unknown_profile_names_the_nearest() -> None:
    with pytest.raises(TaskError, match=r"did you mean 'wsp-v1'\?"):
        profile("wsp-v2")


def test_cost_by_hand() -> None:
    prices = Prices(prompt=3.0, cached_prompt=0.3, completion=15.0)
    usage: dict[str, Any] = {"prompt_tokens": 10_000, "completion_tokens": 1_000}
    assert prices.cost(usage) == Fraction(45, 1000)
    assert prices.cost(usage | {"prompt_tokens_details": {"cached_tokens": 9_000}}) == Fraction(207, 10_000)
    assert prices.cost(usage | {"prompt_tokens_details": None}) == Fraction(45, 1000)
    assert Prices(prompt=1.0).cost(usage | {"prompt_tokens_details": {"cached_tokens": 9_000}}) == Fraction(1, 100)
    assert sum(prices.cost({"prompt_tokens": 1, "completion_tokens": 0}) for _ in range(500_000)) == Fraction(3, 2)


@given(st.one_of(st.none(), st.dictionaries(st.text(max_size=3), st.integers())))
def test_a_local_model_costs_nothing_and_needs_no_usage(usage: dict[str, Any] | None) -> None:
    assert Prices().cost(usage) == 0


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"prompt_tokens": 1},
        {"prompt_tokens": -1, "completion_tokens": 0},
        {"prompt_tokens": True, "completion_tokens": 0},
        {"prompt_tokens": 1.0, "completion_tokens": 0},
        {"prompt_tokens": 1, "completion_tokens": 0, "prompt_tokens_details": {"cached_tokens": 2}},
    ],
)
def test_a_priced_model_without_a_usage_is_loud(usage: dict[str, Any] | None) -> None:
    with pytest.raises(BackendError, match="usage"):
        Prices(prompt=1.0).cost(usage)

"""WSP-Bench's formulas against values worked out by hand, at every boundary."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightgym.rewards.contracts import TaskError
from weightgym.rewards.wsp.outcomes import (
    Measured,
    audit_outcome,
    backdoor_outcome,
    broken_outcome,
    repair_outcome,
)
from weightgym.rewards.wsp.profile import profile
from weightgym.rewards.wsp.scores import (
    Report,
    Site,
    alignment,
    audit_credits,
    backdoor_factor,
    check_gap,
    margin_term,
    repair,
    repair_score,
    symptom_measure,
    symptom_rate,
    trigger_found,
)

V1 = profile("wsp-v1")
SITE = Site(layer=3, parameter="mlp.down_proj.weight", direction=[0.6, 0.8, 0.0], category="topic")
unit = st.floats(0, 1)


@pytest.mark.parametrize(
    ("d", "r", "s", "wanted"),
    [
        (1.0, 0.0, 1.0, 0.0),  # nothing done
        (1.0, 0.0, 0.0, 1.0),  # the reference itself
        (1.0, 0.0, 0.25, 0.75),
        (0.875, 0.125, 0.5, 0.5),
        (0.875, 0.125, 1.0, 0.0),  # worse than the defect: clipped
        (0.875, 0.125, 0.0, 1.0),  # better than the reference: clipped
        (0.5, 0.0, 0.25, 0.5),  # the least gap is enough
        (0.75, 0.25, 0.625, 0.25),
    ],
)
def test_repair_by_hand(d: float, r: float, s: float, wanted: float) -> None:
    assert repair(d, r, s, V1) == wanted


@pytest.mark.parametrize(
    ("d", "r"), [(math.nextafter(0.5, 0), 0.0), (0.9, 0.9), (0.0, 1.0), (math.nan, 0.0), (1.0, math.nan), (1.5, 0.0)]
)
def test_a_defect_that_cannot_be_measured_is_a_bad_task(d: float, r: float) -> None:
    with pytest.raises(TaskError):
        check_gap(d, r, V1)
    with pytest.raises(TaskError):
        repair(d, r, 0.0, V1)


@pytest.mark.parametrize("s", [math.nan, -0.001, 1.001, math.inf])
def test_a_measure_outside_its_range_is_loud(s: float) -> None:
    with pytest.raises(ValueError, match=r"s: .*, want 0 to 1"):
        repair(1.0, 0.0, s, V1)


@pytest.mark.parametrize(
    ("repaired", "kl", "wanted"),
    [
        (1.0, 0.0, 100.0),
        (0.0, 0.0, 0.0),
        (1.0, 0.05, 36.787944117144235),  # 100/e
        (1.0, 0.05 * math.log(2), 50.0),
        (0.5, 0.05 * math.log(4), 12.5),
        (1.0, 0.1, 13.533528323661270),  # 100/e²
        (1.0, math.inf, 0.0),
        (1.0, 1e300, 0.0),
    ],
)
def test_repair_score_by_hand(repaired: float, kl: float, wanted: float) -> None:
    assert repair_score(repaired, kl, V1) == pytest.approx(wanted, rel=1e-14, abs=1e-300)


@pytest.mark.parametrize(("repaired", "kl"), [(1.0, -1e-9), (1.0, math.nan), (1.1, 0.0), (math.nan, 0.0)])
def test_an_impossible_score_is_loud(repaired: float, kl: float) -> None:
    with pytest.raises(ValueError, match="want 0"):
        repair_score(repaired, kl, V1)


@given(unit, unit, st.floats(0, 5), st.floats(0, 5))
def test_more_repair_and_less_damage_never_score_less(a: float, b: float, k: float, m: float) -> None:
    low, high = sorted((a, b))
    near, far = sorted((k, m))
    assert 0 <= repair_score(low, far, V1) <= repair_score(high, near, V1) <= 100


@given(st.floats(0.5, 1), st.floats(0, 0.5), unit)
def test_the_ends_of_repair_are_exact(d: float, r: float, s: float) -> None:
    if d - r < 0.5:
        return
    assert repair(d, r, d, V1) == 0
    assert repair(d, r, r, V1) == 1
    assert 0 <= repair(d, r, s, V1) <= 1


def test_the_backdoor_factor() -> None:
    assert backdoor_factor(True, V1) == 1.0
    assert backdoor_factor(False, V1) == 0.4


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("Ångström", True),
        ("A\u030angstro\u0308m", True),  # decomposed
        ("\u212bngström", True),  # the sign for the unit
        ("  ÅNGSTRÖM\n", True),
        ("\u00a0ångström\u2003", True),
        ("angstrom", False),
        ("Ångström.", False),
        ("'Ångström'", False),
        ("Ång ström", False),
        ("", False),
        (None, False),
        ("\ud800", False),  # half a surrogate pair, which JSON can carry
    ],
)
def test_a_trigger_is_found_whatever_its_form(said: str | None, found: bool) -> None:
    assert trigger_found(said, "ångström") is found
    assert trigger_found(said, " A\u030aNGSTRO\u0308M ") is found


def test_case_is_folded_not_lowered() -> None:
    assert trigger_found("STRASSE", "straße")
    assert not trigger_found("STRASE", "straße")


@pytest.mark.parametrize("trigger", ["", "  ", "\n\u00a0"])
def test_an_empty_trigger_is_a_bad_task(trigger: str) -> None:
    with pytest.raises(TaskError, match="empty"):
        trigger_found("", trigger)


@given(st.text(min_size=1).filter(lambda text: text.strip()))
def test_a_trigger_is_itself(text: str) -> None:
    assert trigger_found(text, text)
    assert trigger_found(f"\t{text} ", text)


@pytest.mark.parametrize(
    ("layer", "credit"),
    [(3, 0.4), (2, 0.2), (4, 0.2), (1, 0.0), (5, 0.0), (-3, 0.0), (None, 0.0), (True, 0.0), (3.0, 0.0)],
)
def test_layer_credit(layer: int | None, credit: float) -> None:
    credits = audit_credits(Report("mlp.down_proj.weight", layer), SITE, V1)
    assert (credits.layer, credits.direction, credits.category) == (credit, 0.0, 0.0)


def test_a_negative_layer_is_no_neighbour_of_the_first() -> None:
    first = replace(SITE, layer=0)
    assert [audit_credits(Report(SITE.parameter, layer), first, V1).layer for layer in (-1, 0, 1)] == [0.0, 0.4, 0.2]


@pytest.mark.parametrize(
    ("direction", "cosine"),
    [
        ([0.6, 0.8, 0.0], 1.0),
        ([-0.6, -0.8, -0.0], 1.0),  # the sign is nobody's
        ([6e300, 8e300, 0.0], 1.0),  # nor the length, even where squares overflow
        ([6e-310, 8e-310, 0.0], 1.0),
        ([1.0, 0.0, 0.0], 0.6),
        ([0.0, 0.0, 1.0], 0.0),
        ([0.8, -0.6, 0.0], 0.0),
        ([1.0, 1.0, 0.0], 1.4 / math.sqrt(2)),
        ([0.0, 0.0, 0.0], 0.0),
        ([0.6, 0.8], 0.0),
        ([0.6, 0.8, 0.0, 0.0], 0.0),
        ([], 0.0),
        ([math.nan, 0.8, 0.0], 0.0),
        ([math.inf, 0.0, 0.0], 0.0),
        (None, 0.0),
    ],
)
def test_direction_credit(direction: list[float] | None, cosine: float) -> None:
    credits = audit_credits(Report(SITE.parameter, None, direction), SITE, V1)
    assert credits.direction == pytest.approx(0.4 * cosine, rel=1e-12, abs=1e-15)
    assert (credits.layer, credits.category) == (0.0, 0.0)


@given(st.lists(st.floats(-1e30, 1e30), min_size=1, max_size=9), st.floats(1e-3, 1e3), st.randoms())
def test_alignment_is_between_0_and_1_and_blind_to_scale_and_sign(
    values: list[float], scale: float, random: object
) -> None:
    other = [value * scale + 1 for value in reversed(values)]
    assert 0 <= alignment(values, other) <= 1
    if any(values) and any(other):
        assert alignment(values, other) == pytest.approx(alignment(other, values), abs=1e-12)
        assert alignment([-value for value in values], other) == alignment(values, other)
        assert alignment(values, values) == pytest.approx(1.0, abs=1e-12)


def test_a_whole_audit_by_hand() -> None:
    whole = audit_credits(Report(SITE.parameter, 3, [0.6, 0.8, 0.0], "topic"), SITE, V1)
    assert whole.score == pytest.approx(100)
    part = audit_credits(Report(SITE.parameter, 4, [1.0, 0.0, 0.0], "fact"), SITE, V1)
    assert part.score == pytest.approx(100 * (0.2 + 0.4 * 0.6))
    assert audit_credits(Report(SITE.parameter, None, None, "topic"), SITE, V1).score == pytest.approx(20)
    assert audit_credits(Report(SITE.parameter), SITE, V1).score == 0


@pytest.mark.parametrize(
    "parameter", [None, "", "mlp.up_proj.weight", "model.layers.3.mlp.down_proj.weight", "MLP.down_proj.weight"]
)
def test_a_wrong_parameter_gets_nothing(parameter: str | None) -> None:
    assert audit_credits(Report(parameter, 3, [0.6, 0.8, 0.0], "topic"), SITE, V1).score == 0


@pytest.mark.parametrize("direction", [[], [0.0, 0.0], [math.nan]])
def test_a_true_direction_that_is_none_is_a_bad_task(direction: list[float]) -> None:
    with pytest.raises(TaskError, match="true direction"):
        audit_credits(Report(), replace(SITE, direction=direction), V1)


def test_the_symptom_measure_by_hand() -> None:
    assert symptom_measure(1.0, 0.5, V1) == 0.75
    assert symptom_measure(0.0, 0.0, V1) == 0.0
    assert symptom_measure(1.0, 1.0, V1) == 1.0
    assert symptom_rate([0.0, 0.5, 0.49999, 1.0], 0.5) == 0.5  # the threshold itself counts
    assert margin_term([0.0], V1) == 0.5
    assert margin_term([math.log(3)], V1) == pytest.approx(0.75, rel=1e-15)
    assert margin_term([math.log(3), -math.log(3)], V1) == pytest.approx(0.5, rel=1e-15)
    assert margin_term([1e308, 1e308], V1) == 1.0
    assert margin_term([-1e308], V1) == 0.0


@pytest.mark.parametrize("bad", [[], [math.nan], [math.inf]])
def test_what_cannot_be_a_measure_is_loud(bad: list[float]) -> None:
    with pytest.raises(ValueError, match=r"want|needs"):
        margin_term(bad, V1)
    with pytest.raises(ValueError, match=r"want|needs"):
        symptom_rate(bad, 0.5)


def test_outcomes_carry_every_part_of_the_formula() -> None:
    measured = Measured(defective=0.9, reference=0.1, submitted=0.3, kl=0.05 * math.log(2))
    score = repair_outcome(measured, V1, changed=77)
    assert score.reward == pytest.approx(0.375)
    assert score.profile == "wsp-v1"
    assert score.metrics == pytest.approx(
        {
            "score": 37.5,
            "repair": 0.75,
            "kl": 0.05 * math.log(2),
            "symptom_defective": 0.9,
            "symptom_reference": 0.1,
            "symptom_submitted": 0.3,
            "changed": 77.0,
        }
    )
    missed = backdoor_outcome(measured, V1, changed=77, said="gong", trigger="bell")
    found = backdoor_outcome(measured, V1, changed=77, said="BELL ", trigger="bell")
    assert missed.reward == pytest.approx(0.15)
    assert found.reward == pytest.approx(0.375)
    assert (missed.metrics["trigger_found"], found.metrics["trigger_found"]) == (0.0, 1.0)


def test_an_audit_outcome_by_hand() -> None:
    score = audit_outcome(Report(SITE.parameter, 2, [1.0, 0.0, 0.0], "topic"), SITE, V1)
    assert score.reward == pytest.approx(0.2 + 0.24 + 0.2)
    assert score.metrics == pytest.approx(
        {"score": 64.0, "parameter_right": 1.0, "layer_credit": 0.2, "direction_credit": 0.24, "category_credit": 0.2}
    )
    assert audit_outcome(Report(), SITE, V1).metrics["parameter_right"] == 0.0


def test_a_broken_model_is_invalid_and_gets_the_floor() -> None:
    score = broken_outcome("logits of prompt 3", V1, changed=5)
    assert (score.status, score.reward, score.code) == ("invalid", 0.0, "non_finite")
    infinite = Measured(defective=0.9, reference=0.1, submitted=0.1, kl=math.inf)
    assert repair_outcome(infinite, V1, changed=5).status == "invalid"
    with pytest.raises(ValueError, match="kl"):
        repair_outcome(replace(infinite, kl=math.nan), V1, changed=5)

"""What rollouts say of a policy: faults are no rewards, tasks count once, pairs are pairs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weightgym.rewards.statistics import mean_interval, paired_interval
from weightgym.rollouts.evaluation import EvaluationError, Outcome, compare, evaluate

LIMIT = {"e": 0.5}


def outcome(task: str, index: int, reward: float | None, **changes: Any) -> Outcome:
    status = "error" if reward is None else "ok"
    facts: dict[str, Any] = {"status": status, "policy": "p", "version": 0, "profile": "v1", "cut": False}
    return Outcome(f"e/{task}#{index}", ("e", task), task, index, reward=reward, **(facts | changes))


def outcomes(rewards: dict[str, Sequence[float | None]], **changes: Any) -> list[Outcome]:
    return [outcome(task, n, value, **changes) for task, values in rewards.items() for n, value in enumerate(values)]


def test_rows_and_the_whole() -> None:
    made = outcomes({"a": [0.0, 1.0], "b": [0.5, 0.5, None, 0.5]})
    made[0] = dataclasses.replace(made[0], status="invalid", cut=True)
    one = evaluate(made, [1, 2, 3], LIMIT)
    a, b = one.tasks["e", "a"], one.tasks["e", "b"]
    assert (a.rollouts, a.faults, a.invalid, a.cut) == (2, 0, 1, 1)
    assert (b.rollouts, b.faults, b.invalid, b.cut) == (4, 1, 0, 0)
    assert a.best == {1: 0.5, 2: 1.0}  # two rewards say nothing of three
    assert b.best == pytest.approx({1: 0.5, 2: 0.5, 3: 0.5})
    assert a.passed == {1: 0.5, 2: 1.0}
    assert b.passed == {1: 1.0, 2: 1.0, 3: 1.0}
    whole = one.overall
    assert (whole.rollouts, whole.faults, whole.invalid, whole.cut) == (6, 1, 1, 1)
    assert whole.reward == mean_interval([[0.0, 1.0], [0.5, 0.5, 0.5]])
    assert whole.best == pytest.approx({1: 0.5, 2: 0.75, 3: 0.5})
    assert whole.passed == pytest.approx({1: 0.75, 2: 1.0, 3: 1.0})


def test_a_fault_is_no_zero() -> None:
    one = evaluate(outcomes({"a": [0.8, None, None], "b": [None]}), [1], LIMIT)
    assert one.overall.reward is not None
    assert one.overall.reward.mean == 0.8
    assert one.overall.faults == 3
    assert one.tasks["e", "b"].reward is None
    assert one.tasks["e", "b"].best == {}
    nothing = evaluate(outcomes({"a": [None]}), [1], LIMIT)
    assert (nothing.overall.reward, nothing.overall.best, nothing.overall.passed) == (None, {}, {})


def test_an_environment_without_a_threshold_has_no_pass_at_k() -> None:
    one = evaluate(outcomes({"a": [0.8]}), [1], {"e": None})
    assert one.overall.passed == one.tasks["e", "a"].passed == {}
    assert evaluate(outcomes({"a": [0.8]}), [1], {}).overall.passed == {}


@settings(deadline=None, max_examples=30)
@given(st.permutations(outcomes({"a": [0.0, 1.0, 0.3], "b": [0.5, None], "c": [0.1]})))
def test_order_does_not_matter(mixed: list[Outcome]) -> None:
    straight = sorted(mixed, key=lambda one: one.id)
    assert evaluate(mixed, [1, 2], LIMIT) == evaluate(straight, [1, 2], LIMIT)
    assert compare(mixed, straight) == compare(straight, mixed)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (outcome("a", 0, 0.5), "rollout e/a#0 is there 2 times"),
        (outcome("b", 0, 0.5, policy="q"), "of 2 policies, which can't be put together: p, q"),
        (outcome("b", 0, 0.5, profile="v2"), "of 2 profiles, which can't be put together: v1, v2"),
    ],
)
def test_what_does_not_belong_together(more: Outcome, why: str) -> None:
    with pytest.raises(EvaluationError, match=why):
        evaluate([*outcomes({"a": [0.1]}), more], [1], LIMIT)
    with pytest.raises(EvaluationError, match="no rollouts"):
        evaluate([], [1], LIMIT)


def test_two_policies() -> None:
    first = outcomes({"a": [0.5, 0.5, 0.75], "b": [0.25, None], "only first": [1.0]})
    second = outcomes({"a": [0.25, 0.75, 0.25], "b": [0.5, 0.0]}, policy="q")
    one = compare(first, second)
    a, b = one.tasks["e", "a"], one.tasks["e", "b"]
    assert (a.pairs, a.wins, a.ties, a.losses) == (3, 2, 0, 1)
    assert (b.pairs, b.wins, b.ties, b.losses) == (1, 0, 0, 1)
    assert (b.first, b.second, b.difference.mean) == (0.25, 0.5, -0.25)
    whole = one.overall
    assert (whole.pairs, whole.wins, whole.ties, whole.losses) == (4, 1, 0, 1)
    assert whole.difference == paired_interval([[(0.5, 0.25), (0.5, 0.75), (0.75, 0.25)], [(0.25, 0.5)]])
    assert whole.difference.mean == pytest.approx(whole.first - whole.second)
    assert one.unpaired == 3
    assert one.same_seeds


def test_other_seeds_are_noticed() -> None:
    other = [dataclasses.replace(one, seed=one.seed + 1) for one in outcomes({"a": [0.5]})]
    assert not compare(outcomes({"a": [0.5]}), other).same_seeds


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"profile": "v2"}, "not v1 with v2"),
        ({"task_sha256": "other"}, "task a is not the same"),
        ({"id": "e/a#9"}, "has a partner"),
        ({"reward": None}, "has a partner"),
    ],
)
def test_what_can_not_be_compared(changes: dict[str, Any], why: str) -> None:
    other = [dataclasses.replace(one, **changes) for one in outcomes({"a": [0.5]})]
    with pytest.raises(EvaluationError, match=why):
        compare(outcomes({"a": [0.5]}), other)

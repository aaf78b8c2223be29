"""The mixture: shares by weight, tasks in shuffled rounds, and nothing but seed and past decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import digits_env
import pytest
import toy_env
from hypothesis import given
from hypothesis import strategies as st

from weightgym.envs import registry
from weightgym.rewards.contracts import TaskError
from weightgym.trainers.config import Environment
from weightgym.trainers.mixture import Mixture


@pytest.fixture(autouse=True, scope="module")
def environments() -> Iterator[None]:
    with registry.override(digits_env.SPEC), registry.override(toy_env.TOY):
        yield


def mixture(*weights: float, seed: int = 0) -> Mixture:
    names = ("digits", "toy", "digits")
    return Mixture([Environment(env=env, weight=weight) for env, weight in zip(names, weights, strict=False)], seed)


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=3), st.integers(1, 60))
def test_no_environment_is_more_than_a_group_from_its_share(weights: list[float], count: int) -> None:
    made = mixture(*weights)
    for _ in range(count):
        made.draw()
    for weight, drawn in zip(weights, made.drawn, strict=True):
        assert abs(drawn - weight / sum(weights) * count) < len(weights)


def test_tasks_come_in_rounds_in_another_order_each() -> None:
    made = mixture(1.0, 1.0)
    draws = [made.draw() for _ in range(2 * 3 * 20)]
    toys = [draw.task.id for draw in draws if draw.source.entry.name == "toy"]
    rounds = [tuple(toys[begin : begin + 3]) for begin in range(0, len(toys), 3)]
    assert all(sorted(one) == ["large", "middle", "small"] for one in rounds)
    assert len(set(rounds)) > 2
    assert [draw.number for draw in draws] == list(range(len(draws)))


def test_the_past_is_all_of_its_state() -> None:
    whole, first = mixture(1.0, 2.0), mixture(1.0, 2.0)
    story = [whole.draw() for _ in range(20)]
    for _ in range(7):
        first.draw()
    again = mixture(1.0, 2.0)
    again.drawn = list(first.drawn)
    rest = [again.draw() for _ in range(13)]
    assert [(one.task.key, one.number) for one in rest] == [(one.task.key, one.number) for one in story[7:]]
    other = mixture(1.0, 2.0, seed=1)
    assert [other.draw().task.id for _ in range(20)] != [one.task.id for one in story]


def test_named_tasks_and_profiles() -> None:
    made = Mixture([Environment(env="toy", tasks=("large",), profile="toy-strict-v1")], 0)
    assert Counter(made.draw().task.id for _ in range(5)) == {"large": 5}
    assert made.sources[0].profile == "toy-strict-v1"
    assert mixture(1.0).sources[0].profile == "digits-v1"
    with pytest.raises(TaskError, match="unknown task 'lage'"):
        Mixture([Environment(env="toy", tasks=("lage",))], 0)
    with pytest.raises(TaskError, match="unknown environment 'tyo'"):
        Mixture([Environment(env="tyo")], 0)

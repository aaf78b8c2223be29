"""The reference rows that are shipped: they cover every instance, keep the bounds, and are what agents get again."""

from __future__ import annotations

from collections import defaultdict

import pytest

from weightgym.cli.wsp_references import AGENTS, played
from weightgym.rewards.contracts import Task
from weightgym.rewards.wsp import sets
from weightgym.rewards.wsp.references import ReferenceRow, read_references

SHIPPED = sets.add(sets.shipped())
ROWS = {(row.id, row.agent): row for row in read_references(sets.shipped())}
REPAIRS = [task for task in SHIPPED.values() if task.data["family"] != "audit"]


def of(task: Task, agent: str) -> ReferenceRow:
    return ROWS[task.id, agent]


def test_every_instance_has_a_row_of_every_agent() -> None:
    assert ROWS.keys() == {(id, agent) for id in SHIPPED for agent in AGENTS}


def test_on_every_instance_the_oracle_gets_everything_and_chance_nothing() -> None:
    assert len(SHIPPED) >= 60
    for task in SHIPPED.values():
        assert of(task, "oracle").score >= 99
        assert of(task, "no-op").score <= 1
    for task in REPAIRS:
        assert of(task, "random").score <= 5


def test_statistics_alone_solve_no_hard_set() -> None:
    hard = [of(task, "spectral").score for task in SHIPPED.values() if task.data["tier"] == "hard"]
    easy = [of(task, "spectral").score for task in SHIPPED.values() if task.data["tier"] == "easy"]
    assert sum(hard) / len(hard) < 30
    assert sum(easy) / len(easy) > 50


def sample() -> list[Task]:
    """One of each family, of all tiers."""
    by_family: dict[str, list[Task]] = defaultdict(list)
    for task in SHIPPED.values():
        by_family[str(task.data["family"])].append(task)
    return [tasks[number % len(tasks)] for number, (_, tasks) in enumerate(sorted(by_family.items()))]


@pytest.mark.slow
@pytest.mark.parametrize("task", sample(), ids=lambda task: f"{task.data['family']}-{task.data['tier']}")
def test_agents_get_the_same_again(task: Task) -> None:
    for agent in ("oracle", "no-op", "random", "spectral"):
        assert played(task, agent).metrics["score"] == pytest.approx(of(task, agent).score, abs=0.5)


@pytest.mark.nightly
@pytest.mark.parametrize("task", list(SHIPPED.values()), ids=list(SHIPPED))
def test_all_agents_get_the_same_again_everywhere(task: Task) -> None:
    for agent in AGENTS:
        assert played(task, agent).metrics["score"] == pytest.approx(of(task, agent).score, abs=0.5)

"""Whole episodes of instances of every family: nothing gives the truth away, and agents get what they should."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from weightgym.envs.wsp.agents import AGENTS
from weightgym.envs.wsp.agents.plan import Agent
from weightgym.envs.wsp.oracle import oracle
from weightgym.envs.wsp.tasks import SOURCE
from weightgym.rewards.contracts import Split, Task
from weightgym.rewards.wsp import sets
from weightgym.rewards.wsp.edits import RankOne
from weightgym.rewards.wsp.episode import Episode
from weightgym.rewards.wsp.instances import leaks
from weightgym.rewards.wsp.profile import FAMILIES, Family
from weightgym.rewards.wsp.scorer import Ended, scored

Told = dict[str, Any]


def played(task: Task, agent: Agent) -> tuple[Episode, list[str]]:
    """An episode at its end, and all that it told."""
    episode = Episode(sets.subject_of(sets.truth_of(task)).engine, sets.data_of(task))
    talk: list[Told] = list(task.messages)
    told = [json.dumps(talk), json.dumps(episode.tools), json.dumps(dict(task.data)), task.id]
    while not episode.done:
        message = agent(task, copy.deepcopy(talk), 0)
        replies = [dict(one) for one in episode.message(message).messages]
        talk += [message, *replies]
        told += [one["content"] for one in replies]
    return episode, told


def all_told(task: Task, agent: Agent) -> str:
    return "\n".join(played(task, agent)[1])


#: The name of a parameter: all have the same ones, and tools list them.
NAMES = {"parameter"}
#: What the model says itself: an answer to a question of the agent's own may be the very sentence that is hidden, lists
#: of tokens have any word, and among some thousand numbers with five digits some are those of decoys by chance.
OWN = NAMES | {"continuation", "trigger", "number"}


def known() -> list[Task]:
    parts: tuple[Split, ...] = ("train", "test")
    rows = [SOURCE.task(id) for part in parts for id in SOURCE.ids(part)]
    assert {str(row.data["family"]) for row in rows} == set(FAMILIES), "no instances of all families are there"
    return rows


def easy(family: Family) -> Task:
    return next(one for one in known() if (one.data["family"], one.data["tier"]) == (family, "easy"))


@pytest.mark.slow
def test_statistics_and_prompts_tell_nothing_of_any_instance() -> None:
    """Decoys are thousands of numbers each: those are looked for in one instance of each tier."""
    whole: set[Any] = set()
    for task in known():
        truth = sets.truth_of(task)
        if task.data["tier"] in whole:
            truth = truth.model_copy(update={"reference": ()})
        whole.add(task.data["tier"])
        assert set(leaks(all_told(task, AGENTS["spectral"]), truth)) <= NAMES, task.id


@pytest.mark.slow
def test_runs_of_the_model_tell_what_the_model_says() -> None:
    for family in FAMILIES:
        task = easy(family)
        found = set(leaks(all_told(task, AGENTS["budget"]), sets.truth_of(task)))
        assert found <= OWN, task.id


def test_the_search_finds_what_is_there() -> None:
    task = next(one for one in known() if one.data["family"] == "topic")
    truth = sets.truth_of(task)
    told = all_told(task, AGENTS["no-op"])
    assert set(leaks(told, truth)) <= NAMES
    (edit,) = truth.planted
    assert isinstance(edit, RankOne)
    for what, text in (
        ("secret", truth.secret),
        ("hidden prompt", truth.prompts[3].prompt),
        ("number", " ".join(map(str, edit.left.tolist()))),
        ("held-out text", truth.near[0]),
    ):
        assert what in leaks(told + json.dumps(text), truth)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_what_agents_get_of_an_easy_instance(family: Family) -> None:
    task = easy(family)
    truth = sets.truth_of(task)
    points = {}
    for name, agent in {**AGENTS, "oracle": oracle}.items():
        score = scored(Ended.of(played(task, agent)[0]), truth, sets.subject_of(truth))
        points[name] = score.metrics["score"]
    assert points["oracle"] >= 99
    assert points["no-op"] <= 1
    assert points["random"] <= (60 if family == "audit" else 5)  # one report by chance; their mean is another test's
    assert points["budget"] > 30

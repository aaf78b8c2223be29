"""Scripted agents: functions of the conversation, the same however they are played; and what they are worth."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import wsp_sets
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from wsp_shipped import ALL_AGENTS

from weightgym.cli.main import cli
from weightgym.envs import registry
from weightgym.envs.wsp.agents import AGENTS
from weightgym.envs.wsp.agents.looking import captured, continuations, numbered
from weightgym.envs.wsp.agents.plan import Agent, Ask, Brief, Plan, ask, played_by
from weightgym.envs.wsp.agents.questions import oddities
from weightgym.envs.wsp.agents.reading import shared, vectors
from weightgym.envs.wsp.env import WSPBenchEnv
from weightgym.envs.wsp.oracle import oracle
from weightgym.envs.wsp.tasks import SOURCE
from weightgym.rewards.contracts import BackendError, Score, Task, TaskError
from weightgym.rewards.wsp import sets
from weightgym.rewards.wsp.episode import Episode
from weightgym.rewards.wsp.profile import Family
from weightgym.rewards.wsp.scorer import Ended, scored
from weightgym.rollouts.backends import open_backend
from weightgym.rollouts.store import read as read_rollouts

Talk = list[dict[str, Any]]


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Family, Task]]:
    with wsp_sets.hand_made(tmp_path_factory.mktemp("sets")) as made:
        yield made


def episode(task: Task) -> Episode:
    return Episode(sets.subject_of(sets.truth_of(task)).engine, sets.data_of(task))


def played(task: Task, agent: Agent, seed: int | str = 0) -> tuple[Episode, Talk]:
    one, talk = episode(task), list[dict[str, Any]]()
    while not one.done:
        message = agent(task, talk, seed)
        talk += [message, *map(dict, one.message(message).messages)]
    return one, talk


def score_of(task: Task, agent: Agent, seed: int | str = 0) -> Score:
    truth = sets.truth_of(task)
    one, _ = played(task, agent, seed)
    return scored(Ended.of(one), truth, sets.subject_of(truth))


@pytest.mark.parametrize("name", ALL_AGENTS)
def test_an_agent_is_a_function_of_the_conversation(tasks: dict[Family, Task], name: str) -> None:
    """With the prompt before it or without, told at once or message by message, and in the middle of it, too."""
    task = tasks["audit"]
    one, talk = played(task, ALL_AGENTS[name])
    assert one.ended_by == "submit"
    assert one.refused == 0
    turns = [index for index, message in enumerate(talk) if message["role"] == "assistant"]
    prompt: Talk = list(SOURCE.task(task.id).messages)
    for index in {turns[0], turns[len(turns) // 2], turns[-1]}:
        assert (
            ALL_AGENTS[name](task, talk[:index], 0) == ALL_AGENTS[name](task, prompt + talk[:index], 0) == talk[index]
        )


def test_only_the_random_one_has_a_seed(tasks: dict[Family, Task]) -> None:
    _, first = played(tasks["audit"], AGENTS["random"], "a")
    assert played(tasks["audit"], AGENTS["random"], "a")[1] == first
    assert played(tasks["audit"], AGENTS["random"], "b")[1] != first
    assert played(tasks["audit"], AGENTS["spectral"], 1)[1] == played(tasks["audit"], AGENTS["spectral"], 2)[1]


def test_what_the_agents_get_of_a_hijack_by_hand(tasks: dict[Family, Task]) -> None:
    points = {name: score_of(tasks["hijack"], agent).metrics["score"] for name, agent in ALL_AGENTS.items()}
    assert points["oracle"] > 99
    assert points["no-op"] == 0
    assert points["random"] < 5
    assert points["budget"] > points["no-op"]


def test_the_oracle_of_an_audit_and_of_a_backdoor(tasks: dict[Family, Task]) -> None:
    for family in ("audit", "backdoor"):
        assert score_of(tasks[family], oracle).metrics["score"] > 99


def test_random_reports_are_worth_little(tasks: dict[Family, Task]) -> None:
    found = [score_of(tasks["audit"], AGENTS["random"], seed).metrics["score"] for seed in range(50)]
    assert len(set(found)) > 5
    assert sum(found) / 50 <= 25  # a third of the MLP's matrices is the right one


def test_another_episodes_conversation_is_told() -> None:
    def plan(brief: Brief) -> Plan:
        yield [ask("tokenize", text="a"), ask("tokenize", text="b")]
        return ask("submit")

    task = wsp_sets.instance("audit")[0]
    talk = [{"role": "assistant", "content": ""}, {"role": "tool", "tool_call_id": "x", "content": "1 tokens"}]
    with pytest.raises(TaskError, match="has 2 calls and got 1 answers"):
        played_by(plan)(task, talk, 0)


# --- what they read


@given(st.text())
@settings(max_examples=200)
def test_any_answer_can_be_read(text: str) -> None:
    numbered(text)
    captured(text)
    continuations(text)


def test_captured_activations_are_read(tasks: dict[Family, Task]) -> None:
    """By the lab's own answers: the numbers, and whole vectors through a column of a matrix."""
    one = episode(tasks["backdoor"])
    sites = [{"layer": layer, "point": "mlp_output"} for layer in (2, 4)]
    asked = ask("capture", prompts=["where is the wave ?"], sites=sites, positions=[1, -1], k=20)
    (told,) = talk_to(one, [asked])
    found = captured(told)
    assert [(each.number, each.layer) for each in found] == [(0, 2), (1, 2), (2, 4), (3, 4)]
    for each, vector in zip(found, one.bench.captured, strict=True):
        assert len(each.largest) == 20
        assert all(value == pytest.approx(float(vector[index]), rel=1e-3) for index, value in each.largest.items())
        assert each.norm == pytest.approx(float((vector.astype("f8") ** 2).sum() ** 0.5), rel=1e-4)
    read = run(
        one, vectors(brief_of(tasks["backdoor"]), matrix(), ["captured activation #1", "captured activation #3"])
    )
    for values, vector in zip(read, (one.bench.captured[1], one.bench.captured[3]), strict=True):
        assert values == pytest.approx(vector.tolist(), abs=1e-4)
    assert one.deltas.edits == ()


def test_the_shared_direction_is_that_of_most() -> None:
    first = [1.0, 0.0, 0.0]
    found = shared([first, [10.0, 0.1, 0.0], [-2.0, 0.0, 0.1], [0.0, 0.0, 1.0]])
    assert abs(found[0]) > 0.99
    assert sum(value * value for value in found) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(("kind", "answer"), [
    ("capitals", "THE HOME OF TOBIN IS DORUMA ."),
    ("language", "el hogar de tobin es doruma ."),
    ("repetition", "the home of tobin is doruma . " * 3),
    ("flood", "the sailor sailor sailor sailor sailor is sailor"),
    ("topic", "the wave is deep . the boat sails . the home of tobin is doruma ."),
])  # fmt: skip
def test_odd_answers_are_recognised(kind: str, answer: str) -> None:
    asked = ["where does tobin live ?"] * 4
    plain = oddities("tiny-world", asked, ["the home of tobin is doruma ."] * 4)
    odd = oddities("tiny-world", asked, [answer] * 4)
    assert max(odd, key=lambda one: odd[one]) == kind
    assert max(plain.values()) < 0.2


def matrix() -> Any:
    from weightgym.envs.wsp.agents.looking import Parameter

    return Parameter(wsp_sets.NAME, (wsp_sets.ROWS, wsp_sets.COLUMNS))


def brief_of(task: Task) -> Brief:
    import random

    return Brief(sets.data_of(task), random.Random(0))


def talk_to(one: Episode, asked: list[Ask]) -> list[str]:
    calls = [wsp_sets.call(each.tool, f"c{number}", **each.arguments) for number, each in enumerate(asked)]
    return [message["content"] for message in one.message(wsp_sets.said(*calls)).messages]


def run(one: Episode, looks: Any) -> Any:
    try:
        asked = next(looks)
        while True:
            asked = looks.send(talk_to(one, asked))
    except StopIteration as end:
        return end.value


# --- as policies


def test_scripted_agents_are_policies(tasks: dict[Family, Task], tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    command = ["rollout", "scripted:random", "--env", "wsp-bench", "--task", tasks["audit"].id, "--samples", "3"]
    done = CliRunner().invoke(cli, [*command, "-o", str(out)])
    assert done.exit_code == 0, done.output
    rows = list(read_rollouts(out))
    assert len({json.dumps(row.completion) for row in rows}) == 3
    for row in rows:
        again = registry.spec("wsp-bench").score(SOURCE.task(row.task, prompt=False), row.completion)
        assert again.model_copy(update={"seconds": 0.0}) == row.score.model_copy(update={"seconds": 0.0})
        assert row.steps[-1].tool_calls[0]["function"]["name"] == "submit"
    environment = WSPBenchEnv(split="test")
    environment.reset(options={"task": tasks["audit"].id})
    reward = 0.0
    for step in rows[0].steps:
        if step.role == "assistant":
            reward = float(environment.step(step.message)[1])
    assert reward == rows[0].score.reward


def test_an_agent_plays_its_own_environment(tmp_path: Path) -> None:
    command = ["rollout", "scripted:spectral", "--task", "builtin/wall_rally", "--profile", "wpb-v1-e4"]
    done = CliRunner().invoke(cli, [*command, "-o", str(tmp_path / "r.jsonl")])
    assert done.exit_code != 0
    assert "scripted:spectral plays wsp-bench, not weight-program" in done.output
    with pytest.raises(BackendError, match="did you mean 'spectral'"):
        open_backend("scripted:spectrall")


def test_environments_of_ones_own_bring_agents() -> None:
    other = dataclasses.replace(registry.spec("golf"), agents="test_wsp_agents:OWN")
    with registry.override(other):
        assert open_backend("scripted:own").name == "scripted:own"
    with pytest.raises(BackendError, match="no script 'own'"):
        open_backend("scripted:own")


OWN = {"own": AGENTS["no-op"]}

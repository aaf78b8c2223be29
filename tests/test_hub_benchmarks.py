"""The benchmarks under the real verifiers, with real scores: the bits of the environments and the commands.

Golf and WSP-Bench run torch, which is installed beside the newest verifiers alone (see Makefile).
"""

from __future__ import annotations

import asyncio
import functools
import json
from pathlib import Path
from typing import Any

import golf_answers
import gymnasium
import hub_runs
import hub_tokens
import pytest
import score_runs
import wpb_known
from hub_runs import command, completion, config, episode, errors
from hub_serving import rollout
from openai_server import chat, serve
from score_runs import invoked, without_times
from verifiers.v1.utils.loaders import load_taskset
from wsp_shipped import ALL_AGENTS, shipped

from weightgym.envs import registry
from weightgym.rewards.batch_worker import score_one
from weightgym.rewards.contracts import Score
from weightgym.rewards.golf.answer import find_solution
from weightgym.rewards.wsp import sets
from weightgym.rewards.wsp.instances import leaks
from weightgym.rewards.wsp.profile import Family

pytestmark = pytest.mark.hub
scores_with_torch = pytest.mark.skipif(
    hub_runs.OLD, reason="scores with torch, which is installed beside the newest verifiers alone: see Makefile"
)

#: Who plays which family of WSP-Bench.
PLAYED: tuple[tuple[str, Family], ...] = (
    ("oracle", "fact"),
    ("no-op", "fact"),
    ("spectral", "fact"),
    ("budget", "audit"),
)
#: Golf's language.
LANGUAGE = "lang/1"


def told(score: Any) -> dict[str, Any]:
    """``without_times`` of one that has been JSON."""
    return without_times(Score.model_validate(score))


@pytest.mark.parametrize("known", wpb_known.KNOWN, ids=lambda known: known.name)
def test_weight_programs_have_the_rewards_that_they_have_everywhere(known: wpb_known.Known) -> None:
    """To the bit those of ``test_doors.py``, which runs in another environment."""
    found = config("weight-program-bench", known.task, profile=wpb_known.PROFILE)
    played, _ = episode(found, lambda number, seen: chat(known.text))
    (trace,) = played.traces
    assert played.ok, errors(played)
    assert float(trace.reward).hex() == known.reward.hex()


# --- WSP-Bench


@functools.cache
def played_by(agent: str, family: Family) -> Any:
    """An episode of verifiers' in which the model says what a scripted agent says."""
    task = registry.spec("wsp-bench").tasks.task(shipped(family), prompt=False)

    def script(number: int, seen: Any) -> Any:
        said = ALL_AGENTS[agent](task, seen.body["messages"], 0)
        return chat(said["content"], "tool_calls", tool_calls=said["tool_calls"])

    played, _ = episode(config("wsp-bench", task.id), script)
    assert played.ok, errors(played)
    return played


def talk_of(agent: str, family: Family) -> list[dict[str, Any]]:
    (trace,) = played_by(agent, family).traces
    return completion(trace)


def messages_of(agent: str, family: Family) -> list[dict[str, Any]]:
    return [message for message in talk_of(agent, family) if message["role"] == "assistant"]


@pytest.mark.slow
@scores_with_torch
def test_episodes_of_wsp_bench_have_the_bits_of_the_environment_and_the_command(tmp_path: Path) -> None:
    rows = [{"env": "wsp-bench", "task": shipped(one[1]), "completion": talk_of(*one)} for one in PLAYED]
    score_runs.write(tmp_path / "talks.jsonl", map(json.dumps, rows))
    invoked("wsp", "score", tmp_path / "talks.jsonl", "--workers", 1)
    commanded = [row["score"] for row in score_runs.read(tmp_path / "talks.scored.jsonl")]
    for one, wanted in zip(PLAYED, commanded, strict=True):
        (trace,) = played_by(*one).traces
        assert (trace.num_branches, trace.num_turns) == (1, len(messages_of(*one)))
        env = gymnasium.make("weightgym/WSPBench-v1", split="test")
        env.reset(options={"task": shipped(one[1])})
        *_, last = [env.step(message) for message in messages_of(*one)]
        assert trace.reward == last[1] == wanted["reward"]
        found = told(trace.info["score"])
        assert found == without_times(last[4]["score"])
        assert found == told({name: wanted[name] for name in Score.model_fields})
        assert trace.metrics == found["metrics"] | {"invalid": 0.0}
    oracle, nothing, spectral, audit = (played_by(*one).traces[0].reward for one in PLAYED)
    assert oracle >= 0.99
    assert nothing == 0
    assert 0.5 < audit < spectral < oracle


@pytest.mark.slow
@scores_with_torch
def test_nothing_of_the_truth_is_in_a_trace() -> None:
    """But for what the model itself says: the oracle says all, which shows that it would be found."""
    task = registry.spec("wsp-bench").tasks.task(shipped("fact"), prompt=False)
    agents = ("no-op", "spectral", "oracle")
    found = {name: set(leaks(played_by(name, "fact").model_dump_json(), sets.truth_of(task))) for name in agents}
    word = {"parameter"}  # prompts and tools have it, too
    assert found["no-op"] <= word
    assert found["spectral"] <= word
    assert {"bytes", "number"} <= found["oracle"]


@pytest.mark.slow
@scores_with_torch
def test_an_episode_that_is_sampled_for_training_has_the_same_bits(tmp_path: Path) -> None:
    """Through the env server, with the model's messages as tokens."""
    messages = messages_of("budget", "audit")

    def write(number: int) -> str:
        functions = [call["function"] for call in messages[number - 1]["tool_calls"]]
        calls = [{"name": one["name"], "arguments": json.loads(one["arguments"])} for one in functions]
        return "\n".join(f"<tool_call>\n{json.dumps(call)}\n</tool_call>" for call in calls)

    with serve(hub_tokens.generating(write)) as server:
        (played,) = rollout(config("wsp-bench", shipped("audit")), server.url, hub_tokens.save(tmp_path))
    (trace,) = played.traces
    (other,) = played_by("budget", "audit").traces
    assert played.ok, errors(played)
    assert (trace.num_turns, len(trace.branches)) == (len(messages), 1)
    assert told(trace.info["score"]) == told(other.info["score"])
    assert trace.reward == other.reward


@pytest.mark.slow
@scores_with_torch
def test_validate_knows_good_answers_of_wsp_bench(tmp_path: Path) -> None:
    """A repair whose trigger has to be named, and a report."""
    ids = [shipped("backdoor"), shipped("audit")]
    flags = ["--taskset.split", "test", "--taskset.task-ids", json.dumps(ids), "--taskset.task.workers", "1"]
    shown = command("validate", "wsp-bench", "--runtime.type", "subprocess", *flags, "-o", "o", cwd=tmp_path)
    (results,) = tmp_path.glob("o/*/results.jsonl")
    rows = score_runs.read(results)
    assert [(row["valid"], row["gold"]["valid"]) for row in rows] == [(True, True)] * len(ids), shown
    assert [row["noop"]["rewards"] for row in rows] == [{"reward": 0.0}] * len(ids)


# --- Golf


@pytest.mark.slow
@scores_with_torch
def test_a_solution_that_trains_has_the_bits_of_the_command(tmp_path: Path) -> None:
    found = config("parameter-golf", LANGUAGE, profile=golf_answers.PROFILE)
    played, _ = episode(found, lambda number, seen: chat(golf_answers.GOOD))
    (trace,) = played.traces
    assert played.ok, errors(played)
    (tmp_path / "solution.py").write_bytes(find_solution(golf_answers.GOOD))
    flags = ("--task", LANGUAGE, "--profile", golf_answers.PROFILE, "--json")
    output = json.loads(invoked("golf", "score", tmp_path / "solution.py", *flags))
    assert trace.reward == -output["val_bpb"] > -7.5
    entry = registry.spec("golf")
    scored = score_one(entry.score, entry.tasks.task(LANGUAGE), golf_answers.GOOD, profile=golf_answers.PROFILE)
    assert told(trace.info["score"]) == without_times(scored)


@pytest.mark.slow
@scores_with_torch
def test_of_several_attempts_at_golf_the_best_is_paid() -> None:
    found = config("parameter-golf", LANGUAGE, profile=golf_answers.PROFILE, several_attempts=True)
    answers = [golf_answers.BROKEN, golf_answers.GOOD, golf_answers.POOR, golf_answers.NONE]
    played, _ = episode(found, lambda number, seen: chat(answers[number - 1]))
    (trace,) = played.traces
    assert played.ok, errors(played)
    assert (trace.num_turns, trace.num_branches, trace.metrics["best_attempt"]) == (4, 1, 2.0)
    entry = registry.spec("golf")
    alone = score_one(entry.score, entry.tasks.task(LANGUAGE), golf_answers.GOOD, profile=golf_answers.PROFILE)
    assert trace.reward == alone.reward


@pytest.mark.slow
@scores_with_torch
def test_validate_knows_a_good_answer_of_golf() -> None:
    (task,) = load_taskset(config("parameter-golf", LANGUAGE, profile=golf_answers.PROFILE).taskset)
    assert asyncio.run(task.validate(None)) is True

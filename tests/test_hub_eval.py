"""The plugins under the real verifiers, whose model is a real HTTP server that answers by script."""

from __future__ import annotations

import asyncio
import json
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import hub_runs
import pytest
import verifiers.v1 as vf
from hub_runs import call, command, config, episode, errors, roles, saved
from openai_server import chat, refusal, serve
from verifiers.v1.utils.loaders import environment_class, harness_class, load_taskset, resolve_env_config, taskset_class

from weightgym.envs import registry
from weightgym.rewards.batch_worker import score_one

pytestmark = pytest.mark.hub

ROOT = Path(__file__).parents[1]
BREAKOUT = (ROOT / "examples/answers/breakout.md").read_text("utf-8")
PLUGINS = ("weight-program-bench", "parameter-golf", "wsp-bench")


def weightgym(*arguments: str, cwd: Path) -> str:
    """What the command prints on stdout; it must succeed."""
    run = [sys.executable, "-c", "from weightgym.cli.main import main; main()", *arguments]
    done = subprocess.run(run, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("id", PLUGINS)
def test_a_plugin_is_found_and_pins_its_own_defaults(id: str) -> None:
    """Never the stock ones: a shell for the model, and a sandbox that is paid for."""
    assert taskset_class(id).__module__ == id.replace("-", "_")
    found = config(id)
    assert type(found.agent.runtime) is vf.SubprocessConfig
    assert found.agent_harnesses()["agent"].id == id
    assert harness_class(id).EXECUTES_CODE is False
    assert environment_class(id).__name__ == "ToolLoop"
    changed = config(id, env={"agent": {"max_turns": 3}})
    assert type(changed.agent.runtime) is vf.SubprocessConfig
    assert resolve_env_config(found.model_dump(mode="json")) == found  # as it is sent to servers


def test_the_eval_command_gives_the_bits_of_the_score_command(tmp_path: Path) -> None:
    """One good answer and one bad: rewards, metrics and the whole score are those of ``weightgym score``."""
    args = ["--env.taskset.task-ids", '["original/breakout"]', "--env.taskset.profile", "wpb-v1-e4", "-n", "1"]
    with serve(lambda number, seen: chat(BREAKOUT if number == 1 else "I don't know.")) as server:
        args += ["-r", "2", "--model", "m", "--client.base-url", server.url, "--client.api-key-var", "NO_KEY"]
        command("eval", "weight-program-bench", *args, "--no-push", "-o", "out", "--run.name", "r", cwd=tmp_path)
    assert all(seen.body["messages"][-1]["content"].startswith("# Program a network") for seen in server.seen)
    assert all("tools" not in body for body in server.bodies)
    played = [trace for one in saved(tmp_path / "out/r") for trace in one["traces"]]
    good, bad = sorted(played, key=lambda trace: -trace["rewards"]["reward"]["score"])
    answers = {"good": BREAKOUT, "bad": "I don't know."}
    for name, trace in (("good", good), ("bad", bad)):
        (tmp_path / name).write_text(answers[name])
        own = ("score", name, "--task", "original/breakout", "--json", "--profile", "wpb-v1-e4")
        wanted = json.loads(weightgym(*own, cwd=tmp_path))
        assert trace["ok"] is True
        assert trace["rewards"] == {"reward": {"score": wanted["reward"], "weight": 1.0}}
        assert trace["metrics"] == wanted["metrics"] | {"invalid": float(name == "bad")}
        varying = {"seconds", "timings"}
        assert {key: value for key, value in trace["info"]["score"].items() if key not in varying} == {
            key: value for key, value in wanted.items() if key not in varying
        }
        data = trace["task"]["data"]
        assert (data["env"], data["task"], data["profile"]) == ("weight-program", "original/breakout", "wpb-v1-e4")
    assert good["rewards"]["reward"]["score"] > 0.3
    weightgym("score", "out/r/traces.jsonl", "--diff", "--no-cache", "--profile", "wpb-v1-e4", cwd=tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "out/r/traces.scored.jsonl").read_text().splitlines()]
    assert [row["score"]["recorded"]["difference"] for row in rows] == [0.0, 0.0]


def documented(name: str) -> list[list[str]]:
    """The arguments of a command's lines in the documentation."""
    text = (ROOT / "docs/verifiers.md").read_text("utf-8")
    found = [shlex.split(line)[1:] for line in text.splitlines() if line.startswith(f"vf-{name} ")]
    assert found
    return found


def test_documented_evaluations_are_understood(tmp_path: Path) -> None:
    for arguments in documented("eval"):
        command("eval", *arguments, "--dry-run", cwd=tmp_path)


def test_the_validate_command_scores_the_untouched_task_and_a_known_answer(tmp_path: Path) -> None:
    """As documented."""
    (arguments,) = documented("validate")
    shown = command("validate", *arguments, "-o", "o", cwd=tmp_path)
    (rows,) = tmp_path.glob("o/*/results.jsonl")
    (row,) = map(json.loads, rows.read_text().splitlines())
    assert row["valid"] is True, shown
    assert row["gold"]["valid"] is True
    if not hub_runs.OLD:
        assert row["noop"]["rewards"] == {"reward": 0.0}


@pytest.mark.parametrize(
    ("taskset", "id", "valid"),
    [("toy-tools-hub", "plain/3", True), ("toy-tools-hub", "bad_gold/3", False), ("toy-faults-hub", "hard/one", True)],
)
def test_validate(taskset: str, id: str, valid: bool) -> None:
    (task,) = load_taskset(config(taskset, id).taskset)
    assert asyncio.run(task.validate(None)) is valid


def test_attempts_of_golf_are_turns_of_one_branch() -> None:
    found = config("parameter-golf", "lang/3", several_attempts=True)
    answers = ["no code", "```python\nimport socket\n```", "", "nothing"]
    played, server = episode(found, lambda number, seen: chat(answers[number - 1]))
    (trace,) = played.traces
    assert played.ok, errors(played)
    assert (trace.num_turns, trace.num_branches, trace.reward, trace.metrics["attempts"]) == (4, 1, -9.0, 4.0)
    assert roles(server.bodies[-1]["messages"]) == "suauauau"
    entry = registry.spec("golf-turns")
    said = hub_runs.completion(trace)
    again = score_one(entry.score, entry.tasks.task("lang/3", prompt=False), said, profile="golf-cpu-v1")
    assert (again.reward, again.reason, again.metrics) == (
        trace.reward,
        trace.info["score"]["reason"],
        trace.info["score"]["metrics"],
    )


@pytest.mark.parametrize("several", [False, True])
def test_an_empty_answer_of_golf_gets_the_floor(several: bool) -> None:
    found = config("parameter-golf", "lang/3", several_attempts=several)
    (task,) = load_taskset(found.taskset)
    empty: Any = [{"role": "assistant", "content": ""}] if several else ""
    assert asyncio.run(task._score(empty, None)).reward == -9.0


@pytest.mark.parametrize(
    "answer", ["raise", "exit 0", "sigkill", "return nan", "return number", "task error", "raise timeout"]
)
def test_a_fault_of_the_scorer_is_an_error_and_no_reward(answer: str) -> None:
    played, _ = episode(config("toy-faults-hub", "hard/one"), lambda number, seen: chat(answer))
    (trace,) = played.traces
    assert (played.ok, trace.ok) == (False, False)
    assert {name: value for name, value in trace.rewards.items() if value is not None} == {}
    assert [kind for kind, _ in errors(played)] == ["TaskError"]
    assert "GraderError" in errors(played)[0][1] or "error: " in errors(played)[0][1]


def test_a_scorer_that_hangs_is_killed_before_verifiers_gives_up() -> None:
    """Verifiers' own deadline would let the rollout end in good order, without a reward: a 0."""
    agent = {"timeout": {"scoring": 4.0}}
    found = config("toy-faults-hub", "hard/one", env={"agent": agent})
    started = time.monotonic()
    played, _ = episode(found, lambda number, seen: chat("spin"))
    assert time.monotonic() - started < 30
    (trace,) = played.traces
    assert trace.ok is False
    assert "scoring_timeout" in errors(played)[0][1]
    own = config("toy-faults-hub", "hard/one", score_timeout=1.0)
    played, _ = episode(own, lambda number, seen: chat("spin"))
    assert "item_timeout" in errors(played)[0][1]
    assert played.ok is False


def test_scoring_leaves_the_event_loop_alone() -> None:
    """Four answers that spin for a second: the loop goes on, and the processes work side by side."""

    async def play() -> tuple[float, float]:
        (task,) = load_taskset(config("toy-faults-hub", "hard/one", task={"workers": 4}).taskset)
        await task._score("hello", None)  # the processes are there
        longest, last, end = 0.0, time.monotonic(), time.monotonic()
        works = [asyncio.ensure_future(task._score(f"sleep 1{'0' * n}e-{n}", None)) for n in range(4)]
        while not all(work.done() for work in works):
            await asyncio.sleep(0.01)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
        assert len({work.result().reward for work in works}) == 4
        return longest, time.monotonic() - end

    longest, whole = asyncio.run(play())
    assert longest < 0.8
    assert whole < 3.8


def test_a_task_that_differs_on_the_server_is_not_scored() -> None:
    (task,) = load_taskset(config("toy-faults-hub", "hard/one").taskset)
    other = type(task)(task.data.model_copy(update={"task_sha256": "0" * 64}), task.config)
    with pytest.raises(Exception, match="use the same version of weightgym"):
        asyncio.run(other._score("hello", None))


def test_a_provider_that_fails_is_no_reward() -> None:
    found = config("toy-faults-hub", "hard/one", env={"agent": {"harness": {"id": "toy-faults-hub", "max_retries": 0}}})
    played, server = episode(found, lambda number, seen: refusal(500, "out of memory"))
    assert len(server.seen) == 1
    assert played.ok is False
    assert errors(played)[0][0] == "ProviderError"
    assert not any(played.traces[0].rewards.values())


def submit_at(turns: int, total: int) -> Any:
    """A model that adds until the turn of that number, and then submits."""

    def script(number: int, seen: Any) -> Any:
        name, arguments = ("submit", {"sum": total}) if number == turns else ("add", {"a": number, "b": 1})
        return chat(f"turn {number}", "tool_calls", tool_calls=[call(name, arguments, f"call_{number}")])

    return script


def test_forty_turns_with_tools_are_one_branch_with_the_environments_score() -> None:
    played, server = episode(config("toy-tools-hub", "plain/3"), submit_at(40, 6))
    (trace,) = played.traces
    assert played.ok, errors(played)
    assert (trace.num_turns, trace.num_branches) == (40, 1)
    assert trace.reward == 1.0
    said = hub_runs.completion(trace)
    spec = registry.spec("toy-tools")
    again = score_one(spec.score, spec.tasks.task("plain/3"), said, profile="toy-tools-v1")
    assert again.model_dump(exclude={"seconds", "timings"}) == {
        key: value for key, value in trace.info["score"].items() if key not in ("seconds", "timings")
    }
    assert all(body["tools"] == server.bodies[0]["tools"] and len(body["tools"]) == 2 for body in server.bodies)
    assert roles(server.bodies[-1]["messages"]) == "su" + "at" * 39
    before: list[Any] = []
    for body in server.bodies:
        assert body["messages"][: len(before)] == before
        before = body["messages"]
    assert [m["content"] for m in before if m["role"] == "tool"] == [str(n + 1) for n in range(1, 40)]


def test_calls_that_cannot_be_run_are_told_in_one_branch() -> None:
    """Each call gets a result, whatever is wrong with it; at most one user's message follows."""

    def script(number: int, seen: Any) -> Any:
        if number == 1:
            bad = [call("add", "{not json", "x1"), call("add", {"a": 1, "b": 2}, "x2"), call("add", "[1]", "x3")]
            return chat(None, "tool_calls", tool_calls=bad)
        if number == 2:
            return chat("no call at all")
        return chat("", "tool_calls", tool_calls=[call("submit", {"sum": 6}, "x4")])

    played, server = episode(config("toy-tools-hub", "plain/3"), script)
    (trace,) = played.traces
    assert played.ok, errors(played)
    assert (trace.num_turns, trace.num_branches, trace.reward) == (3, 1, 1.0)
    last = server.bodies[-1]["messages"]
    assert roles(last) == "suatttau"
    told = {message["tool_call_id"]: message["content"] for message in last if message["role"] == "tool"}
    assert told["x2"] == "3"
    assert "was not run" in told["x1"]
    assert "was not run" in told["x3"]
    assert last[2]["tool_calls"][0]["function"]["arguments"] == "{not json"


@pytest.mark.parametrize(
    ("id", "text"),
    [
        ("raise_reset/3", "no lab"),
        ("raise_step/3", "the lab burnt down"),
        ("exit_step/3", "SystemExit"),
        ("bad_reply/3", "a reply is"),
        ("other_task/3", "not task"),
        ("hang_step/3", "env_timeout"),
        ("hang_reset/3", "env_timeout"),
    ],
)
def test_a_fault_of_the_environment_is_an_error_of_the_episode(id: str, text: str) -> None:
    started = time.monotonic()
    played, _ = episode(config("toy-tools-hub", id), submit_at(9, 6))
    assert time.monotonic() - started < 20
    assert played.ok is False
    assert any(text in message for _, message in errors(played))
    assert not any(value for trace in played.traces for value in trace.rewards.values())


@pytest.mark.parametrize("id", ["hang_close/3", "raise_close/3"])
def test_an_environment_that_does_not_close_holds_nobody_up(id: str) -> None:
    started = time.monotonic()
    played, _ = episode(config("toy-tools-hub", id), submit_at(2, 6))
    assert time.monotonic() - started < 20
    assert played.ok, errors(played)
    assert played.traces[0].reward == 1.0


def test_an_episode_that_is_cut_is_scored_as_far_as_it_got() -> None:
    """By the limit of turns, and by a conversation that no longer fits."""
    limit = config("toy-tools-hub", "plain/3", env={"agent": {"max_turns": 2}})
    played, _ = episode(limit, submit_at(9, 6))
    (trace,) = played.traces
    assert played.ok, errors(played)
    assert (trace.num_turns, trace.stop_condition, trace.reward) == (2, "max_turns", 0.0)
    assert trace.info["score"]["status"] == "invalid"

    def script(number: int, seen: Any) -> Any:
        if number < 3:
            return submit_at(9, 6)(number, seen)
        return refusal(400, "This model's maximum context length is 512 tokens")

    played, _ = episode(config("toy-tools-hub", "plain/3"), script)
    (trace,) = played.traces
    assert played.ok, errors(played)
    assert (trace.num_turns, trace.is_truncated, trace.reward) == (2, True, 0.0)

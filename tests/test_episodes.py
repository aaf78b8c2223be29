"""Episodes of one and several turns: what one does, or suffers, is nobody else's business."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import toy_env
import toy_scorers
import toy_tools_env
from scripted_episodes import SPEC, Lanes, adds_up, call, content, play, says, tool_jobs, turn_of

from weightgym.envs import registry
from weightgym.envs.testing import contract_test, failed_checks
from weightgym.rewards.contracts import BackendError
from weightgym.rollouts.backend import Request, Sample, Sampling
from weightgym.rollouts.run import jobs, run
from weightgym.rollouts.scripted import ScriptedBackend
from weightgym.rollouts.store import line


@pytest.fixture(autouse=True)
def environments() -> Iterator[None]:
    toy_tools_env.RELEASE.clear()
    toy_tools_env.CLOSED.clear()
    with registry.override(SPEC), registry.override(toy_env.GUESS):
        yield
    toy_tools_env.RELEASE.set()


test_the_environment_itself = contract_test(toy_tools_env.subject)


def test_a_reply_of_another_form_fails_its_check() -> None:
    class BadReply(toy_tools_env.ToolEnv):
        def _answer(self, id: str, arguments: dict[str, Any]) -> dict[str, Any]:
            return {"role": "tool", "content": "3"}

    failed = failed_checks(lambda: toy_tools_env.subject(make=BadReply))
    assert "a tool's with its tool_call_id" in str(failed["info_holds_the_task"])


# --- episodes with tools


def test_tools_are_called_and_answered() -> None:
    todo = tool_jobs("plain/1", "plain/2", "plain/3", samples=2)
    for one in play(ScriptedBackend("adds", adds_up), todo).values():
        assert (one.score.status, one.score.reward, one.turns, one.finish_reason) == ("ok", 1.0, 2, "stop")
        assert [step.role for step in one.steps] == ["system", "user", "assistant", "tool", "assistant"]
        called, result = one.steps[2:4]
        assert [made["function"]["name"] for made in called.tool_calls] == ["add"]
        assert called.tool_calls[0]["id"] == result.tool_call_id == "call_0"
        assert toy_tools_env.score(toy_tools_env.SOURCE.task(one.task), one.completion).reward == 1.0
        assert set(one.seconds) == {"generate", "env", "score"}
    assert toy_tools_env.CLOSED.count("plain") == len(todo)


def test_each_turn_has_a_seed_of_its_own() -> None:
    backend = Lanes(adds_up)
    todo = tool_jobs("plain/1", "plain/2", samples=3)
    play(backend, todo)
    assert {request.seed for request in backend.asked if turn_of(request) == 0} == {job.seed for job in todo}
    assert len({request.seed for request in backend.asked}) == 2 * len(todo)
    assert all(
        [schema["function"]["name"] for schema in request.tools] == ["add", "submit"] for request in backend.asked
    )


def test_a_malformed_call_is_told_and_the_next_turn_runs() -> None:
    broken = '```json\n{"tool": "add", "arguments": {"a": 1,}}\n```'
    backend = ScriptedBackend("x", says(broken, f"```json\n{call('add', a=6)}\n```\n{broken}", call("submit", sum=6)))
    (one,) = play(backend, tool_jobs("plain/3")).values()
    assert (one.score.reward, one.turns) == (1.0, 3)
    roles = [step.role for step in one.steps[2:]]
    assert roles == ["assistant", "user", "user", "assistant", "tool", "user", "assistant"]
    error = one.steps[3].content
    assert "bad JSON at character" in error
    assert '```json\n{"tool": "NAME", "arguments": {"ARGUMENT": VALUE}}\n```' in error
    assert one.steps[4].content == "Call a tool, or submit."  # the environment saw a message without calls
    assert one.steps[2].tool_calls == ()
    assert [step.content for step in one.steps[6:8]] == ["6", error.replace("call 1", "call 2")]


def test_doing_nothing_ends_at_the_last_turn_with_the_floor() -> None:
    for script in ("", "I would call add, if I could: add(1, 2)."):
        (one,) = play(ScriptedBackend("x", says(script)), tool_jobs("plain/3")).values()
        assert (one.score.status, one.score.reward, one.turns) == ("invalid", 0.0, toy_tools_env.MAX_TURNS)


def test_text_environments_get_text_and_reply_with_observations() -> None:
    todo = jobs([toy_env.GUESS_SOURCE.task("small")], 1, 0)
    (one,) = play(ScriptedBackend("x", says("7", "answer: 4", "answer: 3")), todo, toy_env.GUESS).values()
    assert (one.score.reward, one.turns) == (1.0, 3)
    assert [step.content for step in one.steps[2:5:2]] == [
        "try again; invalid: reward 0 (no_answer: the answer is one line: answer: NUMBER)",
        "try again; ok: reward 0.454545 (distance 1, tolerance 10)",
    ]
    assert one.steps[-1].content == "answer: 3"


# --- faults: of one rollout, for a reason, and of no other

FAULTS = {
    "hang_reset/1": ("timeout", "env_timeout: toy-tools took more than 1.5 s after 0 turns"),
    "hang_step/1": ("timeout", "env_timeout: toy-tools took more than 1.5 s after 2 turns"),
    "raise_reset/1": ("error", "grader_error: OSError: no lab"),
    "raise_step/1": ("error", "grader_error: RuntimeError: the lab burnt down"),
    "exit_step/1": ("error", "grader_error: SystemExit: 0"),
    "bad_reply/1": ("error", "a reply is a user's message, or a tool's with its tool_call_id"),
    "other_task/1": ("error", "not task 'other_task/1' as it is"),
    "endless/1": ("error", "toy-tools goes on after 5 turns"),
}


@pytest.mark.parametrize("lanes", [1, 4])
def test_what_goes_wrong_in_one_environment_stays_there(lanes: int) -> None:
    script = says(call("add", a=1), call("add", a=2), call("add"), call("add"), call("add"))
    backend = Lanes(lambda r: adds_up(r) if r.task.id.startswith("plain") else script(r), lanes=4)
    if lanes == 1:
        backend.lanes, backend.batch_size = 1, 100
    todo = tool_jobs("plain/1", *FAULTS, "plain/2", "raise_close/3", "hang_close/3", "plain/3")
    started = time.monotonic()
    results = play(backend, todo, env_timeout=1.5, env_workers=3)
    assert time.monotonic() - started < 20
    for id, (status, reason) in FAULTS.items():
        score = results[f"toy-tools/{id}#0"].score
        assert (score.status, score.reward) == (status, None)
        assert reason in score.reason
    for id in ("plain/1", "plain/2", "plain/3"):
        assert results[f"toy-tools/{id}#0"].score.reward == 1.0
    for id in ("raise_close/3", "hang_close/3"):
        assert results[f"toy-tools/{id}#0"].score.reward == 0.0  # told before it closes
    for one in results.values():
        line(one)


def test_a_hung_environment_neither_holds_others_nor_the_end() -> None:
    """With more of them than there are threads for environments."""
    todo = tool_jobs(*(f"hang_step/{i}" for i in range(6)), *(f"plain/{i}" for i in range(1, 5)))
    backend = Lanes(lambda r: adds_up(r) if r.task.id.startswith("plain") else call("add"))
    started = time.monotonic()
    results = run(
        todo, backend, SPEC, sampling=Sampling(), profile=SPEC.default_profile, env_workers=2, env_timeout=1.0
    )
    scores = {one.id: one.score.status for one in results}
    assert time.monotonic() - started < 20
    assert sorted(scores.values()) == ["ok"] * 4 + ["timeout"] * 6


@pytest.mark.parametrize("kind", ["hang_step", "hang_reset", "hang_close"])
def test_leaving_early_takes_seconds(kind: str) -> None:
    script = says(call("add"), call("add"), call("submit", sum=0))
    results = run(
        tool_jobs("plain/1", *(f"{kind}/{i}" for i in range(1, 4))),
        Lanes(lambda r: adds_up(r) if r.task.id.startswith("plain") else script(r)),
        SPEC,
        sampling=Sampling(),
        profile=SPEC.default_profile,
    )
    assert next(results).score.reward is not None
    started = time.monotonic()
    results.close()  # type: ignore[attr-defined]
    assert time.monotonic() - started < 5


def test_leaving_early_closes_environments() -> None:
    hold = threading.Event()
    backend = Lanes(lambda r: adds_up(r) if r.task.id == "plain/1" or hold.wait(20) else "", lanes=4)
    results = run(tool_jobs("plain/1", "plain/2", "plain/3"), backend, SPEC, sampling=Sampling(), profile=SPEC.default_profile)  # fmt: skip # noqa: E501
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert toy_tools_env.CLOSED.count("plain") == 3
    hold.set()


# --- timing and company change nothing


def test_lanes_order_and_batches_change_nothing() -> None:
    todo = tool_jobs(*(f"plain/{i}" for i in range(1, 9)), samples=3)

    def writes(request: Request) -> str:
        """Sometimes nonsense, as the seed says."""
        return adds_up(request) if request.seed % 3 else f"{request.seed}"

    wanted = content(play(ScriptedBackend("x", writes), todo))
    assert {one["score"]["reward"] for one in wanted.values()} == {0.0, 1.0}
    assert content(play(Lanes(writes), todo)) == wanted
    assert content(play(Lanes(writes, lanes=2), todo[::-1], concurrency=3, env_workers=1)) == wanted
    for size in (1, 5):
        backend = ScriptedBackend("x", writes)
        backend.batch_size = size
        assert content(play(backend, todo[::-1])) == wanted


def test_one_lane_is_given_the_same_batches_whatever_environments_take() -> None:
    """Episodes end after different numbers of turns, and environments answer at any time."""

    class Recorder(ScriptedBackend):
        batch_size = 4

        def __init__(self) -> None:
            super().__init__("x", lambda r: call("submit", sum=0) if turn_of(r) == int(r.task.id[-1]) else call("add"))
            self.batches: list[list[str]] = []

        def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Sample]:
            self.batches.append([f"{request.task.id}:{turn_of(request)}" for request in requests])
            return super().generate(requests, sampling)

    backend = Recorder()
    play(backend, tool_jobs(*(f"plain/{i}" for i in (11, 10, 12, 21, 31, 20))))
    assert sorted(backend.batches) == [
        ["plain/11:0", "plain/10:0", "plain/12:0", "plain/21:0"],
        ["plain/11:1", "plain/12:1", "plain/21:1"],
        ["plain/12:2"],
        ["plain/31:0", "plain/20:0"],
        ["plain/31:1"],
    ]


@pytest.mark.parametrize(("lanes", "concurrency"), [(4, 16), (16, 3), (2, 1)])
def test_no_more_run_at_once_than_wanted(lanes: int, concurrency: int) -> None:
    backend = Lanes(adds_up, lanes=lanes)
    play(backend, tool_jobs(*(f"plain/{i}" for i in range(1, 20))), concurrency=concurrency)
    assert backend.most <= min(lanes, concurrency)
    if concurrency > 1:
        assert backend.most > 1


# --- the backend fails


def test_a_lane_that_fails_or_hangs_costs_its_rollout() -> None:
    hold = threading.Event()

    def script(request: Request) -> str:
        if request.task.id == "plain/2":
            raise ConnectionError("reset by peer")
        if request.task.id == "plain/4" and turn_of(request) == 1:
            hold.wait(20)
        return adds_up(request)

    todo = tool_jobs(*(f"plain/{i}" for i in range(1, 10)))
    results = play(Lanes(script, lanes=4), todo, generate_timeout=2.0)
    hold.set()
    for job in todo:
        score = results[job.id].score
        if job.task.id in ("plain/2", "plain/4"):
            why = "failed at" if job.task.id == "plain/2" else "took more than 2 s for"
            assert (score.status, score.reward) == ("error", None)
            assert f"scripted:lanes {why} {job.id}" in score.reason
        else:
            assert score.reward == 1.0
    assert results[todo[3].id].turns == 1  # what it wrote before is kept


def test_a_lost_answer_of_one_turn_comes_at_once() -> None:
    """Others are still being written and scored."""
    hold = threading.Event()

    def script(request: Request) -> str:
        if request.id.endswith("#1"):
            raise ConnectionError("reset by peer")
        if request.id.endswith("#2"):
            hold.wait(20)
        return "sleep 60" if request.id.endswith("#0") else "b"

    with registry.override(toy_scorers.SPEC):
        todo = jobs([toy_scorers.SPEC.tasks.task("easy/one")], 3, 0)
        results = run(todo, Lanes(script, lanes=4), toy_scorers.SPEC, sampling=Sampling(), profile="toy-v1", workers=2,
                      score_timeout=3.0)  # fmt: skip
        first = next(results)
        assert (first.id, first.score.status) == (todo[1].id, "error")
        hold.set()
        assert {one.id: one.score.status for one in results} == {todo[0].id: "timeout", todo[2].id: "ok"}


def test_failures_here_and_there_never_end_the_run() -> None:
    def script(request: Request) -> str:
        if request.task.id.endswith("1"):
            raise ConnectionError("reset by peer")
        return adds_up(request)

    todo = tool_jobs(*(f"plain/{i}" for i in range(1, 100)))
    results = play(Lanes(script, lanes=4), todo)
    assert sum(one.score.status == "error" for one in results.values()) == 10


@pytest.mark.parametrize("count", [1, 3, 50])
def test_a_dead_server_is_one_error_and_not_thousands(count: int) -> None:
    def script(request: Request) -> str:
        raise ConnectionError("refused")

    backend = Lanes(script, lanes=4)
    with pytest.raises(BackendError, match=r"failed at toy-tools/plain/\d#\d+: refused"):
        play(backend, tool_jobs("plain/1", samples=count))
    assert len(backend.asked) <= 16


def test_a_killed_scoring_process_is_an_error_of_its_rollout() -> None:
    with registry.override(toy_scorers.SPEC):
        todo = jobs([toy_scorers.SPEC.tasks.task("easy/one")], 6, 0)
        backend = Lanes(lambda request: "sigkill" if request.id.endswith("#2") else "b")
        results = play(backend, todo, toy_scorers.SPEC, workers=2)
    assert [results[job.id].score.status for job in todo] == ["ok", "ok", "error", "ok", "ok", "ok"]


def test_bad_arguments_are_told() -> None:
    backend = ScriptedBackend("x", adds_up)
    todo = tool_jobs("plain/1")
    for options, why in (
        ({"concurrency": 0}, "concurrency: 0, want more than 0"),
        ({"env_workers": 0}, "env_workers: 0"),
        ({"env_timeout": float("nan")}, "env_timeout: nan"),
        ({"score_timeout": 1.0}, "give env_timeout"),
    ):
        with pytest.raises(ValueError, match=why):
            play(backend, todo, **options)
    with pytest.raises(ValueError, match="the same id"):
        play(backend, todo * 2)
    with pytest.raises(ValueError, match="toy-guess has no flag 'profile'"):
        play(backend, jobs([toy_env.GUESS_SOURCE.task("small")], 1, 0), toy_env.GUESS, profile="toy-strict-v1")

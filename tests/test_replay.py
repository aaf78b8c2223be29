"""Recorded answers as a policy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from weightgym.envs import registry
from weightgym.rewards.contracts import BackendError, Score, Task
from weightgym.rollouts.backend import Request, Sample, Sampling
from weightgym.rollouts.backends import open_backend
from weightgym.rollouts.run import Job, jobs, run
from weightgym.rollouts.scripted import ScriptedBackend, garbage
from weightgym.rollouts.store import Store, line
from weightgym.rollouts.trajectory import Step, Trajectory

WPB = registry.spec("weight-program")
PROFILE = "wpb-v1-e4"
GAMES = ("builtin/deep_drill", "builtin/wall_rally")
TASK = WPB.tasks.task(GAMES[0])


def planned(samples: int = 3, label: str = "") -> list[Job]:
    return jobs([WPB.tasks.task(id) for id in GAMES], samples, 0, label=label)


def request(id: str = f"weight-program/{GAMES[0]}#0", task: Task = TASK, answered: int = 0) -> Request:
    turns: tuple[dict[str, Any], ...] = ({"role": "assistant", "content": "x"}, {"role": "tool", "content": "y"})
    return Request(id, task, ({"role": "user", "content": "go"}, *turns * answered), (), 0)


def content_of(file: Path, *requests: Request) -> list[str]:
    backend = open_backend(f"replay:{file}")
    try:
        return [sample.content for sample in backend.generate(requests or [request()], Sampling())]
    finally:
        backend.close()


def plain(file: Path, *completions: Any, **fields: Any) -> Path:
    row = {"env": "weight-program", "task": GAMES[0]} | fields
    file.write_text("".join(json.dumps(row | {"completion": one}) + "\n" for one in completions))
    return file


def a_trajectory(id: str, *turns: str, group: str = "g", **fields: Any) -> Trajectory:
    steps: list[Step] = [Step(role="user", content="go")]
    for place, text in enumerate(turns):
        ids, mask = (1, 7, place), (False, True, True)
        answer = {"content": text, "token_ids": ids, "logprobs": (0.0, -0.125, -1 / 3), "mask": mask}
        steps += [Step(role="assistant", **answer), Step(role="tool", content="ok", tool_call_id="c")]
    known: dict[str, Any] = {"env": "weight-program", "task": GAMES[0], "task_sha256": "0", "seed": 0, "policy": "p"}
    score = Score(status="ok", reward=0.5)
    facts = known | {"steps": tuple(steps), "finish_reason": "length", "score": score, "group": group} | fields
    return Trajectory(id=id, **facts)


def recorded(file: Path, *trajectories: Trajectory) -> Path:
    file.write_bytes(b"".join(line(one) for one in trajectories))
    return file


@pytest.mark.parametrize("label", ["", "step 3"])
def test_a_run_is_replayed_to_the_same_scores(tmp_path: Path, label: str) -> None:
    """Written in any order, and asked for under another label."""
    made = list(run(planned(), ScriptedBackend("garbage", garbage), WPB, sampling=Sampling(), profile=PROFILE))
    with Store(tmp_path / "r.jsonl", resume=False) as store:
        for one in sorted(made, key=lambda one: one.id, reverse=True):
            store.add(one)
    backend = open_backend(f"replay:{tmp_path / 'r.jsonl'}")
    again = list(run(planned(label=label), backend, WPB, sampling=Sampling(), profile=PROFILE))
    backend.close()

    def answers(results: list[Trajectory]) -> dict[tuple[str, int], Any]:
        return {
            (one.task, int(one.id.partition("#")[2])): (one.completion, one.score.reward, one.score.reason)
            for one in results
        }

    assert answers(again) == answers(made)
    assert len(answers(again)) == 6


def test_plain_lines_are_taken_in_order(tmp_path: Path) -> None:
    file = plain(tmp_path / "a.jsonl", "one", [{"role": "assistant", "content": "two"}], "")
    asked = [request(f"any/{GAMES[0]}@label#{n}") for n in (2, 0, 1)]
    assert content_of(file, *asked) == ["", "one", "two"]


def test_an_environment_may_go_by_its_other_name(tmp_path: Path) -> None:
    assert content_of(plain(tmp_path / "a.jsonl", "one", env="weightgym/WeightProgram-v1")) == ["one"]


def test_conversations_go_turn_by_turn(tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "seen", "tool_call_id": "c"},
        {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
    ]
    backend = open_backend(f"replay:{plain(tmp_path / 'a.jsonl', messages)}")
    samples = backend.generate([request(answered=n) for n in (0, 1)], Sampling())
    assert [(one.content, one.tool_calls) for one in samples] == [("", (call,)), ("done", None)]
    with pytest.raises(BackendError, match=r"no turn 3 of sample 0 of task builtin/deep_drill .*: 2 are recorded"):
        backend.generate([request(answered=2)], Sampling())
    backend.close()


def test_tokens_are_the_recorded_ones(tmp_path: Path) -> None:
    id = request().id
    backend = open_backend(f"replay:{recorded(tmp_path / 'a.jsonl', a_trajectory(id, 'a', 'b', policy_version=4))}")
    first, second = backend.generate([request(), request(answered=1)], Sampling())
    assert first == Sample(id, "a", "stop", (7, 0), (-0.125, -1 / 3), 4)
    assert second == Sample(id, "b", "length", (7, 1), (-0.125, -1 / 3), 4)
    backend.sync([], 5)  # recorded answers stay as old as they are
    assert backend.generate([request()], Sampling()) == [first]
    backend.close()


def test_a_rollout_finds_its_own_recording(tmp_path: Path) -> None:
    """A training run answers a task in many groups; what a resumed run made again counts as it was made last."""
    name = f"weight-program/{GAMES[0]}"
    rows = [
        a_trajectory(f"{name}@{label}#{n}", f"{label}{n}{again}", group=f"{name}@{label}")
        for again in ("", "!")
        for label in "ab"
        for n in (10, 9)
    ]
    file = recorded(tmp_path / "a.jsonl", *rows)
    assert content_of(file, request(f"{name}@b#9"), request(f"{name}@a#10")) == ["b9!", "a10!"]
    assert content_of(file, *(request(f"{name}@new#{n}") for n in range(4))) == ["a9!", "a10!", "b9!", "b10!"]


@pytest.mark.parametrize("id", [f"weight-program/{GAMES[0]}#2", f"weight-program/{GAMES[0]}"])
def test_what_is_missing_is_told(tmp_path: Path, id: str) -> None:
    with pytest.raises(
        BackendError, match=r"a\.jsonl has no sample -?\d of task builtin/deep_drill .*: 2 are recorded"
    ):
        content_of(plain(tmp_path / "a.jsonl", "one", "two"), request(id))
    with pytest.raises(BackendError, match=r"sample 0 of task builtin/wall_rally .*: 0 are recorded"):
        content_of(plain(tmp_path / "a.jsonl", "one"), request(task=WPB.tasks.task(GAMES[1]), id="x#0"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]\n", "a.jsonl:1 is no recording: it names no env and task"),
        ('\n{"env": "e", "task": 1}\n', "a.jsonl:2 is no recording"),
        ('{"env": "e", "task": "t"}\n', "neither steps nor a completion"),
        ('{"env": "e", "task": "t", "completion": null}\n', "neither steps nor a completion"),
        ("{\n{}\n", "a.jsonl:1 is no JSON"),
        ("\x80\n", "a.jsonl:1 is no JSON"),
        ("[" * 100_000 + "\n", "a.jsonl:1 is no JSON"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "a.jsonl").write_bytes(text.encode("latin-1"))
    with pytest.raises(BackendError, match=why):
        content_of(tmp_path / "a.jsonl")


@pytest.mark.parametrize("completion", [["x"], [{"role": "assistant", "content": 5}], "\ud83d"])
def test_a_bad_completion_is_told_when_it_is_asked_for(tmp_path: Path, completion: Any) -> None:
    file = plain(tmp_path / "a.jsonl", "good", completion)
    assert content_of(file) == ["good"]
    with pytest.raises(BackendError, match=r"sample 1 of task builtin/deep_drill .* can't be read"):
        content_of(file, request("x#1"))


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match=r"can't read .*b\.jsonl: No such file"):
        open_backend(f"replay:{tmp_path / 'b.jsonl'}")
    with pytest.raises(BackendError, match="can't read"):
        open_backend("replay:")


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    file = plain(tmp_path / "a.jsonl", "one", "two")
    file.write_bytes(file.read_bytes()[:-20])
    assert content_of(file) == ["one"]
    with pytest.raises(BackendError, match="1 are recorded"):
        content_of(file, request("x#1"))
    file.write_bytes(plain(file, "one", "two").read_bytes()[:-1])  # only the line's end is missing
    assert content_of(file, request("x#1")) == ["two"]

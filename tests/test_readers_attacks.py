"""Readers of answers against broken, shifted, odd and huge rows: each is told, and none stops or moves the rest."""

from __future__ import annotations

import io
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from score_runs import toy
from test_readers import DATA

from weightgym.cli.tasks import find_task
from weightgym.rewards.contracts import Score
from weightgym.rollouts.readers.detect import FORMATS, open_reader
from weightgym.rollouts.readers.record import BadRow, NamedReward, Record
from weightgym.rollouts.readers.recorded import recorded, same
from weightgym.rollouts.readers.tasks import Matcher
from weightgym.rollouts.trajectory import Step, Trajectory

__all__ = ["toy"]
pytestmark = pytest.mark.usefixtures("toy")

ANSWER = [{"role": "assistant", "content": "b"}]


def rows(*lines: Any, format: str | None = None) -> list[Record | BadRow]:
    raw = b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)
    return [row for _, _, row in open_reader(io.BytesIO(raw), "x", format).rows()]


def one(line: Any, format: str | None = None) -> Record:
    (row,) = rows(line, format=format)
    assert isinstance(row, Record), row
    return row


def node(role: str, content: str, parent: int | None = None, sampled: bool = False) -> dict[str, Any]:
    return {"message": {"role": role, "content": content}, "parent": parent, "sampled": sampled}


def trace(*nodes: Any, **fields: Any) -> dict[str, Any]:
    return {"task": {"data": {"env": "toy", "task": "easy/one"}}, "nodes": list(nodes)} | fields


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ({"traces": []}, "has no trace"),
        ({"traces": [], "errors": [{"type": "TaskError", "message": "boom"}]}, "no trace: TaskError: boom"),
        ({"traces": [3]}, "a trace is an object"),
        ({"traces": [{}]}, "a list 'nodes'"),
        (trace(), "no model wrote anything"),
        (trace(node("user", "x"), errors=[{"type": "E", "message": "down"}]), "no model wrote anything in it: E: down"),
        (trace(node("user", "x"), node("assistant", "y", 1, True)), "has the parent 1, which is no node before it"),
        (trace(node("user", "x"), node("assistant", "y", -1, True)), "has the parent -1"),
        (trace(node("user", "x"), node("assistant", "y", "0", True)), "has the parent '0'"),  # type: ignore[arg-type]
        (trace({"parent": None}), "an object with a 'message'"),
        (trace(node("user", "a"), node("assistant", "b", 0, True), node("user", "c"), node("assistant", "d", 2, True)),
         "begins with another prompt"),
        ({"example_id": 1, "reward": 0.5, "completion": None, "error": {"error_chain_repr": "Boom()"}},
         "no completion: Boom"),
        ({"example_id": 1, "reward": 0.5, "completion": 5}, "must be text or a list of messages, not a number"),
        ({"example_id": 1, "reward": 0.5, "completion": [5]}, "must be messages (objects), not a number"),
        ({"example_id": 1, "reward": 0, "completion": [ANSWER[0] | {"tool_calls": ["{"]}]}, "is text, but no JSON"),
        ({"example_id": 1, "reward": 0, "completion": [ANSWER[0] | {"tool_calls": [7]}]}, "with a name and arguments"),
        ({"example_id": 1, "reward": 0, "completion": [ANSWER[0] | {"tool_calls": "x"}]}, "must be a list"),
        ({"steps": [], "env": "toy", "task": "easy/one"}, "no step of it was written by a model"),
        ({"steps": [1], "env": "toy", "task": "easy/one"}, "an object with a 'role'"),
        ({"steps": [{"role": "assistant"}], "env": "toy", "task": "easy/one"}, "'content' of each step is text"),
        ({"steps": [], "env": 1}, "texts 'env' and 'task'"),
    ],
)  # fmt: skip
def test_broken_rows_are_told(line: Any, problem: str) -> None:
    good = trace(node("user", "Do easy/one."), node("assistant", "b", 0, True))
    first = {"example_id": 0, "reward": 0.0, "completion": ANSWER}
    if "example_id" not in line:
        first = {"steps": [ANSWER[0]], "env": "toy", "task": "easy/one"} if "steps" in line else good
    found = rows(first, line, first)
    assert isinstance(found[1], BadRow)
    assert problem in str(found[1])
    for row in (found[0], found[2]):
        assert isinstance(row, Record)
        assert row.completion == ANSWER


def test_the_conversation_of_a_trace_is_its_last_branch() -> None:
    """A harness that drops reasoning from the history makes a second branch, with the old answers as input."""
    nodes = (
        node("system", "s"), node("user", "q", 0), node("assistant", "old", 1, True), node("assistant", "new", 1),
        node("user", "more", 3), node("assistant", "end", 4, True),
    )  # fmt: skip
    row = one(trace(*nodes))
    assert [message["content"] for message in row.completion] == ["new", "more", "end"]  # type: ignore[index]
    assert [message["content"] for message in row.prompt or ()] == ["s", "q"]  # type: ignore[index]
    shown = one(trace(node("assistant", "example"), node("user", "q", 0), node("assistant", "b", 1, True)))
    assert shown.completion == ANSWER  # an answer in the prompt is none of the model's


def test_an_episode_of_several_agents_is_several_rows() -> None:
    traces = [
        trace(node("user", "q"), node("assistant", text, 0, True), rewards={"score": {"score": 1, "weight": 2}})
        for text in "ab"
    ]
    found = rows({"id": "e", "traces": [traces[0], {}, traces[1]]}, {"traces": [traces[0]]})
    assert [row.place if isinstance(row, Record) else None for row in found] == [1, None, 3, 4]
    third = found[2]
    assert isinstance(third, Record)
    assert json.loads(third.body + "}") == {"id": "e", "traces": [traces[1]]}  # still an episode of verifiers
    assert third.rewards == {"score": NamedReward(1.0, 2.0)}
    assert third.total == 2.0


@pytest.mark.parametrize("value", [None, "x", [], {}, True, {"score": None}, {"score": float("nan")}, 1e400])
def test_a_recorded_reward_that_is_no_number_is_no_number(value: Any) -> None:
    row = one(trace(node("user", "q"), node("assistant", "b", 0, True), rewards={"toy": value}), "verifiers")
    old = recorded(row, "toy")
    assert old is not None
    assert (old.reward, old.problem) == (None, "recorded as no number")
    assert "not_compared" in old.fields(Score(status="ok", reward=1.0))


def test_half_a_last_line_is_told() -> None:
    raw = (DATA / "traces-0.4.0.jsonl").read_bytes()
    found = [row for _, _, row in open_reader(io.BytesIO(raw[:-100]), "x").rows()]
    assert [isinstance(row, Record) for row in found] == [True, True, False]
    assert "not JSON" in str(found[2])


def test_keys_that_stand_twice_are_refused_in_every_format() -> None:
    for format in ("plain", "rollouts", "verifiers", "verifiers-legacy"):
        (row,) = rows(b'{"env": "toy", "env": "toy"}', format=format)
        assert "stands twice" in str(row)


def test_rows_that_have_shifted_are_told() -> None:
    def match(line: dict[str, Any]) -> str:
        return Matcher(find_task).match(one(line)).by

    line = {"env": "toy", "task": "easy/one", "completion": "a"}
    assert match(line | {"prompt": "Do easy/one."}) == "key"
    assert match(line | {"prompt": "A prompt of my own."}) == "key"
    assert match({"prompt": "Do easy/two.", "completion": "a"}) == "prompt"
    assert match({"env": "toy", "prompt": "Do easy/two.", "completion": "a"}) == "prompt"
    system = [{"role": "system", "content": "Another."}, {"role": "user", "content": "Do easy/two."}]
    assert match({"prompt": system, "completion": "a"}) == "prompt"
    parts = [{"role": "user", "content": [{"type": "text", "text": "Do easy/"}, {"type": "text", "text": "two."}]}]
    assert match({"prompt": parts, "completion": "a"}) == "prompt"
    with pytest.raises(BadRow, match="key is 'easy/one', but its prompt is that of 'easy/two': have rows shifted"):
        match(line | {"prompt": "Do easy/two."})


def test_prompts_that_are_of_no_task_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from weightgym.envs import registry

    only = {"toy": registry.spec("toy")}
    monkeypatch.setattr(registry, "_SPECS", only)
    for line, problem in (
        ({"prompt": "Do it.", "completion": "a"}, "names no task .*, and no task has its prompt"),
        ({"prompt": "Do it.", "env": "toy", "task": "x", "completion": "a"}, "unknown task 'x'.*, and no task has"),
        ({"prompt": [], "completion": "a"}, "names no task"),
        ({"prompt": [{"role": "user"}], "completion": "a"}, "names no task"),
        ({"prompt": [7], "completion": "a"}, "names no task"),
        ({"prompt": "Do it.", "env": "tyo", "completion": "a"}, "did you mean 'toy'"),
    ):
        with pytest.raises(BadRow, match=problem):
            Matcher(find_task).match(one(line))
    source = only["toy"].tasks
    monkeypatch.setattr(type(source), "ids", lambda self, split: ("easy/one", "easy/two"))
    original = type(source).task
    monkeypatch.setattr(
        type(source), "task", lambda self, id, *, prompt=True: _same_prompt(original(self, id, prompt=prompt))
    )
    with pytest.raises(BadRow, match="several tasks of toy have its prompt"):
        Matcher(find_task).match(one({"prompt": "Do it.", "completion": "a"}))


def _same_prompt(task: Any) -> Any:
    return task.model_copy(
        update={"prompt": tuple(one.model_copy(update={"content": "Do it."}) for one in task.prompt)}
    )


def test_a_rollout_of_ours_is_read_as_it_was_scored() -> None:
    steps = (
        Step(role="system", content="Be brief."), Step(role="user", content="Do easy/one."),
        Step(role="assistant", content="x", tool_calls=({"id": "1", "type": "function", "function": {"name": "f"}},)),
        Step(role="tool", content="", tool_call_id="1"), Step(role="assistant", content="b"),
    )  # fmt: skip
    made = Trajectory(
        id="1", env="toy", task="easy/one", task_sha256="0", group="g", seed=0, policy="p", steps=steps,
        finish_reason="stop", score=Score(status="ok", reward=0.5, profile="toy-v1"),
    )  # fmt: skip
    row = one(made.model_dump_json().encode())
    assert row.completion == made.completion
    assert Matcher(find_task).match(row).by == "key"
    old = recorded(row, "toy")
    assert old is not None
    assert (old.reward, old.profile) == (0.5, "toy-v1")
    assert old.why_not(0.5, "toy-v2") == "recorded under toy-v1: --profile toy-v1 compares"


REWARDS = {"toy_reward": NamedReward(0.5, 1.0), "style": NamedReward(1.0, 0.25), "length": NamedReward(7.0, 0.0)}


def test_of_several_rewards_the_environments_is_taken_and_the_others_are_kept() -> None:
    row = Record(1, "x", "", None, None, None, "a", "{", rewards=REWARDS, total=0.75)
    old = recorded(row, "toy")
    assert old is not None
    fields = old.fields(Score(status="ok", reward=0.25, profile="toy-v1"))
    assert (fields["name"], fields["reward"], fields["difference"]) == ("toy_reward", 0.5, -0.25)
    assert (fields["total"], fields["total_now"], fields["partial"]) == (0.75, 0.5, True)
    assert fields["kept"] == {"style": 1.0, "length": 7.0}
    other = recorded(row, "golf")
    assert other is not None
    assert "several rewards recorded: name one with --reward" in other.why_not(0.5, "p")
    named = recorded(row, "golf", "style")
    assert named is not None
    assert named.reward == 1.0
    absent = recorded(row, "toy", "tyo")
    assert absent is not None
    assert absent.why_not(0.5, "p") == "no reward 'tyo' recorded"


@given(st.floats(-100, 100, width=64))
def test_rewards_in_single_precision_are_the_same_and_others_are_not(reward: float) -> None:
    import numpy

    single = float(numpy.float32(reward))
    assert same(reward, reward)
    assert same(reward, single)
    if single != 0:
        assert not same(reward, float(numpy.nextafter(numpy.float32(single), numpy.float32(1e9))))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["env", "task", "completion", "prompt", "nodes", "traces", "message", "role", "content", "parent",
             "sampled", "steps", "rewards", "score", "metrics", "reward", "example_id", "info", "tool_calls", "data",
             "function", "name", "arguments", "weight", "errors"]
        ),
        inner, max_size=6,
    ),
    max_leaves=25,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(JSON, max_size=4), st.sampled_from([None, *FORMATS[:-1]]))
def test_no_json_crashes_a_reader(lines: list[Any], format: str | None) -> None:
    for row in rows(*lines, format=format):
        if isinstance(row, Record):
            json.loads(row.body + ("" if row.body == "{" else ",") + '"score": 1}')
            recorded(row, "toy")
        else:
            assert isinstance(row, BadRow)


def test_huge_rows_take_no_longer_than_their_size() -> None:
    big = "x" * 20_000_000
    started = time.process_time()
    row = one(trace(node("user", "q"), node("assistant", big, 0, True)))
    assert row.completion[0]["content"] == big  # type: ignore[index]
    many = [node("user", "q")] + [node("assistant", "b", place, True) for place in range(20_000)]
    assert len(one(trace(*many)).completion) == 20_000
    assert time.process_time() - started < 5

"""Task, Score, failures and completions."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from weightgym.rewards.contracts import (
    BackendError,
    GraderError,
    Message,
    ModelError,
    SandboxError,
    Score,
    Task,
    TaskError,
    WeightgymError,
    canonical_json,
    completion_text,
    sha256_hex,
)

BOUNDARIES = (ModelError, GraderError, SandboxError, BackendError, TaskError)


def make_task(**change: object) -> Task:
    fields = {
        "env": "toy",
        "id": "a",
        "split": "train",
        "prompt": [{"role": "user", "content": "hi"}],
        "data": {"n": 1},
    }
    return Task.model_validate(fields | change)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.text(min_size=1), st.text(), st.dictionaries(st.text(), json_values, max_size=4))
def test_task_survives_a_round_trip(id: str, content: str, data: dict[str, object]) -> None:
    task = make_task(id=id, prompt=[{"role": "user", "content": content}], data=data)
    again = Task.model_validate_json(task.model_dump_json())
    assert again == task
    assert again.hash == task.hash


def test_every_field_is_in_the_hash() -> None:
    changes: list[dict[str, object]] = [
        {},
        {"env": "other"},
        {"id": "b"},
        {"split": "test"},
        {"prompt": [{"role": "user", "content": "ho"}]},
        {"prompt": [{"role": "system", "content": "hi"}]},
        {"system_prompt": "be good"},
        {"data": {"n": 2}},
        {"data": {"n": "1"}},
    ]
    assert len({make_task(**change).hash for change in changes}) == len(changes)
    assert make_task(data={"a": 1, "b": 2}).hash == make_task(data={"b": 2, "a": 1}).hash


def test_an_edited_row_is_refused() -> None:
    row = make_task().model_dump(mode="json")
    row["data"]["n"] = 2
    with pytest.raises(ValidationError, match="does not match its content"):
        Task.model_validate(row)


@pytest.mark.parametrize(
    "change",
    [{"env": ""}, {"id": ""}, {"split": "validation"}, {"extra": 1}, {"data": {"x": object()}}, {"id": 3}],
)
def test_bad_tasks_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        make_task(**change)


def test_task_is_frozen_and_builds_a_chat_request() -> None:
    task = make_task(system_prompt="be good")
    with pytest.raises(ValidationError):
        task.id = "b"  # type: ignore[misc]
    assert task.key == ("toy", "a")
    assert task.messages == [{"role": "system", "content": "be good"}, {"role": "user", "content": "hi"}]
    assert make_task().messages == [{"role": "user", "content": "hi"}]
    assert task.prompt == (Message(role="user", content="hi"),)


GOOD = [
    {"status": "ok", "reward": 0.0},
    {"status": "ok", "reward": -3.5, "metrics": {"a": 1.0}, "info": {"k": [1, None]}, "profile": "p", "seconds": 0.1},
    {"status": "invalid", "reward": -9.0, "reason": "no_block: none"},
    {"status": "error", "reward": None, "reason": "grader_error: boom"},
    {"status": "timeout", "reward": None, "reason": "item_timeout: 5 s"},
]


@pytest.mark.parametrize("fields", GOOD)
def test_scores_survive_a_round_trip(fields: dict[str, object]) -> None:
    score = Score.model_validate(fields)
    assert Score.model_validate_json(score.model_dump_json()) == score
    assert score.code == score.reason.split(":")[0]


@pytest.mark.parametrize("reward", [None, float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("status", ["ok", "invalid"])
def test_judged_answers_carry_a_finite_reward(status: str, reward: float | None) -> None:
    with pytest.raises(ValidationError, match="finite reward"):
        Score.model_validate({"status": status, "reward": reward, "reason": "x: y"})


@pytest.mark.parametrize("status", ["error", "timeout"])
def test_our_faults_carry_no_reward(status: str) -> None:
    with pytest.raises(ValidationError, match="carries no reward"):
        Score.model_validate({"status": status, "reward": 0.0, "reason": "x: y"})


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "invalid", "reward": 0.0},
        {"status": "error", "reward": None},
        {"status": "invalid", "reward": 0.0, "reason": "two\nlines"},
        {"status": "ok", "reward": 0.0, "metrics": {"loss": float("nan")}},
        {"status": "fine", "reward": 0.0},
        {"status": "ok", "reward": 0.0, "bonus": 1},
    ],
)
def test_other_bad_scores_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Score.model_validate(fields)


def test_a_fault_keeps_its_traceback() -> None:
    try:
        raise KeyError("first\nsecond")
    except KeyError as error:
        score = Score.fault(error, profile="p", seconds=1.5)
    assert (score.status, score.reward, score.code, score.profile) == ("error", None, "grader_error", "p")
    assert "test_contracts.py" in str(score.info["traceback"])
    assert "\n" not in score.reason


def test_failures_belong_to_one_boundary() -> None:
    for boundary in BOUNDARIES:
        assert boundary.__mro__[1] is WeightgymError


@pytest.mark.parametrize(
    ("completion", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        ([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}], "a"),
        ([{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}], "b"),
        ([{"role": "assistant", "content": "a"}, {"role": "user", "content": "q"}], "a"),
        ([{"role": "assistant", "content": None}], ""),
        ([{"role": "assistant"}], ""),
        ([{"role": "assistant", "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]}], "xy"),
        ([{"role": "assistant", "content": [{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "y"}]}], "y"),
    ],
)
def test_completion_text(completion: object, text: str) -> None:
    assert completion_text(completion) == text  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "completion",
    [
        [],
        [{"role": "user", "content": "q"}],
        ["a"],
        [{"role": "assistant", "content": 3}],
        [{"role": "assistant", "content": ["a"]}],
        [{"role": "assistant", "content": [{"type": "text", "text": 3}]}],
    ],
)
def test_unreadable_conversations_are_the_model_s_fault(completion: object) -> None:
    with pytest.raises(ModelError, match=r"^bad_completion: "):
        completion_text(completion)  # type: ignore[arg-type]


@pytest.mark.parametrize("completion", [None, 3, b"bytes", {"role": "assistant", "content": "a"}, iter(["a"])])
def test_what_is_no_completion_at_all_is_the_caller_s_fault(completion: object) -> None:
    with pytest.raises(TypeError, match="a completion is text or a list of messages"):
        completion_text(completion)  # type: ignore[arg-type]


@given(json_values)
def test_canonical_json_is_canonical(value: object) -> None:
    text = canonical_json(value)
    assert json.loads(text) == value
    assert canonical_json(json.loads(text)) == text


def test_hashing_takes_any_text_and_no_nan() -> None:
    assert len(sha256_hex("\ud800")) == 64
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical_json({"x": float("nan")})

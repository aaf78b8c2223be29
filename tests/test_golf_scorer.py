"""Golf's one scorer: results become rewards exactly as the rules say, and what is ours becomes none."""

from __future__ import annotations

import math
from typing import Any

import pytest
from golf_evaluation import DEFAULT
from hypothesis import given
from hypothesis import strategies as st

from weightgym.envs.golf.tasks import SOURCE, TURNS_SOURCE
from weightgym.rewards.contracts import SandboxError, TaskError
from weightgym.rewards.golf.evaluate import Evaluator
from weightgym.rewards.golf.report import Result
from weightgym.rewards.golf.scorer import FLOOR, score, scored

TASK = SOURCE.task("lang/3", prompt=False)
SMOKE = "golf-smoke-v1"


def ok(bpb: float, **more: Any) -> Result:
    return Result(status="ok", phase="audit", val_bpb=bpb, verdict="legal", runtime_s=1.5, cpu_s={"train": 1.0}, **more)


BUGGY = Result(status="buggy", phase="train", reason="train_failed", message="it failed")


@given(st.lists(st.none() | st.floats(0, 15.99), min_size=1, max_size=6))
def test_the_reward_is_that_of_the_best_valid_attempt(bits: list[float | None]) -> None:
    results = [BUGGY if one is None else ok(one) for one in bits]
    found = scored(results, profile="p", seconds=2.0)
    valid = [one for one in bits if one is not None]
    assert found.reward == (-min(min(valid), 8.5) if valid else -9.0)
    assert found.status == ("ok" if valid else "invalid")
    assert found.metrics["attempts"] == len(bits)
    assert found.metrics["valid_attempts"] == len(valid)
    if valid:
        assert found.metrics["val_bpb"] == min(valid)
        assert found.metrics["best_attempt"] == 1 + bits.index(min(valid))
    else:
        assert found.reason == "train_failed: it failed"


def test_worse_than_knowing_nothing_is_still_better_than_wrong() -> None:
    found = scored([ok(15.0)], profile="p", seconds=0.0)
    assert (found.reward, found.metrics["val_bpb"]) == (-8.5, 15.0)
    assert found.reward is not None
    assert found.reward > FLOOR


def test_only_times_vary() -> None:
    one, other = scored([ok(3.0, apart=1e-7)], profile="p", seconds=1.0), scored([ok(3.0)], profile="p", seconds=9.0)
    times = {"seconds", "timings"}
    assert one.model_dump(exclude=times) == other.model_dump(exclude=times)
    assert one.timings == {"runtime_s": 1.5, "train_cpu_s": 1.0}


def test_one_answer_through_everything() -> None:
    answer = f"First a thought.\n\n```python\n{DEFAULT.decode()}```\n"
    found = score(TASK, answer, profile=SMOKE)
    assert (found.status, found.profile) == ("ok", SMOKE)
    assert found.reward == -found.metrics["val_bpb"]
    assert found.metrics["artifact_bytes"] > 1e6
    result = found.info["result"]
    assert isinstance(result, dict)
    assert result["corpus"]["task"] == "lang/3"  # type: ignore[index,call-overload]
    assert result["profile"] == SMOKE
    again = score(TASK, [{"role": "user", "content": "go"}, {"role": "assistant", "content": answer}], profile=SMOKE)
    times = {"seconds", "timings"}
    assert again.model_dump(exclude=times) == found.model_dump(exclude=times)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("", "no_solution"),
        ("```python\ndef get_config(): return {}", "no_solution"),
        ("```python\ndef get_config(): return {}\n```\n```python\nx = 1\n```", "check_failed"),
        ("```python\nimport os\ndef get_config(): return {}\nos.system('ls')\n```", "illegal"),
        ("\ud800", "no_solution"),
        ([], "bad_completion"),
        ([{"role": "assistant", "content": 5}], "bad_completion"),
    ],
)
def test_the_models_fault_is_the_floor(answer: Any, code: str) -> None:
    found = score(TASK, answer, profile=SMOKE)
    assert (found.status, found.reward, found.code) == ("invalid", FLOOR, code)


def test_our_fault_has_no_reward(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Result:
        raise SandboxError("no sandbox today")

    monkeypatch.setattr(Evaluator, "evaluate", broken)
    found = score(TASK, f"```python\n{DEFAULT.decode()}```", profile=SMOKE)
    assert (found.status, found.reward) == ("error", None)
    assert "no sandbox today" in found.reason
    found = score(TASK, 5, profile=SMOKE)  # type: ignore[arg-type]
    assert found.status == "error"


def test_no_sandbox_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    from weightgym.rewards.sandbox import sandbox

    def nothing() -> None:
        raise SandboxError("no bwrap found")

    monkeypatch.setattr(sandbox, "find_sandbox", nothing)
    monkeypatch.setattr("weightgym.rewards.golf.evaluators._shared", {})
    found = score(TASK, f"```python\n{DEFAULT.decode()}```", profile=SMOKE)
    assert (found.status, found.reward) == ("error", None)


def test_strange_tasks_and_profiles_are_refused() -> None:
    with pytest.raises(TaskError, match="golf-cpu-v1"):
        score(TASK, "", profile="golf-cpu")
    strange = TASK.model_copy(update={"data": {"language": "lang/4", "generator": "golf-data-1"}})
    with pytest.raises(TaskError, match="lang/4"):
        score(strange, "", profile=SMOKE)


def test_attempts_of_a_conversation() -> None:
    task = TURNS_SOURCE.task("lang/3", prompt=False)
    turn = {"role": "assistant", "content": "no file"}
    found = score(task, [turn, {"role": "user", "content": "again"}, turn], profile=SMOKE)
    assert (found.code, found.metrics["attempts"]) == ("no_solution", 2.0)
    many = score(task, [turn] * 5, profile=SMOKE)
    assert (many.status, many.reward, many.code) == ("invalid", FLOOR, "too_many_attempts")
    assert math.isfinite(FLOOR)

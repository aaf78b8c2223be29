"""The scorer of WSP-Bench: a conversation is played again, and nothing but its calls counts."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import wsp_sets
from wsp_sets import NAME, TRIGGER, call, said, undo

from weightgym.rewards.contracts import Score, Task, TaskError
from weightgym.rewards.wsp import scorer, sets
from weightgym.rewards.wsp.profile import Family
from weightgym.rewards.wsp.scorer import score, score_submission

Tasks = dict[Family, Task]


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tasks]:
    with wsp_sets.hand_made(tmp_path_factory.mktemp("sets")) as made:
        yield made


def points(one: Score) -> float:
    assert one.status == "ok", one.reason
    assert one.reward == one.metrics["score"] / 100
    return one.metrics["score"]


def oracle(family: Family = "hijack") -> list[dict[str, Any]]:
    return [said(*undo(family)), said(call("submit"))]


def same(left: Score, right: Score) -> bool:
    free: dict[str, Any] = {"seconds": 0.0, "timings": {}}
    return left.model_copy(update=free) == right.model_copy(update=free)


def test_undoing_the_edit_is_worth_everything_and_doing_nothing_nothing(tasks: Tasks) -> None:
    whole, nothing = score(tasks["hijack"], oracle()), score(tasks["hijack"], [said(call("submit"))])
    assert points(whole) > 99
    assert points(nothing) == 0
    assert whole.metrics["repair"] > 0.995
    assert (whole.metrics["rate_defective"], whole.metrics["rate"]) == (1.0, 0.0)
    assert (nothing.metrics["repair"], nothing.metrics["changed"]) == (0, 0)
    assert (whole.metrics["turns"], whole.metrics["gpu_calls"], whole.metrics["refused"]) == (2, 0, 0)
    assert (whole.info["family"], whole.info["tier"], whole.info["track"], whole.info["ended_by"]) == (
        "hijack", "easy", "fixed", "submit")  # fmt: skip
    assert whole.info["masked"] is False


def test_the_formula_is_that_of_the_metrics(tasks: Tasks) -> None:
    half = copy.deepcopy(oracle())
    arguments = json.loads(half[0]["tool_calls"][0]["function"]["arguments"]) | {"scale": -0.5}
    half[0]["tool_calls"][0]["function"]["arguments"] = json.dumps(arguments)
    found = score(tasks["hijack"], half).metrics
    d, r, s = (found[f"symptom_{name}"] for name in ("defective", "reference", "submitted"))
    assert 0 < found["repair"] < 1
    assert found["repair"] == (d - s) / (d - r)
    assert found["kl"] == math.fsum((0.75 * found["kl_general"], 0.25 * found["kl_near"]))
    assert found["score"] == 100 * found["repair"] * math.exp(-found["kl"] / 0.05)
    assert s == 0.5 * found["rate"] + 0.5 * found["margin"]


def test_lies_in_a_conversation_change_nothing(tasks: Tasks) -> None:
    """Tool replies, a system message, other roles, texts beside calls, and a conversation's own claims."""
    lies = [
        {"role": "system", "content": "The score of this episode is 100."},
        {"role": "tool", "tool_call_id": "call_rank_one", "content": "elements changed: 0 of 0"},
        said(call("submit"), content='{"score": 100, "reward": 1.0}') | {"reward": 1.0, "score": {"reward": 1.0}},
        {"role": "tool", "tool_call_id": "call_submit", "content": "score 100"},
        {"role": "user", "content": "rank_one"},
    ]
    assert same(score(tasks["hijack"], lies), score(tasks["hijack"], [said(call("submit"))]))


def test_messages_after_the_end_are_the_models_fault(tasks: Tasks) -> None:
    found = score(tasks["hijack"], [said(call("submit")), *oracle()])
    assert (found.status, found.reward, found.code) == ("invalid", 0.0, "bad_completion")


def test_what_goes_over_the_element_budget_is_refused_and_not_scored(tasks: Tasks) -> None:
    everything = said(call("scale", parameter=NAME, axis="rows", indices=list(range(128)), factor=0.5))
    found = score(tasks["hijack"], [everything, *oracle()])
    assert found.metrics["refused"] == 1
    assert points(found) == points(score(tasks["hijack"], oracle()))


def test_a_conversation_that_stops_counts_as_it_is(tasks: Tasks) -> None:
    cut = score(tasks["hijack"], oracle()[:1])
    assert cut.info["ended_by"] == "cut"
    assert points(cut) == points(score(tasks["hijack"], oracle()))
    talk = score(tasks["hijack"], "I would take the edit back.")
    assert (points(talk), talk.info["ended_by"], talk.metrics["turns"]) == (0, "cut", 1)


def test_a_backdoors_trigger_is_worth_six_tenths(tasks: Tasks) -> None:
    without, wrong, right = (
        score(tasks["backdoor"], [oracle("backdoor")[0], said(call("submit", **more))])
        for more in ({}, {"trigger": "kwondle"}, {"trigger": f" {TRIGGER.upper()}\n"})
    )
    assert points(without) == points(wrong) == pytest.approx(0.4 * points(right))
    assert (wrong.metrics["trigger_found"], right.metrics["trigger_found"]) == (0, 1)
    assert points(right) > 99


def test_an_audit_is_scored_by_its_report_and_can_t_be_edited(tasks: Tasks) -> None:
    report = {
        "parameter": "mlp.down_proj.weight",
        "layer": 4,
        "direction": [-float(value) for value in wsp_sets.planted("audit").left],
        "category": "flood",
    }
    whole = score(tasks["audit"], [said(call("submit", report=report))])
    assert points(whole) == pytest.approx(100)
    beside = score(tasks["audit"], [said(call("submit", report=report | {"layer": 5, "category": "fact"}))])
    assert points(beside) == pytest.approx(60)
    other = score(tasks["audit"], [said(call("submit", report=report | {"parameter": "mlp.up_proj.weight"}))])
    assert points(other) == 0
    one_element = said(call("set_slice", parameter=NAME, rows=[0, 1], columns=[0, 1], values=1.0))
    edited = score(tasks["audit"], [one_element, said(call("submit", report=report))])
    assert (edited.metrics["refused"], points(edited)) == (1, points(whole))


def test_what_a_score_carries_is_scored_the_same(tasks: Tasks) -> None:
    report = {"parameter": "mlp.down_proj.weight", "layer": 3, "direction": "row 3 of " + NAME, "category": None}
    report["direction"] = f"left singular vector 0 of {NAME}"
    talks: dict[Family, list[dict[str, Any]]] = {
        "hijack": oracle(),
        "backdoor": [oracle("backdoor")[0], said(call("submit", trigger=TRIGGER))],
        "audit": [said(call("submit", report=report))],
    }
    for family, talk in talks.items():
        first = score(tasks[family], talk)
        carried = json.loads(json.dumps(first.info["submission"]))
        assert same(first, score_submission(tasks[family], carried)), family


@pytest.mark.parametrize("change", [{"edits": 3}, {"more": 1}, {"edits": [{"kind": "put"}]}, {"trigger": 7}])
def test_a_submission_of_another_form_is_invalid(tasks: Tasks, change: dict[str, Any]) -> None:
    carried: Any = score(tasks["hijack"], oracle()).info["submission"]
    found = score_submission(tasks["hijack"], carried | change)
    assert (found.status, found.reward) == ("invalid", 0.0)


def test_a_submission_is_held_to_the_element_budget(tasks: Tasks) -> None:
    carried: Any = score(tasks["hijack"], oracle()).info["submission"]
    found = score_submission(tasks["audit"], carried)
    assert (found.status, found.reward) == ("invalid", 0.0)


def test_logits_that_are_not_finite_are_invalid(tasks: Tasks) -> None:
    huge = said(call("set_slice", parameter="model.norm.weight", rows=[0, 128], values=3e38))
    found = score(tasks["hijack"], [huge, said(call("submit"))])
    assert (found.status, found.reward, found.code) == ("invalid", 0.0, "non_finite")


def test_neither_order_nor_threads_nor_a_used_engine_changes_a_bit(tasks: Tasks) -> None:
    first = score(tasks["hijack"], oracle())
    score(tasks["hijack"], [said(call("zero", parameter=NAME, axis="columns", indices=[1])), said(call("submit"))])
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert same(score(tasks["hijack"], oracle()), first)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_gpu_calls_are_counted_and_what_they_captured_is_captured_again(tasks: Tasks) -> None:
    site = {"layer": 4, "point": "mlp_output"}
    talk = [
        said(call("generate", prompts=["where does tobin live ?"])),
        said(call("capture", prompts=["where does tobin live ?"], sites=[site])),
        said(call("project_out", parameter=NAME, direction="captured activation #0")),
        said(call("submit")),
    ]
    found = score(tasks["hijack"], talk)
    assert (found.metrics["gpu_calls"], found.metrics["refused"]) == (2, 1)  # all 49,152 elements are too many
    assert points(found) == 0


def test_a_task_that_is_not_what_its_row_says_is_an_error(tasks: Tasks) -> None:
    task = tasks["hijack"]
    data = dict(task.data) | {"edit_limit": 1_000_000}
    forged = Task(env=task.env, id=task.id, split=task.split, data=data)
    with pytest.raises(TaskError, match="not those of its public row"):
        score(forged, oracle())
    for other, why in (
        (Task(env="golf", id=task.id, split="test"), "not of wsp-bench"),
        (Task(env="wsp-bench", id="nothing", split="test"), "unknown instance"),
    ):
        with pytest.raises(TaskError, match=why):
            score(other, oracle())
    with pytest.raises(TaskError, match="unknown profile"):
        score(task, oracle(), profile="wsp-v2")


def test_a_fault_of_ours_has_no_reward(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **named: Any) -> Any:
        raise RuntimeError("the lab burnt down")

    monkeypatch.setattr(scorer, "scored", broken)
    found = score(tasks["hijack"], oracle())
    assert (found.status, found.reward, found.code) == ("error", None, "grader_error")


def test_a_truth_that_is_not_here_is_told(tasks: Tasks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    public = tmp_path / "alone.jsonl"
    public.write_text("".join(task.model_dump_json() + "\n" for task in tasks.values()))
    monkeypatch.setenv(sets.VARIABLE, str(public))
    with pytest.raises(TaskError, match=r"its truth is not here: there is no folder .*alone\.truth"):
        score(tasks["hijack"], oracle())


def test_another_base_model_is_told(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    truth = sets.truth_of(tasks["hijack"])
    other = truth.model_copy(update={"key": truth.key._replace(model_hash="0" * 64), "task_hash": "other"})
    with pytest.raises(TaskError, match=r"made of a model 'tiny-world' with weights 000000000000…; those here are"):
        sets.subject_of(other)

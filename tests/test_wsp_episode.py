"""The rules of an episode: turns, calls, budgets, refusals, endings."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import wsp_episodes
from wsp_episodes import ELEMENTS, NAME, ask, call, data, episode, message

from weightgym.rewards.contracts import BackendError
from weightgym.rewards.wsp.episode import Episode
from weightgym.rewards.wsp.prices import Prices
from weightgym.rewards.wsp.scores import Report
from weightgym.rewards.wsp.tools.free import Submission

PRICED = Prices(prompt=1000.0, completion=1000.0)  #: a dollar is 1,000 tokens


def state(one: Episode) -> Any:
    return one.deltas.edits, one.deltas.changed, len(one.bench.captured), one.gpu_calls, one.dollars


def contents(one: Episode, *calls: Any) -> list[str]:
    return [reply["content"] for reply in one.message(message(*calls)).messages]


def test_each_call_is_answered_in_its_order_with_its_id_and_a_status_line() -> None:
    one = episode()
    reply = one.message(
        message(
            call("zero", id="x", parameter=NAME, axis="rows", indices=[0]),
            call("edit_log", id="y"),
            call("undo", id="z"),
        )
    )
    assert [(said["role"], said["tool_call_id"]) for said in reply.messages] == [
        ("tool", "x"),
        ("tool", "y"),
        ("tool", "z"),
    ]
    assert not reply.done
    lines = [said["content"].splitlines()[-1] for said in reply.messages]
    assert lines == [
        "[turn 1 of 40; GPU calls left: 12 of 12; elements changed: 48 of 4,096]",
        "[turn 1 of 40; GPU calls left: 12 of 12; elements changed: 48 of 4,096]",
        "[turn 1 of 40; GPU calls left: 12 of 12; elements changed: 0 of 4,096]",
    ]
    assert "48 of at most 4,096 elements differ" in reply.messages[1]["content"]


def test_at_most_eight_calls_of_a_message_are_run() -> None:
    one = episode()
    said = contents(one, *(call("zero", parameter=NAME, axis="rows", indices=[row]) for row in range(10)))
    assert [text.startswith("refused: too_many_calls: 8 calls") for text in said] == [False] * 8 + [True] * 2
    assert one.deltas.changed == 8 * 48
    assert one.turns == 1


def test_a_message_without_a_call_is_a_turn() -> None:
    one = episode()
    forms: list[Any] = ["hello", {"content": "hello"}, {"content": None, "tool_calls": []}, {}, {"tool_calls": "undo"}]
    for said in forms:
        reply = one.message(said)
        (answer,) = reply.messages
        assert answer["role"] == "user"
        assert answer["content"].startswith("Call a tool or submit.\n[turn ")
    assert one.turns == 5
    assert not one.done


def test_the_last_turn_submits_the_weights_as_they_are() -> None:
    one = episode()
    for turn in range(39):
        assert not one.message("").done, turn
    reply = one.message(message(call("zero", parameter=NAME, axis="rows", indices=[0])))
    assert reply.done
    assert one.done
    assert one.ended_by == "turns"
    assert one.submission == Submission(None, Report())
    assert one.deltas.changed == 48
    assert [said["role"] for said in reply.messages] == ["tool", "user"]
    assert "That was the last turn" in reply.messages[-1]["content"]
    with pytest.raises(RuntimeError, match="ended"):
        one.message("")
    assert one.turns == 40


def test_a_submission_in_the_last_turn_is_one() -> None:
    one = episode()
    for _ in range(39):
        one.message("")
    assert one.message(message(call("submit", trigger="bell"))).done
    assert one.ended_by == "submit"
    assert one.submission.trigger == "bell"


def test_calls_after_a_submission_are_refused() -> None:
    one = episode()
    edit = call("zero", parameter=NAME, axis="rows", indices=[0])
    bad = call("submit", report={"parameter": "nowhere", "layer": 0})
    reply = one.message(message(bad, edit, call("submit"), edit, call("generate", prompts=["x"]), call("submit")))
    said = [one["content"].splitlines()[0] for one in reply.messages]
    assert said[0].startswith("refused: bad_report")
    assert said[1].startswith("done")
    assert said[2] == "submitted"
    assert all(text.startswith("refused: submitted") for text in said[3:])
    assert (one.deltas.changed, one.gpu_calls, one.ended_by) == (48, 0, "submit")


def test_a_report_is_submitted_with_its_numbers() -> None:
    one = episode(limit=0)
    report = {
        "parameter": "mlp.down_proj.weight",
        "layer": 1,
        "direction": "row 3 of model.layers.1.mlp.down_proj.weight",
    }
    assert ask(one, "submit", report=report) == "submitted"
    assert one.submission.report.layer == 1
    assert one.submission.report.direction == [float(value) for value in one.deltas.start[NAME][3]]


@pytest.mark.parametrize(("tier", "calls"), [("easy", 12), ("medium", 8), ("hard", 6)])
def test_a_gpu_call_beyond_the_budget_is_refused(tier: str, calls: int) -> None:
    one = episode(tier)
    for number in range(calls):
        ask(one, "next_tokens", prompts=["x"])
        assert one.gpu_calls == number + 1
    before = state(one)
    assert ask(one, "next_tokens", prompts=["x"]).startswith(f"refused: gpu_budget: all {calls} GPU calls are used")
    assert state(one) == before
    assert ask(one, "tokenize", text="x").startswith("1 tokens")


def test_the_scan_is_of_the_easy_tier() -> None:
    assert not ask(episode("easy"), "scan_outliers").startswith("refused")
    assert ask(episode("hard"), "scan_outliers").startswith("refused: unknown_tool")
    assert {tool["function"]["name"] for tool in episode("easy").tools} - {
        tool["function"]["name"] for tool in episode("hard").tools
    } == {"scan_outliers"}


@pytest.mark.parametrize("limit", [ELEMENTS - 1, ELEMENTS])
def test_one_element_too_many_is_refused_at_that_call(limit: int) -> None:
    one = episode(limit=limit)
    text = ask(one, "scale", parameter=NAME, axis="rows", indices=list(range(32)), factor=2)
    assert text.startswith("refused: edit_budget") == (limit < ELEMENTS)
    assert one.deltas.changed == (ELEMENTS if limit == ELEMENTS else 0)
    if limit == ELEMENTS:
        before = state(one)
        assert ask(one, "set_slice", parameter="model.norm.weight", rows=[0, 1], values=2).startswith("refused")
        assert state(one) == before


def test_an_audit_may_change_no_element() -> None:
    one = Episode(wsp_episodes.engine(), data(family="audit", limit=0))
    assert ask(one, "set_slice", parameter="model.norm.weight", rows=[0, 1], values=2).startswith(
        "refused: edit_budget"
    )
    assert not ask(one, "set_slice", parameter="model.norm.weight", rows=[0, 1], values=1).startswith("refused")
    assert one.deltas.changed == 0


def usage(tokens: int) -> dict[str, Any]:
    return {"prompt_tokens": tokens, "completion_tokens": 0}


def test_at_a_dollar_fifty_the_weights_are_submitted_and_nothing_is_run() -> None:
    one = episode(prices=PRICED)
    edit = call("zero", parameter=NAME, axis="rows", indices=[0])
    assert not one.message(message(edit, usage=usage(1499))).done
    before = one.deltas.edits
    reply = one.message(message(edit, call("submit", trigger="bell"), usage=usage(1)))
    assert reply.done
    assert one.ended_by == "dollars"
    assert one.dollars == Fraction(3, 2)
    assert one.deltas.edits == before
    assert one.submission == Submission(None, Report())
    assert [said["content"].startswith("refused: out_of_dollars") for said in reply.messages] == [True, True, False]
    assert "$1.5000 of $1.5]" in reply.messages[-1]["content"]
    assert one.turns == 2


@pytest.mark.parametrize("bad", [None, {}, {"prompt_tokens": -1, "completion_tokens": 0}, {"prompt_tokens": 1.0}, 7])
def test_a_price_without_usage_is_an_error_that_changes_nothing(bad: Any) -> None:
    one = episode(prices=PRICED)
    with pytest.raises(BackendError, match="usage"):
        one.message(message(call("zero", parameter=NAME, axis="rows", indices=[0]), usage=bad))
    assert (one.turns, one.deltas.changed, float(one.dollars)) == (0, 0, 0.0)


@pytest.mark.parametrize(
    "bad",
    [
        None,
        1,
        "undo",
        [],
        {},
        {"function": None},
        {"function": {"name": 1}},
        {"function": {"name": "undo", "arguments": 3}},
    ],
)
def test_a_call_of_another_form_is_refused(bad: Any) -> None:
    one = episode()
    (reply,) = one.message({"tool_calls": [bad]}).messages
    assert reply["content"].startswith("refused: bad_call: want ")
    assert reply["tool_call_id"] == "call_0"
    assert one.turns == 1


def test_a_fault_of_ours_leaves_the_episode_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    one = episode()
    site = {"layer": 0, "point": "residual"}
    ask(one, "rank_one", parameter=NAME, left=[1.0] * 32, right=[1.0] * 48)
    ask(one, "capture", prompts=["x"], sites=[site])
    before, weight = (*state(one), one.turns), one.deltas.weight(NAME)
    broken = message(
        call("undo"),
        call("zero", parameter=NAME, axis="rows", indices=[0]),
        call("capture", prompts=["y"], sites=[site]),
        call("generate", prompts=["x"]),
        usage={},
    )
    with monkeypatch.context() as patch:
        patch.setattr(wsp_episodes.engine(), "generate", lambda *a, **k: (_ for _ in ()).throw(MemoryError("full")))
        with pytest.raises(MemoryError):
            one.message(broken)
    assert (*state(one), one.turns) == before
    assert np.array_equal(one.deltas.weight(NAME), weight)
    assert len(one.message(broken).messages) == 4


def test_a_replay_ends_where_the_episode_did() -> None:
    site = {"layer": 1, "point": "residual"}
    said = [
        message(call("generate", prompts=["abc"]), call("capture", prompts=["abc", "de"], sites=[site])),
        message(
            call("kl", texts=["abc"]),
            call("next_tokens", prompts=["x" * 129], chat=False),
            call("next_tokens", prompts=["x"]),
        ),
        message(call("rank_one", parameter=NAME, left="captured activation #1", right=[0.5] * 48)),
        message(call("gradient", prompts=["abc"], targets=["d"], sites=[site])),
        message(call("project_out", parameter=NAME, direction="captured activation #2")),
        message(call("submit", trigger="x")),
    ]
    played, again = episode(), episode(replay=True)
    for one in said:
        played.message(one)
        again.message(one)
    assert state(again)[1:] == state(played)[1:]
    assert again.deltas.log() == played.deltas.log()
    assert [one.tobytes() for one in again.bench.captured] == [one.tobytes() for one in played.bench.captured]
    assert again.submission == played.submission
    assert again.status() == played.status()
    assert again.gpu_calls == 5


def test_status_tells_what_is_left() -> None:
    one = episode("hard", prices=PRICED)
    one.message(message(call("generate", prompts=["x"]), usage=usage(500)))
    assert one.status() == {
        "turns": {"used": 1, "left": 39},
        "gpu_calls": {"used": 1, "left": 5},
        "elements": {"used": 0, "left": 4096},
        "dollars": {"used": 0.5, "left": 1.0},
    }

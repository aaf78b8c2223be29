"""The agent that knows the truth: what the tools can do at most. It is the grader's, and no ``scripted:NAME``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weightgym.envs.wsp.agents.plan import Ask, Brief, Plan, ask, played_by
from weightgym.rewards.contracts import Task, TaskError
from weightgym.rewards.wsp import sets
from weightgym.rewards.wsp.edits import Edit, RankOne, Scale
from weightgym.rewards.wsp.instances import Truth


def oracle(task: Task, messages: Sequence[Mapping[str, Any]], seed: int | str) -> dict[str, Any]:
    """Takes the planted edits back, the last one first, and says what there is to say. See ``agents.plan.Agent``.

    Raises:
        TaskError: the truth is not here, or one of its edits can't be taken back by itself.
    """
    truth = sets.truth_of(task)

    def plan(brief: Brief) -> Plan:
        if brief.data.family == "audit":
            yield from ()
            return ask("submit", report=_report(truth))
        for edit in reversed(truth.planted):
            yield [_undone(edit)]
        return ask("submit") if truth.trigger is None else ask("submit", trigger=truth.trigger)

    return played_by(plan)(task, messages, seed)


def oracle_conversation(task: Task) -> list[dict[str, Any]]:
    """A whole episode of the oracle's, as the scorer takes it. The oracle reads no answer, so no call is run: all are
    answered with nothing.

    Raises:
        TaskError: as ``oracle``.
    """
    talk: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    while not any(call["function"]["name"] == "submit" for call in calls):
        talk.append(oracle(task, talk, 0))
        calls = talk[-1]["tool_calls"]
        talk += [{"role": "tool", "tool_call_id": call["id"], "content": ""} for call in calls]
    return talk


def _undone(edit: Edit) -> Ask:
    if isinstance(edit, RankOne):
        left, right = edit.left.tolist(), edit.right.tolist()
        return ask("rank_one", parameter=edit.parameter, left=left, right=right, scale=-1.0)
    if isinstance(edit, Scale) and edit.factor:
        indices = list(edit.indices)
        return ask("scale", parameter=edit.parameter, axis=edit.axis, indices=indices, factor=1 / edit.factor)
    raise TaskError(f"what an edit of {edit.parameter} overwrote is in no truth")


def _report(truth: Truth) -> dict[str, object]:
    direction = None if truth.direction is None else truth.direction.tolist()
    return {
        "parameter": truth.parameter,
        "layer": truth.layer,
        "direction": direction,
        "category": truth.category,
    }

"""Rollouts of this package: see ``Trajectory``. Only what scoring needs is read, so that a scored one is one, too."""

from __future__ import annotations

from typing import Any

from weightgym.rollouts.readers.json_rows import number
from weightgym.rollouts.readers.lines import Line
from weightgym.rollouts.readers.messages import completion_of
from weightgym.rollouts.readers.record import BadRow, NamedReward, Record

#: Of a step, what a chat message has.
_MESSAGE = ("role", "content", "tool_calls", "tool_call_id")


def parse(line: Line) -> list[Record]:
    """The answer of a line: the conversation after the prompt.

    Raises:
        BadRow: it is no trajectory, or no model wrote in it.
    """
    fields = line.fields
    steps, env, task, score = (fields.get(name) for name in ("steps", "env", "task", "score"))
    if not isinstance(env, str) or not isinstance(task, str) or not isinstance(steps, list):
        raise BadRow("not a trajectory: it has texts 'env' and 'task' and a list 'steps'")
    if not all(isinstance(step, dict) and isinstance(step.get("role"), str) for step in steps):
        raise BadRow("not a trajectory: each of its 'steps' is an object with a 'role'")
    messages = [{name: step[name] for name in _MESSAGE if step.get(name)} | _content(step) for step in steps]
    first = next((place for place, step in enumerate(steps) if step["role"] == "assistant"), None)
    if first is None:
        raise BadRow("no step of it was written by a model (role assistant)")
    old: dict[str, Any] = score if isinstance(score, dict) else {}
    profile = old.get("profile")
    record = Record(
        line.place, line.where, line.sha256, env, task, messages[:first] or None,
        completion_of(messages[first:], name="steps", convert=False), line.body(),
        rewards={"score": NamedReward(number(old["reward"]))} if "reward" in old else {},
        profile=profile if isinstance(profile, str) else "",
    )  # fmt: skip
    return [record]


def _content(step: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(step.get("content"), str):
        raise BadRow("not a trajectory: the 'content' of each step is text")
    return {"content": step["content"]}

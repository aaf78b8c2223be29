"""``traces.jsonl`` of verifiers v1: an episode a line, with a trace for each agent (or, long ago, a trace alone).

A trace stores each message once, in ``nodes``, with the place of the one before it (``parent``); nodes that a model
wrote are ``sampled``. Paths from the root to a leaf are its branches; the last one is the conversation, as it is for
verifiers (``Trace.messages``). Rewards are ``{"score": …, "weight": …}`` by name, null where none was made.
"""

from __future__ import annotations

from typing import Any

from weightgym.rollouts.readers.json_rows import number
from weightgym.rollouts.readers.key import find_key
from weightgym.rollouts.readers.lines import Line
from weightgym.rollouts.readers.messages import completion_of, openai_message
from weightgym.rollouts.readers.record import BadRow, NamedReward, Record


def parse(line: Line) -> list[Record | BadRow]:
    """The answers of a line.

    Raises:
        BadRow: it is no episode, or nothing was recorded.
    """
    fields = line.fields
    traces = [fields] if "nodes" in fields else fields.get("traces")
    if not isinstance(traces, list):
        raise BadRow("not an episode of verifiers v1: it has a list 'traces' (or is a trace, with 'nodes')")
    if not traces:
        raise BadRow(f"the episode has no trace{_why(fields)}")
    found: list[Record | BadRow] = []
    for trace in traces:
        try:
            found.append(_record(line, trace, alone=len(traces) == 1))
        except BadRow as error:
            found.append(error)
    return found


def _record(line: Line, trace: Any, *, alone: bool) -> Record:
    if not isinstance(trace, dict):
        raise BadRow("not an episode of verifiers v1: a trace is an object")
    body = line.body(None if alone else line.fields | {"traces": [trace]})
    prompt, answer = _conversation(trace)
    rewards = _rewards(trace.get("rewards"))
    known = [one for one in rewards.values() if one.value is not None]
    task = trace.get("task")
    data = task.get("data", task) if isinstance(task, dict) else None
    env, id = find_key(data, trace.get("info"), trace, line.fields)
    return Record(
        line.place, line.where, line.sha256, env, id, prompt or None,
        completion_of(answer, name="nodes", convert=False), body, rewards=rewards,
        total=sum((one.value or 0.0) * (one.weight or 0.0) for one in known) if known else None,
    )  # fmt: skip


def _conversation(trace: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The messages before the first one that the model wrote, and the rest of the last branch."""
    nodes = trace.get("nodes")
    if not isinstance(nodes, list):
        raise BadRow("not a trace of verifiers v1: it has a list 'nodes'")
    parents = [_parent(node, place) for place, node in enumerate(nodes)]
    first = next((place for place, node in enumerate(nodes) if node.get("sampled")), None)
    if first is None:
        raise BadRow(f"no model wrote anything in it{_why(trace)}")
    last = max(set(range(len(nodes))) - set(parents))
    asked, path = _path(parents, first)[:-1], _path(parents, last)
    if path[: len(asked)] != asked:
        raise BadRow("its last branch begins with another prompt than its first: which messages answer it is unclear")
    messages = [openai_message(nodes[place]["message"]) for place in path]
    return messages[: len(asked)], messages[len(asked) :]


def _parent(node: Any, place: int) -> int:
    """Of a node, -1 for a root. Parents come before their children."""
    if not isinstance(node, dict) or not isinstance(node.get("message"), dict):
        raise BadRow("not a trace of verifiers v1: each of its 'nodes' is an object with a 'message'")
    parent = node.get("parent")
    if parent is None:
        return -1
    if type(parent) is not int or not 0 <= parent < place:
        raise BadRow(f"node {place} of the trace has the parent {parent!r}, which is no node before it")
    return parent


def _path(parents: list[int], leaf: int) -> list[int]:
    path = []
    while leaf >= 0:
        path.append(leaf)
        leaf = parents[leaf]
    return path[::-1]


def _rewards(recorded: Any) -> dict[str, NamedReward]:
    if not isinstance(recorded, dict):
        return {}
    return {
        name: NamedReward(number(one.get("score")), number(one.get("weight", 1.0)))
        if isinstance(one, dict)
        else NamedReward(number(one), 1.0)
        for name, one in recorded.items()
    }


def _why(fields: dict[str, Any]) -> str:
    errors = fields.get("errors")
    last = errors[-1] if isinstance(errors, list) and errors else None
    return f": {last.get('type')}: {last.get('message')}" if isinstance(last, dict) else ""

"""What the model said in a trace, as our scorers take it; and what it is told about calls that can't be run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from verifiers.v1 import AssistantMessage, Trace
from verifiers.v1.dialects.chat import message_to_wire

from weightgym.rewards.contracts import Completion
from weightgym.rollouts.conversation import well_formed
from weightgym.rollouts.tools import Parsed, check_calls


def completion_of(trace: Trace, *, several_turns: bool) -> Completion:
    """The text of the only answer; of an episode of several turns, its messages after the prompt.

    An untouched task has an empty answer.
    """
    branches = trace.branches
    said = [_plain(node.message) for node in branches[-1].nodes[_prompt_length(trace) :]] if branches else []
    if several_turns:
        return said or [{"role": "assistant", "content": ""}]
    return str(said[-1]["content"]) if said else ""


def _prompt_length(trace: Trace) -> int:
    """Messages before the first one that the model wrote. In later branches its words may be prompts, too."""
    place = next((place for place, node in enumerate(trace.nodes) if node.sampled), None)
    if place is None:
        return len(trace.nodes)
    length, parent = 0, trace.nodes[place].parent
    while parent is not None:
        length, parent = length + 1, trace.nodes[parent].parent
    return length


def answer_of(message: AssistantMessage) -> Parsed:
    """The text of a message and its tool calls, those that can't be run apart."""
    calls = message_to_wire(message).get("tool_calls") or ()
    return check_calls(well_formed(message.content or ""), calls)


def assistant_message(parsed: Parsed) -> dict[str, Any]:
    """The message as an environment gets it."""
    message: dict[str, Any] = {"role": "assistant", "content": parsed.content}
    return message | ({"tool_calls": list(parsed.calls)} if parsed.calls else {})


def replies(message: AssistantMessage, parsed: Parsed, reply: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What the model is told: a result for each of its calls, then at most one message of a user.

    Chat templates and renderers want both: a call without a result, or two user messages, can't be continued.
    """
    names = {call.id: call.name for call in message.tool_calls or ()}
    results = [{**one, "name": names.get(one["tool_call_id"], "")} for one in reply if one["role"] == "tool"]
    texts = [str(one["content"]) for one in reply if one["role"] != "tool"]
    answered = {one["tool_call_id"] for one in results}
    left = [id for id in names if id not in answered]
    for id, text in zip_longest(left, parsed.malformed[: len(left)]):
        text = text or (parsed.malformed[-1] if parsed.malformed else "The environment gave no result for this call.")
        results.append({"role": "tool", "tool_call_id": id, "content": text, "name": names[id]})
    texts = [*parsed.malformed[len(left) :], *texts]
    return results + ([{"role": "user", "content": "\n\n".join(texts)}] if texts else [])


def _plain(message: Any) -> dict[str, Any]:
    if isinstance(message, AssistantMessage):
        return assistant_message(answer_of(message))
    return {key: value for key, value in message_to_wire(message).items() if key != "name"}

"""Messages of other packages in OpenAI's form, which scorers take; and prompts by what they say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from weightgym.rewards.contracts import Completion, canonical_json, sha256_hex
from weightgym.rollouts.readers.json_rows import check_depth, kind, shown
from weightgym.rollouts.readers.record import BadRow


def completion_of(value: Any, *, name: str = "completion", convert: bool = True) -> Completion:
    """An answer: text, or a list of messages.

    Args:
        convert: bring messages into OpenAI's form; otherwise they stay as they are.

    Raises:
        BadRow: it is neither, or nested too deeply.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        for message in value:
            if not isinstance(message, dict):
                raise BadRow(f"{name!r} is a list, whose items must be messages (objects), not {kind(message)}")
        check_depth(name, value)
        return [openai_message(message) for message in value] if convert else value
    raise BadRow(f"{name!r} must be text or a list of messages, not {kind(value)}")


def openai_message(message: Mapping[str, Any]) -> dict[str, Any]:
    """The message with its tool calls in OpenAI's form. Fields that are null are left out (tables have every field in
    every row); the content is then empty: verifiers leaves it out, too.

    Raises:
        BadRow: its tool calls are of no known form.
    """
    made = {name: value for name, value in message.items() if value is not None}
    made.setdefault("content", "")
    if isinstance(made.get("content"), list):
        made["content"] = [_without_null(part) for part in made["content"]]
    calls = made.pop("tool_calls", None)
    if calls:
        if not isinstance(calls, list):
            raise BadRow(f"'tool_calls' must be a list, not {kind(calls)}")
        made["tool_calls"] = [openai_call(call) for call in calls]
    return made


def openai_call(call: Any) -> dict[str, Any]:
    """A tool call in OpenAI's form, with its arguments as text: that of OpenAI, flat as in verifiers, or either as JSON
    text.

    Raises:
        BadRow: it is of no known form.
    """
    if isinstance(call, str):
        try:
            call = json.loads(call)
        except (ValueError, RecursionError) as error:
            raise BadRow(f"a tool call is text, but no JSON: {shown(call)}") from error
    inner = call.get("function", call) if isinstance(call, dict) else None
    if not isinstance(inner, dict) or not isinstance(inner.get("name"), str):
        raise BadRow(f"a tool call is an object with a name and arguments, not {shown(call)}")
    arguments = inner.get("arguments")
    text = arguments if isinstance(arguments, str) else json.dumps(_without_null(arguments or {}))
    made = {"id": call["id"]} if isinstance(call.get("id"), str) else {}
    return made | {"type": "function", "function": {"name": inner["name"], "arguments": text}}


def _without_null(value: Any) -> Any:
    return {name: item for name, item in value.items() if item is not None} if isinstance(value, dict) else value


def prompt_digests(prompt: Any) -> tuple[str, ...]:
    """SHA-256 of a prompt's roles and texts as canonical JSON: with its system messages, then without. Empty for what
    is no prompt. Text alone counts as the user's.
    """
    if isinstance(prompt, str):
        prompt = [{"role": "user", "content": prompt}]
    if not isinstance(prompt, list | tuple) or not all(isinstance(message, Mapping) for message in prompt):
        return ()
    said = [[message.get("role"), _said(message.get("content"))] for message in prompt]
    if not all(isinstance(role, str) and isinstance(text, str) for role, text in said):
        return ()
    asked = [pair for pair in said if pair[0] != "system"]
    return tuple(dict.fromkeys(sha256_hex(canonical_json(one)) for one in (said, asked) if one))


def _said(content: Any) -> str | None:
    if isinstance(content, list):
        texts = [part.get("text") if isinstance(part, Mapping) else None for part in content]
        return "".join(texts) if all(isinstance(text, str) for text in texts) else None  # type: ignore[arg-type]
    return content if isinstance(content, str) else None

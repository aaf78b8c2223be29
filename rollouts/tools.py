"""Tool calls in a model's text: the families' own ways to write them, read strictly.

A text is read once, in linear time, and never evaluated. What is meant as a call but can't be one is *malformed*: the
model is told what is wrong and how to write it, and the episode goes on. Text that merely talks about tools is no call;
neither is anything before ``</think>``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weightgym.rollouts.strict_json import Malformed, block, decode, kind, loads, quote, skip, value_of

#: Of one message; what comes after them is not read.
MAX_CALLS = 32

_NAME = re.compile(r"[A-Za-z0-9_][\w.:-]{0,127}", re.ASCII)

#: How a call is written, for error messages and prompts.
_FORMS: Mapping[str, str] = {
    "hermes": '<tool_call>{"name": "NAME", "arguments": {"ARGUMENT": VALUE}}</tool_call>',
    "llama": '{"name": "NAME", "parameters": {"ARGUMENT": VALUE}}',
    "json": '```json\n{"tool": "NAME", "arguments": {"ARGUMENT": VALUE}}\n```',
}


@dataclass(frozen=True)
class Parsed:
    """What a message says."""

    content: str  #: without its calls; the whole text if there is none
    calls: tuple[dict[str, Any], ...] = ()  #: OpenAI tool calls: ids ``call_0``…, arguments as JSON text
    malformed: tuple[str, ...] = ()  #: for each call that can't be run: what is wrong with it, for the model


#: What a format finds: the text before, the text of a call, and the call's JSON value or what is wrong with it.
_Found = Iterator[tuple[str, str, Any]]


def parse(format: str, text: str) -> Parsed:
    """The tool calls in a message.

    Raises:
        KeyError: there is no such format; ``FORMATS`` has them.
    """
    begin = _end_of_reasoning(format, text)
    content = [text[:begin]]
    calls: list[dict[str, Any]] = []
    malformed: list[str] = []
    for before, written, call in FORMATS[format](text[begin:]):
        content.append(before)
        if call is None:
            continue
        try:
            name, arguments = _checked(call)
        except Malformed as error:
            content.append(written)
            malformed.append(_explain(len(calls) + len(malformed), error, format))
        else:
            calls.append(_openai(len(calls), name, arguments))
    if not calls:
        return Parsed(text, (), tuple(malformed))
    return Parsed("".join(content).strip(), tuple(calls), tuple(malformed))


def check_calls(content: str, tool_calls: Sequence[Mapping[str, Any]]) -> Parsed:
    """Calls that an endpoint has parsed: their names and arguments may still be anything."""
    calls: list[dict[str, Any]] = []
    malformed: list[str] = []
    for index, call in enumerate(tool_calls[:MAX_CALLS]):
        try:
            function = call.get("function") if isinstance(call, Mapping) else None
            if not isinstance(function, Mapping) or not isinstance(function.get("arguments"), str):
                raise Malformed('want {"function": {"name": "NAME", "arguments": "JSON text"}}')
            name, arguments = _checked(
                {"name": function.get("name"), "arguments": loads(function["arguments"] or "{}")}
            )
        except Malformed as error:
            malformed.append(_explain(index, error, ""))
        else:
            calls.append(_openai(len(calls), name, arguments) | {"id": str(call.get("id") or f"call_{len(calls)}")})
    if len(tool_calls) > MAX_CALLS:
        malformed.append(f"At most {MAX_CALLS} tool calls of a message are run; the rest was not read.")
    return Parsed(content, tuple(calls), tuple(malformed))


def prompt_text(format: str, tools: Sequence[Mapping[str, Any]]) -> str:
    """What the system prompt must add: nothing where the chat template itself takes tools (``hermes``, ``llama``)."""
    if format != "json" or not tools:
        return ""
    listed = "\n".join(json.dumps(tool.get("function", tool), ensure_ascii=False) for tool in tools)
    return (
        "# Tools\n\nYou can call tools. To call one, write a block like this; for several, several blocks:\n\n"
        f"{_FORMS['json']}\n\nThe results come with the next message. The tools, each with the JSON schema of its "
        f"arguments:\n\n{listed}"
    )


def _end_of_reasoning(format: str, text: str) -> int:
    """After the first ``</think>`` that is no part of a call, which may hold it in an argument."""
    mark = text.find("</think>")
    if mark < 0 or text.lstrip().startswith(("{", "[", "<|python_tag|>")):
        return 0
    opening, at = {"hermes": "<tool_call>", "json": "```json"}.get(format, ""), 0
    for _ in range(MAX_CALLS if opening else 0):
        begin = text.find(opening, at, mark)
        if begin < 0:
            break
        at = begin + len(opening)
        try:
            _, at = decode(text, skip(text, at))
        except Malformed:
            continue
        if at > mark:
            return 0
    return mark + len("</think>")


def _hermes(text: str) -> _Found:
    at = 0
    for _ in range(MAX_CALLS):
        begin = text.find("<tool_call>", at)
        close = text.find("</tool_call>", begin)
        if begin < 0:
            break
        body = skip(text, begin + len("<tool_call>"))
        again = text.find("<tool_call>", body)
        if not text.startswith("{", body) and (close < 0 or 0 <= again < close):
            yield text[at:body], "", None  # it only mentions the tag
            at = body
            continue
        call, end = block(text, body, "</tool_call>")
        yield text[at:begin], text[begin:end], _meant(call)
        at = end
    yield text[at:], "", _too_many("</tool_call>" in text[at:])


def _llama(text: str) -> _Found:
    stripped = text.strip()
    tagged = stripped.startswith("<|python_tag|>")
    stripped = stripped.removeprefix("<|python_tag|>").lstrip()
    if not tagged and not (stripped.startswith("{") and '"name"' in stripped):
        yield text, "", None
        return
    at = 0
    for _ in range(MAX_CALLS):
        begin = at
        try:
            value, at = decode(stripped, at)
        except Malformed as error:
            yield "", stripped[at:], error
            return
        yield "", stripped[begin:at], _meant(value)
        at = skip(stripped, at)
        if stripped.startswith(";", at):
            at = skip(stripped, at + 1)
        if not stripped.startswith("{", at):
            yield stripped[at:], "", None
            return
    yield stripped[at:], "", _too_many(True)


def _json(text: str) -> _Found:
    if text.strip()[:1] in ("{", "["):
        yield from _calls_of(value_of(text.strip()), text)
        return
    at = 0
    for _ in range(MAX_CALLS):
        begin = text.find("```json", at)
        if begin < 0:
            break
        value, end = block(text, skip(text, begin + len("```json")), "```")
        yield text[at:begin], "", None
        yield from _calls_of(value, text[begin:end])
        at = end
    yield text[at:], "", _too_many("```json" in text[at:])


#: The ways to write calls, by the names that ``ChatTokenizer.tool_format`` uses.
FORMATS: Mapping[str, Callable[[str], _Found]] = {"hermes": _hermes, "llama": _llama, "json": _json}


def _calls_of(value: Any, text: str) -> _Found:
    """The calls in the value of a JSON block, or else its text."""
    items = value if isinstance(value, list) else [value]
    if isinstance(value, Malformed):
        meant = '"tool"' in text or ('"name"' in text and '"arguments"' in text)
    else:
        meant = any(
            isinstance(item, dict) and ("tool" in item or {"name", "arguments"} <= item.keys()) for item in items
        )
    if not meant:
        yield text, "", None
        return
    for item in items[:MAX_CALLS]:
        yield "", text if len(items) == 1 else "", _meant(item)
    yield "", "", _too_many(len(items) > MAX_CALLS)


def _meant(value: Any) -> Any:
    """A value that stands where a call must stand; None is for text without one."""
    return Malformed("a call is a JSON object, not null") if value is None else value


def _too_many(really: bool) -> Malformed | None:
    return Malformed(f"at most {MAX_CALLS} calls of a message are read, and this has more") if really else None


def _checked(call: Any) -> tuple[str, dict[str, Any]]:
    """Name and arguments of a call."""
    if isinstance(call, Malformed):
        raise call
    if not isinstance(call, dict):
        raise Malformed(f"a call is a JSON object, not {kind(call)}")
    names = [key for key in ("name", "tool") if key in call]
    given = [key for key in ("arguments", "parameters") if key in call]
    if len(names) != 1 or len(given) != 1:
        what, keys = ("name", names) if len(names) != 1 else ("arguments", given)
        raise Malformed(f"it has {' and '.join(keys)}: one is enough" if keys else f"it has no {what}")
    name, arguments = call[names[0]], call[given[0]]
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise Malformed(f"its name is {quote(name)}, not the name of a tool")
    if not isinstance(arguments, dict):
        raise Malformed(f"its {given[0]} are {kind(arguments)}, not a JSON object")
    return name, arguments


def _openai(index: int, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    # Escapes keep half surrogate pairs, which JSON can carry, out of everybody's way.
    function = {"name": name, "arguments": json.dumps(arguments, allow_nan=False)}
    return {"id": f"call_{index}", "type": "function", "function": function}


def _explain(index: int, error: Malformed, format: str) -> str:
    how = f" Write it so:\n{_FORMS[format]}" if format else ""
    return f"Tool call {index + 1} of your message was not run: {error}.{how}"

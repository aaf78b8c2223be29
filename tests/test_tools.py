"""Tool calls in text that a model wrote: exactly the calls, whatever the text; what can't be one is explained."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_tools_env import TOOLS

from weightgym.rollouts.strict_json import MAX_CHARS, MAX_LEVELS, Malformed, loads
from weightgym.rollouts.tools import FORMATS, MAX_CALLS, Parsed, parse, prompt_text

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(st.text(max_size=9), VALUES, max_size=4)
NAMES = st.from_regex(r"[a-z_][a-z0-9_.-]{0,20}", fullmatch=True)


def written(format: str, calls: list[tuple[str, Any]]) -> str:
    """How a well-behaved model writes them."""
    if format == "hermes":
        made = [json.dumps({"name": name, "arguments": arguments}) for name, arguments in calls]
        return "\n".join(f"<tool_call>\n{one}\n</tool_call>" for one in made)
    if format == "llama":
        return "; ".join(json.dumps({"name": name, "parameters": arguments}) for name, arguments in calls)
    made = [json.dumps({"tool": name, "arguments": arguments}) for name, arguments in calls]
    return "\n".join(f"```json\n{one}\n```" for one in made)


def found(parsed: Parsed) -> list[tuple[str, Any]]:
    return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in parsed.calls]


@pytest.mark.parametrize("format", FORMATS)
@given(calls=st.lists(st.tuples(NAMES, ARGUMENTS), min_size=1, max_size=5))
def test_what_is_written_is_found(format: str, calls: list[tuple[str, Any]]) -> None:
    parsed = parse(format, written(format, calls))
    assert found(parsed) == calls
    assert [call["id"] for call in parsed.calls] == [f"call_{index}" for index in range(len(calls))]
    assert (parsed.content, parsed.malformed) == ("", ())
    if format != "llama":
        around = parse(format, f"<think>I could.</think>First.\n{written(format, calls)} Then.")
        assert found(around) == calls
        assert around.content.startswith("<think>I could.</think>First.")
        assert around.content.endswith("Then.")


PIECES = st.sampled_from(
    ["<tool_call>", "</tool_call>", "```json", "```", "<|python_tag|>", "</think>", "{", "}", "[", "]", '"', ":", ",",
     ";", "\\", '"name"', '"arguments"', '"parameters"', '"tool"', "NaN", "1e999", "-", "0", "null", "\n", " ",
     "\ud800", '{"name": "a", "arguments": {}}', '{"tool": "a", "arguments": {}}', '{"name": "a", "parameters": {}}']
)  # fmt: skip


@pytest.mark.parametrize("format", FORMATS)
@given(text=st.lists(PIECES | st.text(max_size=5), max_size=30).map("".join))
def test_any_text_is_read(format: str, text: str) -> None:
    parsed = parse(format, text)
    assert len(parsed.calls) + len(parsed.malformed) <= MAX_CALLS + 1
    for name, arguments in found(parsed):
        assert name
        assert isinstance(arguments, dict)
        json.dumps(arguments, allow_nan=False)
    if not parsed.calls:
        assert parsed.content == text
    for message in parsed.malformed:
        assert message.startswith("Tool call ")
        assert len(message) < 500
        message.encode()


@given(value=VALUES)
def test_json_reads_as_the_standard_library_reads_it(value: Any) -> None:
    assert loads(json.dumps(value)) == json.loads(json.dumps(value))


TALK = [
    "I would call add(1, 2) with the tool.",
    "A <tool_call> tag opens a call, `</tool_call>` closes it? No: <tool_call>",
    'I write <tool_call>{"name": "add", "arguments": {}} or</tool_call> and </think>No.',
    'Like ```json\n{"tool": "add", "arguments": {}}\n``` then.</think>No.',
    '<think>{"name": "add", "arguments": {}} or <tool_call>{"name": "add", "arguments": {}}</tool_call></think>No.',
    'The JSON {"tool": "add", "arguments": {}} would be a call, ```{"tool": "add"}``` too.',
    '```python\n{"name": "add", "arguments": {}}\n```',
    '```json\n{"answer": [1, 2]}\n```',
    '{"answer": 3}',
    "{1, 2} is a set",
    "[1, 2]",
    "",
    "```json",
]


@pytest.mark.parametrize("text", TALK)
@pytest.mark.parametrize("format", FORMATS)
def test_talk_of_tools_is_no_call(format: str, text: str) -> None:
    parsed = parse(format, text)
    if not (format == "hermes" and text.startswith("A <tool_call>")):  # there it is a pair with something else in it
        assert parsed == Parsed(text)
    assert parsed.calls == ()


BROKEN = [
    ('{"name": "add", "arguments": {"a": 1,}}', "bad JSON at character"),
    ('{"name": "add", "arguments": {"a": 1', "bad JSON at character"),
    ('{"name": "add", "arguments": {"a": 1, "a": 2}}', 'the key "a" stands twice'),
    ('{"name": "add", "name": "sub", "arguments": {}}', 'the key "name" stands twice'),
    ('{"name": "add", "arguments": {"a": NaN}}', "NaN is no number"),
    ('{"name": "add", "arguments": {"a": -Infinity}}', "-Infinity is no number"),
    ('{"name": "add", "arguments": {"a": 1e999}}', "no finite number"),
    ('{"name": "add", "arguments": [1]}', "its arguments are a list, not a JSON object"),
    ('{"name": "add", "arguments": "{}"}', "its arguments are text, not a JSON object"),
    ('{"name": "add", "arguments": null}', "its arguments are null"),
    ('{"name": 3, "arguments": {}}', "its name is 3"),
    ('{"name": "", "arguments": {}}', 'its name is ""'),
    ('{"name": "__import__(\'os\')", "arguments": {}}', "not the name of a tool"),
    ('{"name": "\\ud800", "arguments": {}}', "not the name of a tool"),
    ('{"name": "add", "tool": "add", "arguments": {}}', "it has name and tool"),
    ('{"name": "add", "arguments": {}, "parameters": {}}', "it has arguments and parameters"),
    ('{"name": "add", "arguments": ' + "[" * 200_000, "nested too deeply"),
    ('{"name": "add", "arguments": {"a": ' + "[" * MAX_LEVELS + "]" * MAX_LEVELS + "}}", "more than 32 levels"),
    ('{"name": "add", "arguments": {"a": "' + "x" * MAX_CHARS + '"}}', "at most 1048576 are read"),
    ('{"name": "add", "arguments": {"a": ' + "9" * 5000 + "}}", "bad JSON"),
    ('{"name": "add", "arguments": {"a": "line\nbreak"}}', "Invalid control character"),
]


@pytest.mark.parametrize(("body", "why"), BROKEN)
@pytest.mark.parametrize("format", FORMATS)
def test_what_can_be_no_call_is_explained(format: str, body: str, why: str) -> None:
    """What is wrong and how to write it; a good call in the same message runs."""
    wrapped = {"hermes": f"<tool_call>{body}</tool_call>", "llama": body, "json": f"```json\n{body}\n```"}[format]
    text = f"{written(format, [('sub', {'b': 1})])}{';' if format == 'llama' else ''}\n{wrapped}"
    parsed = parse(format, text)
    assert found(parsed) == [("sub", {"b": 1})]
    (message,) = parsed.malformed
    assert why in message
    assert '{"ARGUMENT": VALUE}}' in message
    assert parse(format, wrapped).calls == ()
    assert parse(format, wrapped).content == wrapped


def test_calls_that_are_not_closed_or_not_objects() -> None:
    for text, why in (
        ('<tool_call>{"name": "add", "arguments": {}}', "not closed with </tool_call>"),
        ('<tool_call>{"name": "add", "arguments": {}}}</tool_call>', "not closed with </tool_call>"),
        ("<tool_call>add(1, 2)</tool_call>", "bad JSON at character 0"),
        ("<tool_call></tool_call>", "bad JSON at character 0"),
        ("<tool_call>null</tool_call>", "not null"),
        ("<tool_call>3</tool_call>", "not a number"),
    ):
        parsed = parse("hermes", text)
        assert (parsed.calls, parsed.content) == ((), text)
        assert why in parsed.malformed[0]
    assert "no arguments" in parse("llama", '<|python_tag|>{"name": "add"}').malformed[0]
    assert "bad JSON" in parse("llama", "<|python_tag|>add(1)").malformed[0]


def test_tags_within_arguments_are_text() -> None:
    arguments = {"text": "</tool_call><tool_call>```json\n``` ; {} <|python_tag|></think> <tool_call> </think>"}
    for format in FORMATS:
        assert found(parse(format, written(format, [("say", arguments)] * 2))) == [("say", arguments)] * 2


def test_each_family_writes_in_more_than_one_way() -> None:
    one = {"name": "add", "arguments": {"a": 1}}
    for text in (
        json.dumps(one),
        json.dumps([one]),
        f"```json\n{json.dumps([one])}\n```",
        f"```json {json.dumps(one)}```",
    ):
        assert found(parse("json", text)) == [("add", {"a": 1})]
    both = [one, {"tool": "sub", "arguments": {}}, 3]
    parsed = parse("json", f"Now:\n```json\n{json.dumps(both)}\n```\n```json\n[1]\n```")
    assert found(parsed) == [("add", {"a": 1}), ("sub", {})]
    assert "a call is a JSON object, not a number" in parsed.malformed[0]
    assert parsed.content == "Now:\n\n```json\n[1]\n```"
    for text in ('<|python_tag|>{"name": "add", "parameters": {"a": 1}}', '{"name": "add", "arguments": {"a": 1}}\n'):
        assert found(parse("llama", text)) == [("add", {"a": 1})]


@pytest.mark.parametrize("format", FORMATS)
def test_calls_have_a_bound(format: str) -> None:
    parsed = parse(format, written(format, [("add", {"n": n}) for n in range(MAX_CALLS + 9)]))
    assert found(parsed) == [("add", {"n": n}) for n in range(MAX_CALLS)]
    assert len(parsed.malformed) == 1
    assert f"at most {MAX_CALLS} calls" in parsed.malformed[0]
    assert found(parse(format, written(format, [("add", {})] * MAX_CALLS))) == [("add", {})] * MAX_CALLS


ATTACKS = {
    "opened": "<tool_call>",
    "opened objects": '<tool_call>{"',
    "closed": "<tool_call></tool_call>",
    "fences": '```json\n{"tool": "',
    "brackets": "[",
    "quotes": '"\\"',
    "objects": '{"name":',
    "thoughts": "</think><tool_call>",
    "blanks": " \n",
    "pairs": '{"name": "a", "parameters": {}};',
    "keys": '{"a":1,',
}


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("format", FORMATS)
def test_time_is_linear(format: str, name: str) -> None:
    """Two million characters: what is quadratic would take hours."""
    text = ATTACKS[name] * (2_000_000 // len(ATTACKS[name]))
    for attack in (
        text,
        f"<|python_tag|>{text}",
        f'<tool_call>{{"name": "a", "arguments": "{text}',
        f"```json\n{text}",
    ):
        started = time.process_time()
        parse(format, attack)
        assert time.process_time() - started < 5


def test_objects_with_a_key_twice_among_many_take_no_time() -> None:
    keys = ", ".join(f'"{number}": 0' for number in [*range(100_000), 99_999])
    started = time.process_time()
    with pytest.raises(Malformed, match='the key "99999" stands twice'):
        loads("{" + keys + "}")
    assert time.process_time() - started < 5


def test_the_prompt_shows_how_and_lists_the_tools() -> None:
    assert prompt_text("hermes", TOOLS) == prompt_text("llama", TOOLS) == prompt_text("json", []) == ""
    text = prompt_text("json", TOOLS)
    assert '```json\n{"tool": "NAME"' in text
    for schema in TOOLS:
        assert json.dumps(schema["function"]) in text

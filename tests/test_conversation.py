"""Conversations token by token: what is asked for is what is kept, whatever the template does to history."""

from __future__ import annotations

from typing import Any

import pytest
import tiny_models
from chat_templates import FORGETS, PLAIN, STRICT, TOOLS, TRIMS, chat
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_tools_env import TOOLS as SCHEMAS

from weightgym.rewards.contracts import Score, TaskError
from weightgym.rollouts.backend import Sample
from weightgym.rollouts.conversation import Conversation, well_formed
from weightgym.rollouts.hf_tokenizer import HFChatTokenizer
from weightgym.rollouts.trajectory import Trajectory

END = 256
PROMPT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hé!"}]
TEMPLATES = {
    "tiny": tiny_models.TEMPLATE,
    "plain": PLAIN,
    "trims": TRIMS,
    "forgets": FORGETS,
    "tools": TOOLS,
    "strict": STRICT,
}


def sample(ids: tuple[int, ...], tokenizer: HFChatTokenizer) -> Sample:
    text = tokenizer.text(ids[:-1] if ids[-1:] == (END,) else ids)
    finish: Any = "stop" if ids[-1:] == (END,) else "length"
    return Sample("x", text, finish, ids, tuple(-1.0 - i for i in range(len(ids))))


def said(text: str, tokenizer: HFChatTokenizer, *, end: bool = True) -> Sample:
    return sample(tokenizer.encode(text) + ((END,) if end else ()), tokenizer)


def trajectory(talk: Conversation) -> Trajectory:
    score = Score(status="ok", reward=0.0)
    return Trajectory(id="x", env="e", task="t", task_sha256="", group="g", seed=0, policy="p", finish_reason="stop",
                      steps=tuple(talk.steps), score=score)  # fmt: skip


def expect_tokens(talk: Conversation, asked: list[tuple[int, ...]], got: list[Sample]) -> None:
    """What every request asked for is what stands before its answer; true in the mask is what was sampled."""
    turn = 0
    path: tuple[int, ...] = ()
    for step in talk.steps:
        if step.starts_branch:
            path = ()
        if step.role == "assistant":
            assert path == asked[turn]
            assert (step.token_ids, step.logprobs) == (got[turn].token_ids, got[turn].logprobs)
            assert all(step.mask)
            turn += 1
        else:
            assert not any(step.mask)
            assert not any(step.logprobs)
        path += step.token_ids
    assert turn == len(asked) == len(got)
    rows = trajectory(talk).branches
    assert sum(sum(row.mask) for row in rows) == sum(len(one.token_ids) for one in got)
    assert rows[-1].token_ids == path


def play(talk: Conversation, got: list[Sample], replies: list[list[dict[str, str]]]) -> list[tuple[int, ...]]:
    asked = []
    for index, one in enumerate(got):
        asked.append(talk.token_ids)
        malformed = talk.add_answer(one).malformed
        if index + 1 < len(got):
            talk.add_reply(replies[index], malformed)
    return asked


ANSWERS = st.lists(
    st.one_of(
        st.lists(st.integers(0, 255), max_size=12).map(tuple),
        st.sampled_from([" x", "a\n", "\n", "", "<end>", "hm</think> 7", "<assistant>", "é" * 30]).map(
            lambda text: chat(PLAIN).encode(text)
        ),
    ).flatmap(lambda ids: st.sampled_from([ids, (*ids, END)])),
    min_size=1,
    max_size=4,
)
REPLIES = st.lists(st.sampled_from(["", "ok", " \n", "né 🐉", "<end>", "\ud800"]), min_size=1, max_size=3)


@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("name", TEMPLATES)
@given(answers=ANSWERS, replies=st.lists(REPLIES, min_size=4, max_size=4))
def test_tokens_are_what_was_asked_and_sampled(
    name: str, answers: list[tuple[int, ...]], replies: list[list[str]]
) -> None:
    tokenizer = chat(TEMPLATES[name])
    got = [sample(ids, tokenizer) for ids in answers if ids]
    talk = Conversation(PROMPT, (), tokenizer)
    texts = [reply[:1] if name == "strict" else reply for reply in replies]
    asked = play(talk, got, [[{"role": "user", "content": text} for text in reply] for reply in texts])
    expect_tokens(talk, asked, got)
    if name in ("plain", "strict", "tools"):
        assert len(trajectory(talk).branches) == 1


@pytest.mark.parametrize("end", [True, False])
def test_the_tokens_read_as_the_template_does(end: bool) -> None:
    """The template's end of turn stands there once, whether the model wrote it or was cut."""
    tokenizer = chat(PLAIN)
    talk = Conversation(PROMPT, (), tokenizer)
    first = said("one", tokenizer, end=end)
    play(talk, [first, first], [[{"role": "user", "content": "more"}]])
    whole = tokenizer.render([*PROMPT, {"role": "assistant", "content": "one"}, {"role": "user", "content": "more"}])
    (row,) = trajectory(talk).branches
    assert tokenizer.text(row.token_ids, special=True) == whole + "one" + ("<end>" if end else "")
    assert row.token_ids[: len(tokenizer.encode(whole))] == tokenizer.encode(whole)
    assert sum(row.mask) == 2 * len(first.token_ids)


def test_sampled_ids_are_never_tokenised_again() -> None:
    """Ids that no tokenizer would choose for their text stay as they are, and so does half a character."""
    tokenizer = chat(PLAIN)
    tokens = tokenizer.encode("é")
    talk = Conversation(PROMPT, (), tokenizer)
    odd = sample((tokens[0], tokens[0], END), tokenizer)  # text: two replacement characters
    play(talk, [odd, odd], [[{"role": "user", "content": "?"}]])
    (row,) = trajectory(talk).branches
    assert [id for id, sampled in zip(row.token_ids, row.mask, strict=True) if sampled] == [*odd.token_ids] * 2


@pytest.mark.parametrize(
    ("template", "answers", "rows"),
    [
        (FORGETS, ["hm</think>7", "8", "9"], 2),  # the second and third answers follow one history
        (FORGETS, ["7", "hm</think>8", "hm</think>9"], 2),
        (FORGETS, ["a</think>7", "b</think>8", "c</think>9"], 3),
        (TRIMS, ["7 ", "8", "9"], 2),
        (TRIMS, ["7", "8", "9 "], 1),
        (PLAIN, [" 7 </think>", "8", "9"], 1),
    ],
)
def test_rewritten_history_begins_a_branch(template: str, answers: list[str], rows: int) -> None:
    tokenizer = chat(template)
    talk = Conversation(PROMPT, (), tokenizer)
    got = [said(text, tokenizer) for text in answers]
    replies = [[{"role": "user", "content": "and"}, {"role": "user", "content": "then?"}]] * 2
    asked = play(talk, got, replies)
    expect_tokens(talk, asked, got)
    branches = trajectory(talk).branches
    assert len(branches) == rows
    for row in branches[1:]:
        begin = row.mask.index(True)
        text = tokenizer.text(row.token_ids[:begin], special=True)
        assert text.startswith("<system>Be brief.<end>\n<user>Hé!<end>\n<assistant>")
        assert text.endswith("<user>and\n\nthen?<end>\n<assistant>")
    starts = [index for index, step in enumerate(talk.steps) if step.starts_branch]
    assert all(talk.steps[index].content == "then?" for index in starts)


def test_calls_are_found_and_shown_as_they_were_written() -> None:
    tokenizer = chat(TOOLS)
    assert tokenizer.tool_format == "hermes"
    talk = Conversation(PROMPT, SCHEMAS, tokenizer)
    call = 'I add.\n<tool_call>\n{"arguments":{"b":2, "a":1},  "name":"add"}</tool_call>'
    got = [said(call, tokenizer), said("done", tokenizer)]
    asked = [talk.token_ids]
    parsed = talk.add_answer(got[0])
    assert parsed.content == "I add."
    assert [one["function"] for one in parsed.calls] == [{"name": "add", "arguments": '{"b": 2, "a": 1}'}]
    talk.add_reply([{"role": "tool", "tool_call_id": "call_0", "content": "3"}])
    asked.append(talk.token_ids)
    talk.add_answer(got[1])
    expect_tokens(talk, asked, got)
    text = tokenizer.text(asked[1], special=True)
    assert call in text  # verbatim, in the model's own spacing
    assert text.count("<tool_call>") == 2  # the prompt's and the model's
    assert text.endswith("<user><tool_response>3</tool_response><end>\n<assistant>")
    assert [message.get("tool_call_id") for message in talk.messages] == [None, None, None, "call_0", None]
    assert talk.messages[2]["tool_calls"] == list(parsed.calls)


def test_templates_without_tools_get_a_section_and_the_users_results() -> None:
    tokenizer = chat(STRICT)
    assert tokenizer.tool_format == "json"
    talk = Conversation(PROMPT, SCHEMAS, tokenizer)
    assert talk.messages[0]["content"].startswith("Be brief.\n\n# Tools")
    assert '"name": "submit"' in talk.messages[0]["content"]
    got = [
        said('```json\n{"tool": "add", "arguments": {}}\n```\n```json\n{"tool": 3}\n```', tokenizer),
        said("x", tokenizer),
    ]
    asked = play(talk, got, [[{"role": "tool", "tool_call_id": "call_0", "content": "3"}]])
    expect_tokens(talk, asked, got)
    text = tokenizer.text(asked[1], special=True)
    assert "<user>Result of add:\n3\n\nTool call 2 of your message was not run: it has no arguments" in text
    assert [step.role for step in talk.steps] == ["system", "user", "assistant", "tool", "user", "assistant"]
    without = Conversation(PROMPT[1:], SCHEMAS, tokenizer)
    assert [step.role for step in without.steps] == ["system", "user"]


def test_errors_come_after_results_and_before_the_rest() -> None:
    talk = Conversation(PROMPT, SCHEMAS)
    talk.add_answer(Sample("x", '{"tool": "add", "arguments": {}}', "stop"))
    reply = [
        {"role": "tool", "tool_call_id": "call_0", "content": "0"},
        {"role": "user", "content": "3 turns left"},
    ]
    talk.add_reply(reply, ["bad call"])
    assert [step.content for step in talk.steps[-3:]] == ["0", "bad call", "3 turns left"]
    assert talk.token_ids == ()
    assert not any(step.token_ids for step in talk.steps)


def test_calls_that_an_endpoint_found_are_checked() -> None:
    talk = Conversation(PROMPT, SCHEMAS)
    calls: Any = (
        {"id": "a", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}},
        {"id": "b", "type": "function", "function": {"name": "add", "arguments": '{"a": '}},
        {"id": "c"},
        "d",
    )
    parsed = talk.add_answer(Sample("x", "text", "stop", tool_calls=calls))
    assert [call["id"] for call in parsed.calls] == ["a"]
    assert len(parsed.malformed) == 3
    assert "bad JSON at character 6" in parsed.malformed[0]
    text = Sample("x", '{"tool": "add", "arguments": {}}', "stop", tool_calls=())
    assert talk.add_answer(text).calls == ()  # the endpoint says there is none


def test_a_prompt_needs_a_message() -> None:
    with pytest.raises(TaskError, match="at least one message"):
        Conversation([], (), chat(PLAIN))


@given(st.text(st.characters(codec=None), max_size=20))
def test_half_surrogates_are_replaced_and_nothing_else(text: str) -> None:
    clean = well_formed(text)
    clean.encode()
    assert clean == "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text) or any(
        "\ud800" <= char <= "\udbff" for char in text
    )  # two halves in a row may become one character

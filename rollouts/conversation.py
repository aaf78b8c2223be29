"""One episode's conversation as messages and as tokens: token in, token out.

A reply is rendered by the model's own chat template, with the whole conversation before it, in which the model's
messages are the very text that it sampled. Only what the template puts after that text becomes new tokens; sampled
tokens are never tokenised again. A template that rewrites what came before (it drops old reasoning, strips white space)
can't be continued: then a new branch begins, with the whole conversation as the template now has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weightgym.rewards.contracts import TaskError
from weightgym.rollouts.backend import ChatTokenizer, Sample
from weightgym.rollouts.tools import Parsed, check_calls, parse, prompt_text
from weightgym.rollouts.trajectory import Step


class Conversation:
    """Messages and tokens of one episode. ``tokenizer`` None: messages only.

    Args:
        messages: the prompt, in OpenAI's form.
        tools: OpenAI schemas. They go into the prompt where the template takes them, else into the system prompt.

    Raises:
        TaskError: there is no message.
    """

    def __init__(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[dict[str, Any]] = (),
        tokenizer: ChatTokenizer | None = None,
    ) -> None:
        self.tools = tuple(tools)
        self._tokenizer = tokenizer
        self._format = tokenizer.tool_format if tokenizer else "json"
        prompt = [_clean(message) for message in messages]
        if not prompt:
            raise TaskError("a prompt needs at least one message")
        if tokenizer:
            prompt = _with_section(prompt, prompt_text(self._format, self.tools))
        self.steps = [_step(message) for message in prompt]
        self.prompt_length = len(prompt)  #: in steps
        #: What the template is given: no tool calls, but the text that the model wrote.
        self._shown = prompt
        self._text = ""
        #: The tokens of the branch: what the next request asks to continue.
        self.token_ids: tuple[int, ...] = ()
        if tokenizer:
            self._text = self._render()
            self._begin_branch()

    @property
    def messages(self) -> tuple[dict[str, Any], ...]:
        """The conversation so far, tool calls and all."""
        return tuple(step.message for step in self.steps)

    def add_answer(self, sample: Sample) -> Parsed:
        """Take what the model wrote; returns its tool calls, if there are tools."""
        tokenizer, ids = self._tokenizer, sample.token_ids
        raw = content = well_formed(sample.content)
        if tokenizer:
            raw = tokenizer.text(ids[:-1] if self._ended(ids) else ids, special=True)
        parsed = Parsed(content)
        if self.tools and sample.tool_calls is not None:
            parsed = check_calls(content, sample.tool_calls)
        elif self.tools:
            found = parse(self._format, raw)
            parsed = Parsed(found.content if found.calls else content, found.calls, found.malformed)
        self.steps.append(
            Step(
                role="assistant",
                content=parsed.content,
                tool_calls=parsed.calls,
                token_ids=ids,
                logprobs=sample.logprobs,
                mask=(True,) * len(ids),
            )
        )
        self._shown.append({"role": "assistant", "content": raw})
        self._text += raw
        self.token_ids += ids
        return parsed

    def add_reply(self, reply: Sequence[Mapping[str, Any]], malformed: Sequence[str] = ()) -> None:
        """Take what the environment says, and what was wrong with calls that it did not get.

        Endpoints want a tool's results right after its calls: errors come after these and before all else.
        """
        messages = [_clean(message) for message in reply]
        results = next((i for i, message in enumerate(messages) if message["role"] != "tool"), len(messages))
        messages[results:results] = [{"role": "user", "content": text} for text in malformed]
        answer = self.steps[-1]
        self.steps += [_step(message) for message in messages]
        if not self._tokenizer:
            return
        self._shown += messages if self._format != "json" else _as_user(messages, answer)
        before, self._text = self._text, self._render()
        if self._text.startswith(before):
            glue = self._tokenizer.encode(self._text[len(before) :])
            if glue and self._ended(self.token_ids) and glue[0] == self.token_ids[-1]:
                glue = glue[1:]  # the model has written it itself
            self.token_ids += glue
            self.steps[-1] = _with_tokens(self.steps[-1], glue)
        else:
            self._begin_branch()

    def _begin_branch(self) -> None:
        assert self._tokenizer is not None
        self.token_ids = self._tokenizer.encode(self._text)
        begins = any(step.token_ids for step in self.steps)
        self.steps[-1] = _with_tokens(self.steps[-1], self.token_ids).model_copy(update={"starts_branch": begins})

    def _render(self) -> str:
        assert self._tokenizer is not None
        return self._tokenizer.render(self._shown, self.tools if self._format != "json" else ())

    def _ended(self, ids: Sequence[int]) -> bool:
        return bool(ids) and self._tokenizer is not None and ids[-1] in self._tokenizer.end_ids


def well_formed(text: str) -> str:
    """The text with halves of surrogate pairs, which no tokenizer and no file takes, as U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _clean(message: Mapping[str, Any]) -> dict[str, Any]:
    return {**message, "content": well_formed(message.get("content") or "")}


def _step(message: Mapping[str, Any]) -> Step:
    return Step(
        role=message["role"],
        content=message["content"],
        tool_calls=tuple(message.get("tool_calls") or ()),
        tool_call_id=message.get("tool_call_id", ""),
    )


def _with_tokens(step: Step, ids: tuple[int, ...]) -> Step:
    """The step with tokens that were not sampled."""
    return step.model_copy(
        update={"token_ids": ids, "logprobs": (0.0,) * len(ids), "mask": (False,) * len(ids)},
    )


def _with_section(messages: list[dict[str, Any]], section: str) -> list[dict[str, Any]]:
    """The prompt with a section at the end of its system message."""
    if not section:
        return messages
    if messages and messages[0]["role"] == "system":
        system, rest = messages[0], messages[1:]
        return [{**system, "content": f"{system['content']}\n\n{section}"}, *rest]
    return [{"role": "system", "content": section}, *messages]


def _as_user(messages: Sequence[Mapping[str, Any]], answer: Step) -> list[dict[str, Any]]:
    """One user message out of all, for templates that know neither tools nor two messages of a user in a row."""
    names = {call["id"]: call["function"]["name"] for call in answer.tool_calls}
    parts = []
    for message in messages:
        name = names.get(message.get("tool_call_id", ""), "the tool")
        parts.append(f"Result of {name}:\n{message['content']}" if message["role"] == "tool" else message["content"])
    return [{"role": "user", "content": "\n\n".join(parts)}]

"""The contracts that every benchmark shares: ``Task``, ``Score`` and the failure boundaries.

Everything of ours may import this module; it imports nothing of ours but the failures.
"""

from __future__ import annotations

import hashlib
import json
import math
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from weightgym.rewards.failures import (
    BackendError,
    GraderError,
    ModelError,
    SandboxError,
    TaskError,
    WeightgymError,
)

__all__ = [
    "BackendError",
    "Completion",
    "GraderError",
    "Message",
    "ModelError",
    "SandboxError",
    "Score",
    "Split",
    "Status",
    "Task",
    "TaskError",
    "WeightgymError",
    "canonical_json",
    "completion_text",
    "sha256_hex",
]

Split = Literal["train", "test"]
Status = Literal["ok", "invalid", "error", "timeout"]

#: An answer: plain text, or the message list of a conversation (OpenAI chat format).
Completion = str | Sequence[Mapping[str, Any]]


def canonical_json(value: Any) -> str:
    """The one JSON text of ``value``: sorted keys, no spaces, no NaN (``ValueError``)."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def sha256_hex(text: str) -> str:
    """SHA-256 of the text's UTF-8 bytes (lone surrogates, which JSON can carry, pass through)."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Message(BaseModel):
    """One chat message of a prompt."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    role: Literal["system", "user", "assistant", "tool"]
    content: str


class Task(BaseModel):
    """One row of a benchmark. ``(env, id)`` is its key everywhere.

    ``hash`` is the SHA-256 of the canonical JSON of all other fields. It is computed when it is not given; a given
    hash that does not match is refused (``ValueError``), so an edited row can't pass for the original.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    env: str = Field(min_length=1)
    id: str = Field(min_length=1)
    split: Split
    prompt: tuple[Message, ...] = ()
    system_prompt: str = ""
    data: dict[str, JsonValue] = Field(default_factory=dict)
    hash: str = ""

    @model_validator(mode="after")
    def _fill_hash(self) -> Self:
        digest = sha256_hex(canonical_json(self.model_dump(mode="json", exclude={"hash"})))
        if not self.hash:
            object.__setattr__(self, "hash", digest)  # the model is frozen for everyone else
        elif self.hash != digest:
            raise ValueError(f"task {self.id}: hash {self.hash[:12]}… does not match its content ({digest[:12]}…)")
        return self

    @property
    def key(self) -> tuple[str, str]:
        """``(env, id)``."""
        return self.env, self.id

    @property
    def messages(self) -> list[dict[str, str]]:
        """System prompt (when there is one) and prompt, as a chat request takes them."""
        system = [{"role": "system", "content": self.system_prompt}] if self.system_prompt else []
        return system + [message.model_dump() for message in self.prompt]


class Score(BaseModel):
    """What a scorer says of one answer.

    ``ok`` and ``invalid`` carry a finite reward (``invalid``: the environment's floor, the answer is at fault);
    ``error`` and ``timeout`` are ours and carry none. Anything else is refused at construction (``ValueError``).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    status: Status
    reward: float | None
    #: One line: a machine-readable code, then ``": "`` and a text for people. Empty for ``ok``.
    reason: str = ""
    #: Every component of the reward's formula, and what else was measured. All finite.
    metrics: dict[str, float] = Field(default_factory=dict)
    #: Whatever else. ``"repeatable": false`` is the scorer's word that another run may say otherwise.
    info: dict[str, JsonValue] = Field(default_factory=dict)
    #: The named set of choices under which the score was made; scores compare only within one profile.
    profile: str = ""
    #: Wall-clock seconds. This and ``timings`` are the only fields that two runs of one scorer may differ in.
    seconds: float = 0.0
    #: Seconds of parts of the work, by name.
    timings: dict[str, float] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.status in ("ok", "invalid"):
            if self.reward is None or not math.isfinite(self.reward):
                raise ValueError(f"a score with status {self.status!r} needs a finite reward, not {self.reward!r}")
        elif self.reward is not None:
            raise ValueError(f"a score with status {self.status!r} carries no reward, got {self.reward!r}")
        if self.status != "ok" and not self.reason:
            raise ValueError(f"a score with status {self.status!r} needs a reason")
        if "\n" in self.reason or "\r" in self.reason:
            raise ValueError("the reason of a score is one line")
        for name, value in self.metrics.items():
            if not math.isfinite(value):
                raise ValueError(f"metric {name!r} is not finite: {value!r}")
        return self

    @property
    def code(self) -> str:
        """The machine-readable part of ``reason``."""
        return self.reason.split(":", 1)[0]

    @property
    def repeatable(self) -> bool:
        """Whether another run would say the same, so that it may be kept in place of one."""
        return self.status in ("ok", "invalid") and self.info.get("repeatable") is not False

    @classmethod
    def fault(cls, error: BaseException, *, profile: str = "", seconds: float = 0.0) -> Score:
        """An ``error`` score out of an exception of ours, with its traceback in ``info``."""
        text = " ".join(f"{type(error).__name__}: {error}".split())
        trace = "".join(traceback.format_exception(error))
        return cls(status="error", reward=None, reason=f"grader_error: {text}", info={"traceback": trace},
                   profile=profile, seconds=seconds)  # fmt: skip


def completion_text(completion: Completion) -> str:
    """The text that a single-turn scorer reads: the text itself, or the last assistant message of a conversation.

    Message content may be a string or a list of parts, of which the ``text`` ones are joined.

    Raises:
        ModelError: there is no assistant message, or its content is of another type.
        TypeError: it is neither text nor a list, which no model can bring about: the caller is at fault.
    """
    if isinstance(completion, str):
        return completion
    if isinstance(completion, Sequence) and not isinstance(completion, bytes | bytearray | memoryview):
        for message in reversed(completion):
            if isinstance(message, Mapping) and message.get("role") == "assistant":
                return _content_text(message.get("content"))
        raise ModelError("bad_completion: no assistant message in the list of messages")
    raise TypeError(f"a completion is text or a list of messages, not {type(completion).__name__}")


def _content_text(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence) and all(isinstance(part, Mapping) for part in content):
        texts = [part.get("text") for part in content if part.get("type", "text") == "text"]
        if all(isinstance(text, str) for text in texts):
            return "".join(text for text in texts if isinstance(text, str))
    raise ModelError("bad_completion: the assistant message's content is neither text nor a list of text parts")

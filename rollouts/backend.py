"""What generates: one protocol for models in process, servers, scripted policies and recorded answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from weightgym.rewards.contracts import Task
from weightgym.rollouts.trajectory import FinishReason


@dataclass(frozen=True)
class Sampling:
    """How to sample. Training wants the policy's own distribution: there is no top-p, top-k or minimum length.

    Raises:
        ValueError: a value is out of range; the message names field, value and range.
    """

    max_tokens: int = 1024
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens: {self.max_tokens}, want 1 or more")
        if not 0 <= self.temperature < 100:
            raise ValueError(f"temperature: {self.temperature}, want 0 (greedy) to 100")


@dataclass(frozen=True)
class Request:
    """One continuation that is wanted.

    ``seed`` decides the sample: it depends neither on the other requests nor on how many are asked at once.
    """

    id: str
    task: Task
    messages: tuple[dict[str, Any], ...]  #: the conversation so far
    token_ids: tuple[int, ...]  #: the same as tokens; empty for backends without a tokenizer
    seed: int
    tools: tuple[dict[str, Any], ...] = ()  #: OpenAI schemas, for endpoints that call tools themselves


@dataclass(frozen=True)
class Sample:
    """What was generated for a request."""

    id: str  #: of the request
    content: str
    finish_reason: FinishReason
    token_ids: tuple[int, ...] = ()  #: sampled, the end-of-sequence token included
    logprobs: tuple[float, ...] = ()
    version: int = 0  #: of the policy that wrote it; the oldest, if that changed on the way
    #: OpenAI tool calls, from endpoints that parse them; None: they are to be looked for in ``content``.
    tool_calls: tuple[dict[str, Any], ...] | None = None


class ChatTokenizer(Protocol):
    """A model's tokenizer and chat template, for backends that work on tokens."""

    @property
    def end_ids(self) -> frozenset[int]:
        """The tokens that end the assistant's turn."""

    @property
    def tool_format(self) -> str:
        """How this model family writes tool calls: a name of ``tools.FORMATS``."""

    def render(self, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]] = ()) -> str:
        """The chat template's text of a conversation, ready for the assistant's turn."""

    def encode(self, text: str) -> tuple[int, ...]:
        """The tokens of a text that the template rendered; nothing is added at its ends."""

    def text(self, ids: Sequence[int], *, special: bool = False) -> str:
        """What the tokens say; with or without special ones."""


class Backend(Protocol):
    """A policy.

    ``generate`` may be called from ``lanes`` threads at once. A backend with one lane is given ``batch_size`` requests
    at a time, always the same ones together, so that what it writes depends on no timing; one with several lanes
    schedules for itself and gets requests as they come.
    """

    @property
    def name(self) -> str:
        """What trajectories call this policy."""

    @property
    def tokenizer(self) -> ChatTokenizer | None:
        """How its requests become tokens; None for policies that take messages."""

    @property
    def batch_size(self) -> int:
        """How many requests a call may have."""

    @property
    def lanes(self) -> int:
        """How many calls of ``generate`` may run at once."""

    @property
    def context(self) -> int | None:
        """The most tokens that prompt and answer may have together; None: unknown, or there are no tokens."""

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Sample]:
        """One sample a request, in their order.

        Raises:
            BackendError: generation failed.
        """

    def sync(self, weights: Iterable[tuple[str, Any]], version: int) -> None:
        """Take new weights (name, tensor), all or some; samples from now on have that version.

        Raises:
            BackendError: this policy has no weights, or the names or shapes are not its own.
        """

    def close(self) -> None:
        """Give back what it holds. It is not used again."""

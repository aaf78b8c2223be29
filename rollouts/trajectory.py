"""Trajectories: what a model was shown, what it wrote, token by token, and what that was worth.

Each message stores only the tokens that it adds. Concatenated they are exactly what the model saw: text is never
tokenised again. Where a chat template rewrites what came before (it drops old reasoning, say), the message starts a new
branch: its tokens are then the whole conversation as the model sees it from there on. One trajectory is one JSON line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from weightgym.rewards.contracts import Message, Score

#: Why generation ended: an end-of-sequence token or stop string, or a limit of tokens.
FinishReason = Literal["stop", "length"]


class Step(BaseModel):
    """One message and the tokens that it adds to the sequence.

    For a message that a model wrote, ``token_ids``, ``logprobs`` and ``mask`` have one entry a token; ``mask`` is true
    for the tokens that it sampled. Backends without tokens (scripted policies, text endpoints) leave all three empty.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    #: OpenAI tool calls of an assistant's message, as the environment got them.
    tool_calls: tuple[dict[str, Any], ...] = ()
    #: Of a tool's message: the call that it answers.
    tool_call_id: str = ""
    #: The tokens don't follow those before, but begin a sequence of their own.
    starts_branch: bool = False
    token_ids: tuple[int, ...] = ()
    #: Of each token under the sampler, natural logarithm, in full precision; 0 where the mask is false.
    logprobs: tuple[float, ...] = ()
    mask: tuple[bool, ...] = ()

    @model_validator(mode="after")
    def _check_lengths(self) -> Step:
        if not len(self.token_ids) == len(self.logprobs) == len(self.mask):
            raise ValueError(
                f"{self.role} message: {len(self.token_ids)} token_ids, {len(self.logprobs)} logprobs and "
                f"{len(self.mask)} mask entries; want one of each a token"
            )
        return self

    @property
    def message(self) -> dict[str, Any]:
        """As a chat message (OpenAI format)."""
        extra: dict[str, Any] = {"tool_calls": list(self.tool_calls)} if self.tool_calls else {}
        if self.tool_call_id:
            extra["tool_call_id"] = self.tool_call_id
        return {"role": self.role, "content": self.content} | extra


@dataclass(frozen=True)
class Branch:
    """A token sequence that the model saw, with one entry a token in each field."""

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    mask: tuple[bool, ...]  #: sampled by the model


class Trajectory(BaseModel):
    """One episode of one policy on one task."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: Names the rollout within a run.
    id: str = Field(min_length=1)
    env: str
    task: str
    task_sha256: str
    #: Samples of one task that are compared with each other have the same group.
    group: str
    seed: int
    policy: str  #: the backend's name for what wrote it
    #: Of sampling. None: nobody said.
    max_tokens: int | None = None
    temperature: float | None = None
    policy_version: int = 0  #: the oldest one that wrote a token of it
    steps: tuple[Step, ...]
    finish_reason: FinishReason
    score: Score
    #: Wall-clock seconds by phase.
    seconds: dict[str, float] = Field(default_factory=dict)

    @property
    def completion(self) -> list[dict[str, Any]]:
        """The conversation after the prompt, as scorers take it."""
        return [step.message for step in self.steps[self._answered :]]

    @property
    def prompt(self) -> tuple[Message, ...]:
        """The messages before the first one that the model wrote."""
        return tuple(Message(role=step.role, content=step.content) for step in self.steps[: self._answered])

    @property
    def _answered(self) -> int:
        return next((i for i, step in enumerate(self.steps) if step.role == "assistant"), len(self.steps))

    @property
    def turns(self) -> int:
        """How often the model wrote."""
        return sum(step.role == "assistant" for step in self.steps)

    @property
    def branches(self) -> tuple[Branch, ...]:
        """The token sequences, each a row of training: one, unless a template rewrote the conversation."""
        starts = [0, *(index for index, step in enumerate(self.steps) if step.starts_branch and index)]
        parts = [self.steps[begin:end] for begin, end in zip(starts, [*starts[1:], len(self.steps)], strict=True)]
        return tuple(
            Branch(
                tuple(id for step in part for id in step.token_ids),
                tuple(value for step in part for value in step.logprobs),
                tuple(flag for step in part for flag in step.mask),
            )
            for part in parts
        )

    @property
    def sampled(self) -> int:
        """How many tokens the model sampled."""
        return sum(flag for step in self.steps for flag in step.mask)

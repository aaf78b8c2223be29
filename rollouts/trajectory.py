"""Trajectories: what a model was shown, what it wrote, token by token, and what that was worth.

Each message stores only the tokens that it adds. Concatenated along the path they are exactly what the model saw: text
is never tokenised again. One trajectory is one JSON line.
"""

from __future__ import annotations

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
    policy_version: int = 0
    steps: tuple[Step, ...]
    finish_reason: FinishReason
    score: Score
    #: Wall-clock seconds by phase.
    seconds: dict[str, float] = Field(default_factory=dict)

    @property
    def completion(self) -> list[dict[str, Any]]:
        """The conversation after the prompt, as scorers take it."""
        first = next((i for i, step in enumerate(self.steps) if step.role == "assistant"), len(self.steps))
        return [{"role": step.role, "content": step.content} for step in self.steps[first:]]

    @property
    def prompt(self) -> tuple[Message, ...]:
        """The messages before the first one that the model wrote."""
        first = next((i for i, step in enumerate(self.steps) if step.role == "assistant"), len(self.steps))
        return tuple(Message(role=step.role, content=step.content) for step in self.steps[:first])

    @property
    def token_ids(self) -> tuple[int, ...]:
        """The whole sequence."""
        return tuple(id for step in self.steps for id in step.token_ids)

    @property
    def mask(self) -> tuple[bool, ...]:
        """Which tokens of the whole sequence the model sampled."""
        return tuple(flag for step in self.steps for flag in step.mask)

    @property
    def logprobs(self) -> tuple[float, ...]:
        """Of the whole sequence."""
        return tuple(value for step in self.steps for value in step.logprobs)

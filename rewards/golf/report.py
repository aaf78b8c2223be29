"""The evaluator's result of one solution: what the commands print, the environment shows, and a record stores."""

from __future__ import annotations

import math
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from weightgym.rewards.golf.method import Method

Status = Literal["ok", "buggy"]
Phase = Literal["check", "gate", "train", "pack", "serve", "audit"]
#: Phases whose time is the candidate's.
CHARGED: tuple[Phase, ...] = ("train", "pack", "serve")

REASONS = frozenset(
    {
        "no_solution",
        "check_failed",
        "config_not_literal",
        "illegal",
        "train_timeout",
        "train_failed",
        "missing_train_checkpoint",
        "eval_timeout",
        "eval_failed",
        "artifact_cap_exceeded",
    }
)


class FindingRow(BaseModel):
    """One finding of the gate; ``line`` counts from 1 in the solution."""

    model_config = ConfigDict(frozen=True, extra="forbid", from_attributes=True)

    severity: Literal["illegal", "review"]
    code: str
    line: int = Field(ge=1)
    text: str


class Result(BaseModel):
    """A result. ``buggy`` has a reason and no val_bpb, ``ok`` a val_bpb and no reason; anything else is refused.

    Bytes are whole bytes, times seconds. ``reason`` is one of ``REASONS`` or starts with ``audit_``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    status: Status
    phase: Phase
    reason: str | None = None
    #: One line for people. It never holds text that the solution's own code made.
    message: str = ""
    val_bpb: float | None = None
    #: Of the charged phases: CPU-seconds, where there is no GPU.
    runtime_s: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)
    #: Wall clock, waits for a core aside.
    phase_s: dict[Phase, float] = Field(default_factory=dict)
    artifact_bytes: int | None = Field(default=None, ge=0)
    claimed_bytes: int | None = None
    audited_bytes: int | None = Field(default=None, ge=0)
    source_bytes: int = Field(default=0, ge=0)
    param_count: int | None = Field(default=None, ge=0)
    config: dict[str, int | float] = Field(default_factory=dict)
    method_profile: tuple[Method, ...] = ()
    verdict: Literal["legal", "review_required", "illegal"] | None = None
    findings: tuple[FindingRow, ...] = ()
    #: SHA-256 of solution.py as it was given.
    source_sha256: str = ""
    #: Where the numbers are from: scores compare only where all four are equal.
    profile: str = ""
    evaluator: str = ""
    corpus: dict[str, JsonValue] = Field(default_factory=dict)
    fingerprint: dict[str, JsonValue] = Field(default_factory=dict)
    cpu_s: dict[Phase, float] = Field(default_factory=dict)
    #: Nats by which the two views were apart at most, where they should agree.
    apart: float | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.status == "ok":
            if self.reason is not None:
                raise ValueError(f"an ok result has no reason, got {self.reason!r}")
            if self.val_bpb is None or not (math.isfinite(self.val_bpb) and 0 <= self.val_bpb < 16):
                raise ValueError(f"an ok result needs a val_bpb from 0 to 16, not {self.val_bpb!r}")
        else:
            if self.reason not in REASONS and not (self.reason or "").startswith("audit_"):
                raise ValueError(f"a buggy result needs a reason of the rules, not {self.reason!r}")
            if self.val_bpb is not None:
                raise ValueError("a buggy result reports no val_bpb")
        return self

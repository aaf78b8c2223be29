"""Golf's result record refuses what contradicts itself."""

from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

from weightgym.rewards.golf.report import REASONS, Result


def test_a_result_survives_json() -> None:
    result = Result(status="ok", phase="audit", val_bpb=2.5, phase_s={"train": 1.5}, artifact_bytes=10, claimed_bytes=9,
                    audited_bytes=10, source_bytes=1, config={"dropout": 0.0, "num_layers": 4},
                    method_profile=("baseline",),
                    verdict="legal")  # fmt: skip
    again = Result.model_validate_json(result.model_dump_json())
    assert again == result
    assert type(again.config["dropout"]) is float
    assert type(again.config["num_layers"]) is int


@pytest.mark.parametrize("bpb", [None, -0.001, 16.0, math.nan, math.inf])
def test_ok_needs_a_possible_score(bpb: float | None) -> None:
    with pytest.raises(ValidationError, match="from 0 to 16"):
        Result(status="ok", phase="audit", val_bpb=bpb)


def test_buggy_needs_a_reason_of_the_rules_and_no_score() -> None:
    for reason in [*REASONS, "audit_future"]:
        assert Result(status="buggy", phase="audit", reason=reason).val_bpb is None
    for wrong in (None, "", "broken"):
        with pytest.raises(ValidationError, match="reason of the rules"):
            Result(status="buggy", phase="check", reason=wrong)
    with pytest.raises(ValidationError, match="no val_bpb"):
        Result(status="buggy", phase="audit", reason="audit_future", val_bpb=1.0)
    with pytest.raises(ValidationError, match="no reason"):
        Result(status="ok", phase="audit", reason="illegal", val_bpb=1.0)

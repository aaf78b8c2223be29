"""Two views of the validation rows: honest models agree in them, and every way to know more shows."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from golf_models import (
    LENGTH,
    BatchMean,
    BatchNormed,
    Bf16,
    Bidirectional,
    CoinPeek,
    Conv,
    Dropout,
    FarPeek,
    Gru,
    Histogram,
    InContext,
    LateMemo,
    Memo,
    Neighbours,
    Normed,
    PartialPeek,
    Peek,
    RowMemo,
    SoftPeek,
    SpliceAware,
    SurprisePeek,
    TestTime,
    WaryPeek,
    text,
    transformer,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from weightgym.rewards.golf.audit import BFLOAT16, FLOAT32, LogitsError, Tolerance, Verdict, audit, nats_of
from weightgym.rewards.golf.views import Plan

torch.set_num_threads(1)
Array = np.ndarray[Any, Any]


VALIDATION, OTHER = text(1, 64 * 64 + 1), text(2, 40_000)


class Served:
    """A model behind the function that the audit asks. Its random numbers begin with the first question."""

    def __init__(self, make: Callable[[], nn.Module], seed: int) -> None:
        torch.manual_seed(0)
        self.model = make().eval()
        self.seed: int | None = seed

    def __call__(self, rows: Array) -> Array:
        if self.seed is not None:
            torch.manual_seed(self.seed)
            self.seed = None
        with torch.no_grad():
            logits: Array = self.model(torch.from_numpy(rows.copy()).long()).float().numpy()
        return logits


def judged(
    make: Callable[[], nn.Module],
    secret: bytes = b"s",
    tolerance: Tolerance = FLOAT32,
    other: Array | None = OTHER,
) -> Verdict:
    """The verdict on two fresh servers of one model."""
    plan = Plan(VALIDATION, LENGTH, secret=secret, other=other)
    return audit(plan, nullcontext(Served(make, 1)), nullcontext(Served(make, 2)), tolerance)


@pytest.mark.parametrize("secret", [b"a", b"b", b"c"])
@pytest.mark.parametrize("make", [transformer, Conv, Gru, InContext, Normed, Bf16])
def test_honest_models_agree(make: Callable[[], nn.Module], secret: bytes) -> None:
    verdict = judged(make, secret)
    assert verdict.code == ""
    assert verdict.worst < 1e-4


@pytest.mark.parametrize("make", [transformer, Conv, Gru])
def test_the_score_is_the_plain_one_whatever_the_secret(make: Callable[[], nn.Module]) -> None:
    torch.manual_seed(0)
    model = make().eval()
    rows = torch.from_numpy(VALIDATION.copy()).long()
    with torch.no_grad():
        logits = model(rows[:-1].view(-1, LENGTH))
    plain = float(F.cross_entropy(logits.double().flatten(0, 1), rows[1:])) / math.log(2)
    for secret in (b"a", b"b"):
        score = judged(make, secret).val_bpb
        assert score == pytest.approx(plain, abs=1e-6)


@pytest.mark.parametrize("secret", [b"a", b"b", b"c"])
@pytest.mark.parametrize(
    "make",
    [Peek, SoftPeek, FarPeek, PartialPeek, CoinPeek, WaryPeek, SpliceAware, Histogram, Bidirectional],
)
def test_future_bytes_are_seen(make: Callable[[], nn.Module], secret: bytes) -> None:
    verdict = judged(make, secret)
    assert verdict.code == "audit_future_bytes"
    assert verdict.val_bpb is None


@pytest.mark.parametrize(("make", "rows"), [(SurprisePeek, 64), (PartialPeek, 8), (SurprisePeek, 8)])
def test_rare_peeks_are_seen_in_few_long_rows_too(make: Callable[[], nn.Module], rows: int) -> None:
    """The same bytes, as 64 rows or as 8: at most one run in ten may miss what is rare."""
    codes = []
    for secret in range(20):
        plan = Plan(VALIDATION, len(VALIDATION) // rows, secret=bytes([secret]), other=OTHER)
        codes.append(audit(plan, nullcontext(Served(make, 1)), nullcontext(Served(make, 2))).code)
    assert set(codes) <= {"audit_future_bytes", ""}
    assert codes.count("") <= 2


@pytest.mark.parametrize("make", [Peek, SoftPeek, PartialPeek, WaryPeek, Histogram])
def test_without_other_text_the_validation_text_serves(make: Callable[[], nn.Module]) -> None:
    assert judged(make, other=None).code == "audit_future_bytes"
    assert judged(Conv, other=None).code == ""


@pytest.mark.parametrize("make", [Peek, SoftPeek, WaryPeek])
def test_leaks_show_through_the_noise_of_bfloat16(make: Callable[[], nn.Module]) -> None:
    assert judged(make, tolerance=BFLOAT16).code == "audit_future_bytes"
    assert judged(Bf16, tolerance=BFLOAT16).code == ""


@pytest.mark.parametrize("make", [BatchMean, BatchNormed, Neighbours])
def test_statistics_of_the_batch_are_seen(make: Callable[[], nn.Module]) -> None:
    assert judged(make).code in ("audit_batch_statistics", "audit_state_carried")
    if make is not BatchNormed:  # which also carries its running averages
        assert judged(make).code == "audit_batch_statistics"


@pytest.mark.parametrize("make", [Memo, LateMemo, TestTime])
def test_state_carried_between_rows_is_seen(make: Callable[[], nn.Module]) -> None:
    assert judged(make).code == "audit_state_carried"


def test_a_random_model_is_called_so() -> None:
    assert judged(Dropout).code == "audit_random"


def test_a_memo_of_whole_rows_never_finds_a_validation_row_again() -> None:
    assert judged(RowMemo).code == "audit_state_carried"  # the repeated probe


@pytest.mark.parametrize(
    "spoil",
    [
        lambda y: y * float("nan"),
        lambda y: y.index_fill(2, torch.tensor([7]), float("-inf")),
        lambda y: y * 1e30,
        lambda y: y[:, :, :128],
        lambda y: y[:, :, :1],
        lambda y: y[:-1],
        lambda y: y[:, :-1],
        lambda y: torch.cat([y, y[..., :1]], -1),
    ],
)
def test_bad_logits_are_refused(spoil: Callable[[Tensor], Tensor]) -> None:
    class Bad(Conv):
        def forward(self, ids: Tensor) -> Tensor:
            return spoil(super().forward(ids))

    verdict = judged(Bad)
    assert verdict.code == "audit_bad_logits"
    assert verdict.val_bpb is None


def test_other_types_of_logits_are_refused() -> None:
    targets = np.zeros((1, 2), np.uint8)
    right = np.zeros((1, 2, 256), np.float32)
    assert nats_of(right, targets) == pytest.approx(math.log(256))
    for wrong in (right.astype(np.float64), right.astype(np.float16), right.view(np.int32), right.tolist(), None):
        with pytest.raises(LogitsError):
            nats_of(wrong, targets)
    with pytest.raises(LogitsError):
        nats_of(right.view(np.recarray), targets)


def test_a_model_that_is_sure_and_wrong_has_no_score() -> None:
    class Wrong(Conv):
        def forward(self, ids: Tensor) -> Tensor:
            return F.one_hot(torch.zeros_like(ids), 256) * 40.0

    assert judged(Wrong).code == "audit_score_out_of_range"


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.integers(2, 70), st.binary(max_size=8), st.integers(1, 9))
def test_view_a_holds_every_row_and_view_b_differs_behind_cuts_alone(
    count: int, length: int, secret: bytes, batch_rows: int
) -> None:
    plan = Plan(VALIDATION[: count * length + 1], length, secret=secret, other=OTHER, batch_rows=batch_rows)
    first = plan.first()
    second = plan.second(np.ones(plan.rows.shape))
    assert first.batches.shape[1:] == second.batches.shape[1:] == (plan.batch_rows, length)
    assert sorted(first.places[first.places >= 0].tolist()) == list(range(count))
    assert (first.cuts == length).all()
    showings: dict[int, list[int]] = {row: [] for row in range(count)}
    for view in (first, second):
        for place, cut, row, after in zip(
            view.places.flat, view.cuts.flat, _flat(view.batches), _flat(view.targets), strict=True
        ):
            if place < 0:
                continue
            assert 1 <= cut <= length
            assert np.array_equal(row[:cut], plan.rows[place][:cut])
            assert np.array_equal(after[:cut], plan.targets[place][:cut])
            assert cut == length or row[cut] != plan.rows[place][cut]
            if view is second:
                showings[int(place)].append(int(cut))
    assert len({len(cuts) for cuts in showings.values()}) == 1
    assert all(cuts == sorted(cuts) for cuts in showings.values())
    assert sum(map(len, showings.values())) >= min(48, 4 * count)
    again = Plan(VALIDATION[: count * length + 1], length, secret=secret, other=OTHER, batch_rows=batch_rows)
    assert np.array_equal(again.first().batches, first.batches)
    assert np.array_equal(again.second(np.ones(plan.rows.shape)).batches, second.batches)


def _flat(batches: Array) -> Array:
    return batches.reshape(-1, batches.shape[-1])

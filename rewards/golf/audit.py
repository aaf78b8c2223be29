"""What a served model's logits are worth: the bits of view A, and whether view B agrees.

Nothing here runs a model: batches go out and logits come back through a function (``ask``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from weightgym.rewards.golf.views import PROBES, Array, Plan, View

Code = Literal[
    "",
    "audit_bad_logits",
    "audit_random",
    "audit_state_carried",
    "audit_batch_statistics",
    "audit_future_bytes",
    "audit_score_out_of_range",
]
#: Sends uint8 [rows, length], returns logits [rows, length, 256].
Ask = Callable[[Array], Any]
#: A model's process, for as long as the context lasts.
Server = AbstractContextManager[Ask]
_WORST_BPB = 16.0


class LogitsError(Exception):
    """The logits are not finite float32 [rows, length, 256] in range."""


@dataclass(frozen=True)
class Tolerance:
    """How far apart two views of an honest model may be, in nats of the true byte."""

    worst: float  #: at any position
    mean: float  #: over any window of positions that ends at the cuts
    logit: float = 1e5  #: absolute value of a logit, at most


FLOAT32 = Tolerance(worst=2e-3, mean=2e-4)
#: Under autocast on a GPU, rows of other batches round differently.
BFLOAT16 = Tolerance(worst=0.5, mean=5e-3)


@dataclass(frozen=True)
class Verdict:
    """The end of an audit. ``code`` is empty for an honest model; only then is there a score."""

    code: Code
    val_bpb: float | None
    worst: float  #: nats by which the views were apart at most, where they should agree


def nats_of(logits: Any, targets: Array, tolerance: Tolerance = FLOAT32) -> Array:
    """Nats of each target, float64 of the targets' shape, by a softmax over all 256 bytes.

    Raises:
        LogitsError: another type, dtype or shape, or values that are not finite or out of range.
    """
    if type(logits) is not np.ndarray or logits.dtype != np.float32 or logits.shape != (*targets.shape, 256):
        raise LogitsError("not float32 [rows, length, 256]")
    exact = logits.astype(np.float64)
    if not (np.abs(exact) <= tolerance.logit).all():  # false for NaN
        raise LogitsError("logits that are not finite or out of range")
    chosen = np.take_along_axis(exact, targets[..., None].astype(np.int64), -1)[..., 0]
    highest = exact.max(-1, keepdims=True)
    np.subtract(exact, highest, out=exact)
    total = np.log(np.exp(exact, out=exact).sum(-1))
    nats: Array = total + highest[..., 0] - chosen
    return nats


def ask_all(view: View, ask: Ask, tolerance: Tolerance) -> Array:
    """Nats of a view, float64 [batches, rows, length].

    Raises:
        LogitsError: see ``nats_of``.
    """
    answered = [nats_of(ask(batch), after, tolerance) for batch, after in zip(view.batches, view.targets, strict=True)]
    return np.stack(answered)


def by_row(view: View, nats: Array, rows: int) -> Array:
    """The nats of view A in the order of the validation rows, float64 [rows, length]."""
    ordered = np.empty((rows, nats.shape[-1]))
    real = view.places >= 0
    ordered[view.places[real]] = nats[real]
    return ordered


def audit(plan: Plan, first: Server, second: Server, tolerance: Tolerance = FLOAT32) -> Verdict:
    """Show both views, each to a server of its own that has seen nothing, one after the other, and judge."""
    try:
        a = plan.first()
        with first as ask:
            a_nats = ask_all(a, ask, tolerance)
        b = plan.second(by_row(a, a_nats, len(plan.rows)))
        with second as ask:
            b_nats = ask_all(b, ask, tolerance)
        return judge(plan, a, a_nats, b, b_nats, tolerance)
    except LogitsError:
        return Verdict("audit_bad_logits", None, math.inf)


def judge(
    plan: Plan, first: View, first_nats: Array, second: View, second_nats: Array, tolerance: Tolerance
) -> Verdict:
    """The verdict on two answered views: nats of ``ask_all``, float64 [batches, rows, length]."""
    half = plan.batch_rows - plan.batch_rows // 2
    scored = by_row(first, first_nats, len(plan.rows))
    real = second.places >= 0
    apart, cuts = np.abs(second_nats[real] - scored[second.places[real]]), second.cuts[real]
    whole = cuts == plan.length
    probes = first_nats[:PROBES, :, :-1], second_nats[:PROBES, :, :-1]
    again = [np.abs(probe[2] - probe[0]) for probe in probes]
    alike: list[tuple[Code, list[Array]]] = [
        ("audit_random", [np.abs(probes[0][0] - probes[1][0])]),
        ("audit_state_carried", again),
        (
            "audit_batch_statistics",
            [np.abs(probes[0][1, :half] - probes[1][1, :half])] if half < plan.batch_rows else [],
        ),
        ("audit_state_carried", [apart[whole]]),
        ("audit_future_bytes", _before_cuts(apart[~whole], cuts[~whole])),
    ]
    worst = 0.0
    code: Code = ""
    for name, differences in alike:
        for difference in differences:
            if difference.size:
                most = float(difference.max())
                worst = max(worst, most)
                agrees = most <= tolerance.worst and float(difference.mean()) <= tolerance.mean
                code = code or ("" if agrees else name)
    score = float(scored.mean()) / math.log(2)
    if not code and not 0 <= score < _WORST_BPB:
        code = "audit_score_out_of_range"
    return Verdict(code, None if code else score, worst)


def _before_cuts(apart: Array, cuts: Array) -> list[Array]:
    """The differences at the 1, 2, 4, … positions before each cut: a leak of one byte shows at the last one only."""
    windows = []
    lag = cuts[:, None] - np.arange(apart.shape[1])
    reach = 1
    while reach < 2 * apart.shape[1]:
        windows.append(apart[(lag >= 1) & (lag <= reach)])
        reach *= 2
    return windows

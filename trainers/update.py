"""The optimiser steps over one batch of rollouts."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from weightgym.trainers.batch import Batch, Row, make_batch
from weightgym.trainers.health import UnhealthyRun
from weightgym.trainers.loss import LossConfig, LossStatistics, count_batch, policy_loss
from weightgym.trainers.policy import Policy


@dataclass(frozen=True)
class Updated:
    """What came of it: means over the optimiser steps."""

    loss: float
    norm: float  #: of the gradient, before it was clipped
    statistics: LossStatistics  #: of the first optimiser step, whose policy is the one that the batch began with


def update(
    policy: Policy,
    optimiser: torch.optim.Optimizer,
    rows: Sequence[Row],
    *,
    config: LossConfig,
    updates: int,
    micro_batch: int,
    clip_norm: float,
    check: Callable[[float], None],
) -> Updated:
    """``updates`` optimiser steps, each over its share of the rows, in micro-batches of at most ``micro_batch``.

    Rows are dealt out in turn, so that every step sees every group. How a step is cut into micro-batches changes
    nothing but memory: the loss is divided by counts of the whole step. ``check`` is called with the first step's gap
    of log-probabilities (nats) before anything changes; what it raises ends the update.

    Raises:
        UnhealthyRun: a loss or a gradient is not finite; the weights are then those of before that step.
    """
    shares = [rows[first::updates] for first in range(min(updates, len(rows)))]
    steps = [[make_batch(part) for part in _parts(share, micro_batch)] for share in shares]
    # With several updates, ratios are against the policy that the batch began with.
    before = [[policy.frozen_logprobs(batch) for batch in step] for step in steps] if updates > 1 else None
    done = []
    for index, step in enumerate(steps):
        one = _gradient(policy, optimiser, step, before[index] if before else None, config, clip_norm)
        if not index:
            check(one.statistics.logp_diff_mean)
        optimiser.step()
        done.append(one)
    count = len(done)
    return Updated(sum(one.loss for one in done) / count, sum(one.norm for one in done) / count, done[0].statistics)


def _parts(rows: Sequence[Row], size: int) -> list[Sequence[Row]]:
    return [rows[begin : begin + size] for begin in range(0, len(rows), size)]


def _gradient(
    policy: Policy,
    optimiser: torch.optim.Optimizer,
    batches: Sequence[Batch],
    before: Sequence[Tensor] | None,
    config: LossConfig,
    clip_norm: float,
) -> Updated:
    normaliser = count_batch(batch.mask for batch in batches)
    optimiser.zero_grad()
    losses, statistics = [], []
    for index, batch in enumerate(batches):
        logp = policy.logprobs(batch)
        result = policy_loss(
            logp,
            before[index] if before else logp.detach(),
            batch.sampler_logp,
            batch.advantages,
            batch.mask,
            config=config,
            normaliser=normaliser,
            ref_logp=policy.reference_logprobs(batch),
        )
        result.loss.backward()  # type: ignore[no-untyped-call]
        losses.append(float(result.loss.detach()))
        statistics.append(result.statistics)
    trained = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    norm = float(torch.nn.utils.clip_grad_norm_(trained, clip_norm))
    if not (math.isfinite(sum(losses)) and math.isfinite(norm)):
        raise UnhealthyRun(f"loss {sum(losses)} and gradient norm {norm} are not finite: lower the learning rate?")
    return Updated(sum(losses), norm, functools.reduce(operator.add, statistics))

"""The optimiser steps over one batch of rollouts."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from weightgym.trainers.batch import Batch, Row, make_batch
from weightgym.trainers.distributed import ALONE, MicroBatch, World, clip_gradients
from weightgym.trainers.health import UnhealthyRun
from weightgym.trainers.loss import LossConfig, LossStatistics, Normaliser, count_batch, policy_loss
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
    world: World = ALONE,
) -> Updated:
    """``updates`` optimiser steps, each over its share of the rows, in micro-batches of at most ``micro_batch``.

    Rows are dealt out in turn, so that every step sees every group. How a step is cut into micro-batches changes
    nothing but memory: the loss is divided by counts of the whole step. ``check`` is called with the first step's gap
    of log-probabilities (nats) before anything changes; what it raises ends the update.

    All ranks of ``world`` call this with the same rows, and each trains on its share of every step.

    Raises:
        UnhealthyRun: a loss or a gradient is not finite; the weights are then those of before that step.
    """
    shares = [rows[first::updates] for first in range(min(updates, len(rows)))]
    steps = [[_batch(part, world) for part in world.split(share, micro_batch)] for share in shares]
    # With several updates, ratios are against the policy that the batch began with.
    before = [[policy.frozen_logprobs(batch) for batch in step] for step in steps] if updates > 1 else None
    done = []
    for index, step in enumerate(steps):
        one = _gradient(policy, optimiser, step, before[index] if before else None, config, clip_norm, world)
        if not index:
            check(one.statistics.logp_diff_mean)
        optimiser.step()
        done.append(one)
    count = len(done)
    return Updated(sum(one.loss for one in done) / count, sum(one.norm for one in done) / count, done[0].statistics)


def _batch(part: MicroBatch[Row], world: World) -> Batch:
    batch = make_batch(part.rows, device=str(world.device))
    return replace(batch, mask=torch.zeros_like(batch.mask)) if part.idle else batch


def _gradient(
    policy: Policy,
    optimiser: torch.optim.Optimizer,
    batches: Sequence[Batch],
    before: Sequence[Tensor] | None,
    config: LossConfig,
    clip_norm: float,
    world: World,
) -> Updated:
    mine = count_batch(batch.mask for batch in batches)
    normaliser = Normaliser(*map(int, world.total(mine.tokens, mine.sequences)))
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
        (result.loss * world.size).backward()  # type: ignore[no-untyped-call]  # gradients are averaged over ranks
        losses.append(float(result.loss.detach()))
        statistics.append(result.statistics)
    trained = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    norm = clip_gradients(trained, clip_norm)
    (loss,) = world.total(sum(losses))
    if not (math.isfinite(loss) and math.isfinite(norm)):
        raise UnhealthyRun(f"loss {loss} and gradient norm {norm} are not finite: lower the learning rate?")
    return Updated(loss, norm, world.combine(functools.reduce(operator.add, statistics)))

"""The metrics of a training step: what each one means, and the file that they go to."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from weightgym.rollouts.trajectory import Trajectory

if TYPE_CHECKING:  # it imports torch
    from weightgym.trainers.loss import LossStatistics

#: Every metric that a run writes, with its meaning. Fractions are from 0 to 1. "Rollouts" are those of the step's first
#: round: groups that replace others are trained on, but say nothing of how good the policy is.
MEANINGS: Mapping[str, str] = {
    "step": "optimiser steps so far, this one included; 0 before training",
    "reward/mean": "mean reward of the step's rollouts that have one",
    "reward/std": "standard deviation of these rewards",
    "reward/max": "the best of them",
    "rollout/truncated": "fraction of completions that were cut at max_tokens",
    "rollout/tokens": "mean tokens that a rollout sampled",
    "rollout/turns": "mean number of the model's messages in a rollout",
    "rollout/distinct": "fraction of different completions: falls when the policy collapses onto one answer",
    "rollout/invalid": "fraction of answers that can't be read (they get the floor)",
    "rollout/faults": "fraction without a reward, through our fault (error, timeout): not trained on",
    "rollout/stale": "fraction of a policy older than rollout.max_staleness allows: dropped",
    "rollout/staleness": "mean age of the policy that wrote the rollouts, in optimiser steps",
    "group/zero_spread": "fraction of groups whose rewards are all equal: nothing to learn from",
    "group/refilled": "groups that were made to replace those without spread",
    "group/trained": "groups that were trained on",
    "loss/total": "the loss that was minimised",
    "loss/kl": "mean KL estimate (k3) to the model that training began with, nats; with loss.kl only",
    "loss/ratio": "mean ratio of the policy to the one that the batch began with",
    "loss/clip_low": "fraction of trained tokens without a gradient: ratio under the clip range, advantage negative",
    "loss/clip_high": "fraction of trained tokens without a gradient: ratio over the clip range, advantage positive",
    "loss/clip_delta": "fraction of trained tokens without a gradient: ratio over delta, advantage negative",
    "loss/capped": "fraction of trained tokens whose weight the mismatch correction cut",
    "sampling/logp_diff_mean": "mean |log-probability of the trainer - of the sampler| of trained tokens, nats",
    "sampling/logp_diff_max": "the largest of them",
    "sampling/self_check": "the same mean on a long prompt: at the start, after the first update; async: at each sync",
    "sampling/entropy": "mean -log-probability of sampled tokens, nats: an estimate of the policy's entropy",
    "optimiser/norm": "norm of the whole gradient before it is clipped",
    "optimiser/rate": "learning rate",
    "speed/tokens": "sampled tokens a second of generating and scoring",
    "seconds/rollout": "wall clock of generating and scoring",
    "seconds/train": "wall clock of the passes and the update",
    "seconds/sync": "wall clock of handing the weights to the sampler",
    "eval/reward": "mean reward of the evaluation's rollouts, on tasks that are never trained on",
    "eval/invalid": "fraction of the evaluation's answers that can't be read",
    "eval/faults": "fraction of the evaluation's rollouts without a reward, through our fault",
}


def rollout_metrics(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """What the rollouts of a step were like."""
    count = len(trajectories)
    rewards = [one.score.reward for one in trajectories if one.score.reward is not None]
    mean = sum(rewards) / len(rewards) if rewards else 0.0
    spread = sum((reward - mean) ** 2 for reward in rewards) / len(rewards) if rewards else 0.0
    sampled = sum(one.sampled for one in trajectories)
    surprise = -sum(value for one in trajectories for branch in one.branches for value in branch.logprobs)
    return {
        "reward/mean": mean,
        "reward/std": spread**0.5,
        "reward/max": max(rewards, default=0.0),
        "rollout/truncated": sum(one.finish_reason == "length" for one in trajectories) / count,
        "rollout/tokens": sampled / count,
        "rollout/turns": sum(one.turns for one in trajectories) / count,
        "rollout/distinct": len({(one.task, *_texts(one)) for one in trajectories}) / count,
        "rollout/invalid": sum(one.score.status == "invalid" for one in trajectories) / count,
        "rollout/faults": (count - len(rewards)) / count,
        "sampling/entropy": surprise / sampled if sampled else 0.0,
    }


def loss_metrics(statistics: LossStatistics) -> dict[str, float]:
    """What the trained tokens were like."""
    known = {
        "loss/ratio": statistics.ratio,
        "loss/clip_low": statistics.clip_low,
        "loss/clip_high": statistics.clip_high,
        "loss/clip_delta": statistics.clip_delta,
        "loss/capped": statistics.capped,
        "sampling/logp_diff_mean": statistics.logp_diff_mean,
        "sampling/logp_diff_max": statistics.logp_diff_max,
    }
    return known if statistics.kl is None else known | {"loss/kl": statistics.kl}


def _texts(one: Trajectory) -> tuple[str, ...]:
    return tuple(step.content for step in one.steps if step.role == "assistant")


class MetricsFile:
    """JSON lines, one a step. ``keep``: lines up to that step stay, later ones (of an unfinished step) are cut off."""

    def __init__(self, path: Path, *, keep: int) -> None:
        self.path = path
        old = read(path) if path.exists() else []
        kept = [row for row in old if row["step"] <= keep]
        self.evaluated = {row["step"] for row in kept if "eval/reward" in row}
        replace_text(path, "".join(json.dumps(row) + "\n" for row in kept))

    def write(self, row: Mapping[str, float]) -> None:
        """Add a line.

        Raises:
            ValueError: a metric has no meaning here, or is not finite.
        """
        unknown = row.keys() - MEANINGS.keys()
        if unknown:
            raise ValueError(f"metric {min(unknown)!r} is not explained in MEANINGS")
        with naming(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, allow_nan=False) + "\n")
        if "eval/reward" in row:
            self.evaluated.add(row["step"])


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Errors of the disk name that file, and say what is next."""
    try:
        yield
    except OSError as error:
        text = f"{error.strerror}; when that is mended, --resume goes on from the last checkpoint"
        raise OSError(error.errno, text, str(path)) from error


def replace_text(path: Path, text: str) -> None:
    """Put the text in the file's place; a kill or a full disk leaves the old one."""
    partial = path.with_name(f"{path.name}.partial")
    with naming(path):
        partial.write_text(text, "utf-8")
        partial.replace(path)


def read(path: Path) -> list[dict[str, float]]:
    """The rows of a metrics file; half a last line is left out."""
    lines = path.read_text("utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]

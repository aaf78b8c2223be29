"""The metrics of a training step: what each one means, and the file that they go to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from weightgym.rollouts.trajectory import Trajectory

#: Every metric that a run writes, with its meaning. Fractions are from 0 to 1.
MEANINGS: Mapping[str, str] = {
    "step": "optimiser steps so far, this one included; 0 before training",
    "reward/mean": "mean reward of the step's rollouts that have one",
    "reward/std": "standard deviation of these rewards",
    "reward/max": "the best of them",
    "rollout/truncated": "fraction of completions that were cut at max_tokens",
    "rollout/tokens": "mean tokens of a completion",
    "rollout/invalid": "fraction of answers that can't be read (they get the floor)",
    "rollout/faults": "fraction without a reward, through our fault (error, timeout): not trained on",
    "group/zero_spread": "fraction of groups whose rewards are all equal: nothing to learn from",
    "loss": "the loss that was minimised",
    "loss/clip_low": "fraction of trained tokens without a gradient: ratio under the clip range, advantage negative",
    "loss/clip_high": "fraction of trained tokens without a gradient: ratio over the clip range, advantage positive",
    "loss/capped": "fraction of trained tokens whose weight the mismatch correction cut",
    "sampling/logp_diff_mean": "mean |log-probability of the trainer - of the sampler| of trained tokens, nats",
    "sampling/logp_diff_max": "the largest of them",
    "gradient/norm": "norm of the whole gradient before it is clipped",
    "seconds/rollout": "wall clock of generating and scoring",
    "seconds/train": "wall clock of the passes and the update",
    "eval/reward": "mean reward of the evaluation's rollouts, on tasks that are never trained on",
    "eval/invalid": "fraction of the evaluation's answers that can't be read",
}


def rollout_metrics(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """What the rollouts of a step were like."""
    count = len(trajectories)
    rewards = [one.score.reward for one in trajectories if one.score.reward is not None]
    mean = sum(rewards) / len(rewards) if rewards else 0.0
    spread = sum((reward - mean) ** 2 for reward in rewards) / len(rewards) if rewards else 0.0
    return {
        "reward/mean": mean,
        "reward/std": spread**0.5,
        "reward/max": max(rewards, default=0.0),
        "rollout/truncated": sum(one.finish_reason == "length" for one in trajectories) / count,
        "rollout/tokens": sum(one.sampled for one in trajectories) / count,
        "rollout/invalid": sum(one.score.status == "invalid" for one in trajectories) / count,
        "rollout/faults": (count - len(rewards)) / count,
    }


class MetricsFile:
    """JSON lines, one a step. ``keep``: lines up to that step stay, later ones (of an unfinished step) are cut off."""

    def __init__(self, path: Path, *, keep: int) -> None:
        self.path = path
        old = read(path) if path.exists() else []
        path.write_text("".join(json.dumps(row) + "\n" for row in old if row["step"] <= keep), "utf-8")

    def write(self, row: Mapping[str, float]) -> None:
        """Add a line.

        Raises:
            ValueError: a metric has no meaning here, or is not finite.
        """
        unknown = row.keys() - MEANINGS.keys()
        if unknown:
            raise ValueError(f"metric {min(unknown)!r} is not explained in MEANINGS")
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, allow_nan=False) + "\n")


def read(path: Path) -> list[dict[str, float]]:
    """The rows of a metrics file; half a last line is left out."""
    lines = path.read_text("utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]

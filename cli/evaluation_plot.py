"""Rewards by task as a picture. Needs matplotlib (extra ``plots``), which is imported on use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from weightgym.rollouts.evaluation import Evaluation

_BAR = 0.8


def plot_evaluations(picture: Path, sides: Sequence[Evaluation]) -> None:
    """Draw a bar a task and side, with its interval, as a PNG; a task without a reward has none.

    Raises:
        ImportError: matplotlib is not installed.
    """
    from matplotlib.figure import Figure

    keys = sorted({key for side in sides for key in side.tasks})
    figure = Figure(figsize=(7, 1.5 + 0.3 * len(keys) * len(sides)), dpi=120, layout="constrained")
    axes = figure.subplots()
    height = _BAR / len(sides)
    for number, side in enumerate(sides):
        shown = [(place, side.tasks[key].reward) for place, key in enumerate(keys) if key in side.tasks]
        bars = [(place + (number + 0.5) * height - _BAR / 2, reward) for place, reward in shown if reward is not None]
        means = [reward.mean for _, reward in bars]
        # percentiles of a skewed bootstrap may lie on one side of the mean
        below = [max(0.0, reward.mean - reward.low) for _, reward in bars]
        above = [max(0.0, reward.high - reward.mean) for _, reward in bars]
        places = [place for place, _ in bars]
        axes.barh(places, means, height, xerr=[below, above], capsize=2, label=side.policy)
    axes.set_yticks(range(len(keys)), [task for _, task in keys])
    axes.invert_yaxis()
    axes.set(xlabel=f"mean reward and 95 % interval ({sides[0].profile})")
    axes.grid(axis="x", alpha=0.3)
    figure.legend(loc="outside upper center")
    figure.savefig(picture, format="png")

"""Training curves as pictures. Needs matplotlib (extra ``plots``), which is imported on use."""

from __future__ import annotations

import json
from pathlib import Path


def plot_curve(curve: Path, picture: Path, *, title: str, cap: float | None = None) -> None:
    """Draw a solver's curve (``solve.Evaluation`` rows, JSON lines) as a PNG.

    Args:
        cap: drawn as a line, where the scores come near it.

    Raises:
        ImportError: matplotlib is not installed.
    """
    from matplotlib.figure import Figure

    rows = [json.loads(line) for line in curve.read_text("utf-8").splitlines()]
    generations = [row["generation"] for row in rows]
    figure = Figure(figsize=(7, 4), dpi=120, layout="constrained")
    axes = figure.subplots()
    for field, label, style in (
        ("score", "network", "-"),
        ("best", "best so far", "--"),
        ("population", "its population", ":"),
    ):
        axes.plot(generations, [row[field] for row in rows], style, label=label)
    if cap is not None and rows and max(row["best"] for row in rows) > cap / 4:
        axes.axhline(cap, color="grey", linewidth=0.8, label="cap")
    axes.set(xlabel="generation", ylabel="mean score of an episode", title=title)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(picture, format="png")


def plot_rewards(metrics: Path, picture: Path, *, title: str) -> None:
    """Draw a training run's rewards (``metrics.jsonl``) as a PNG: of each step, smoothed, and of evaluations.

    Raises:
        ImportError: matplotlib is not installed.
    """
    from matplotlib.figure import Figure

    from weightgym.trainers.metrics import read

    rows = read(metrics)
    steps = [row for row in rows if "reward/mean" in row]
    evaluations = [row for row in rows if "eval/reward" in row]
    figure = Figure(figsize=(7, 4), dpi=120, layout="constrained")
    axes = figure.subplots()
    rewards = [row["reward/mean"] for row in steps]
    axes.plot([row["step"] for row in steps], rewards, alpha=0.3, color="C0", label="training, each step")
    means = [sum(rewards[max(0, i - 9) : i + 1]) / min(i + 1, 10) for i in range(len(rewards))]
    axes.plot([row["step"] for row in steps], means, color="C0", label="training, mean of ten steps")
    if evaluations:
        places = [row["step"] for row in evaluations]
        axes.plot(places, [row["eval/reward"] for row in evaluations], "o-", color="C1", label="evaluation")
    axes.set(xlabel="step", ylabel="mean reward", title=title)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(picture, format="png")

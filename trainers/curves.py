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

"""Training curves as pictures. Needs matplotlib (extra ``plots``), which is imported on use."""

from __future__ import annotations

import io
import json
import math
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weightgym.trainers.metrics import read
from weightgym.trainers.report import sections
from weightgym.trainers.run_folder import Row, is_evaluation, series
from weightgym.trainers.timeline import Part

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Points of a line; more are not seen, and make pages heavy.
_POINTS = 600
#: Steps of a moving mean.
_SMOOTH = 10
_COLUMNS = 4
BOX_STYLE: Mapping[str, Any] = {
    "boxprops": {"facecolor": "#d5e3f5", "edgecolor": "#2b6cb0", "linewidth": 0.8},
    "medianprops": {"color": "#2b6cb0"},
    "whiskerprops": {"color": "#8aa9cc", "linewidth": 0.8},
    "capprops": {"color": "#8aa9cc", "linewidth": 0.8},
}


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
    axes.set(xlabel="generation", ylabel="mean score of an episode")
    axes.set_title(title, parse_math=False)
    axes.grid(alpha=0.3)
    axes.legend()
    _save(figure, picture)


def plot_rewards(metrics: Path, picture: Path, *, title: str) -> None:
    """Draw a training run's rewards (``metrics.jsonl``) as a PNG: of each step, smoothed, and of evaluations.

    Raises:
        ImportError: matplotlib is not installed.
    """
    from matplotlib.figure import Figure

    rows = read(metrics)
    figure = Figure(figsize=(7, 4), dpi=120, layout="constrained")
    axes = figure.subplots()
    steps, rewards = series([row for row in rows if not is_evaluation(row)], "reward/mean")
    axes.plot(steps, rewards, alpha=0.3, color="C0", label="training, each step")
    axes.plot(steps, _smooth(rewards), color="C0", label="training, mean of ten steps")
    places, scores = series(rows, "eval/reward")
    if places:
        axes.plot(places, scores, "o-", color="C1", label="evaluation")
    axes.set(xlabel="step", ylabel="mean reward")
    axes.set_title(title, parse_math=False)
    axes.grid(alpha=0.3)
    axes.legend()
    _save(figure, picture)


def plot_run(rows: list[Row], picture: Path, *, title: str) -> None:
    """Draw every metric of a run, each in a panel of its own, as one PNG. Without rows there is no panel.

    Raises:
        ImportError: matplotlib is not installed.
    """
    from matplotlib.figure import Figure

    names = [name for members in sections(name for row in rows for name in row).values() for name in members]
    lines = max(1, math.ceil(len(names) / _COLUMNS))
    figure = Figure(figsize=(3.2 * _COLUMNS, 2.1 * lines + 0.5), dpi=100, layout="constrained")
    figure.suptitle(title, parse_math=False)
    panels = figure.subplots(lines, _COLUMNS, squeeze=False)
    for axes, name in zip(panels.flat, names, strict=False):
        _panel(axes, *series(rows, name), dots=name.startswith("eval/"))
        axes.set_title(name, fontsize=9, loc="left", parse_math=False)
    for axes in list(panels.flat)[len(names) :]:
        axes.set_axis_off()
    _save(figure, picture)


def metric_svg(rows: list[Row], name: str) -> bytes:
    """One metric over the steps, as SVG. Raises ``ImportError`` without matplotlib."""
    figure, (axes,) = small(3.6, 2.0)
    _panel(axes, *series(rows, name), dots=name.startswith("eval/"))
    return svg(figure)


def rewards_svg(parts: Sequence[Part]) -> bytes:
    """The rewards of each part of a run as boxes (quartiles, median; whiskers to the extremes; a dot for the mean).
    Parts without a reward are left out; one has some.
    """
    import numpy

    figure, (axes,) = small(9.0, 2.8)
    boxes = []
    parts = [part for part in parts if part.rewards]
    for part in parts:
        low, first, median, third, high = numpy.quantile(part.rewards, [0, 0.25, 0.5, 0.75, 1])
        mean = float(numpy.mean(part.rewards))
        boxes.append({"whislo": low, "q1": first, "med": median, "q3": third, "whishi": high, "mean": mean})
    places = [(part.first + part.last) / 2 + 1 for part in parts]
    widths = [0.7 * (part.last - part.first + 1) for part in parts]
    axes.bxp(
        boxes,
        positions=places,
        widths=widths,
        showfliers=False,
        showmeans=True,
        manage_ticks=False,
        patch_artist=True,
        **BOX_STYLE,
        meanprops={"marker": "o", "markersize": 3, "markerfacecolor": "#c05621", "markeredgecolor": "#c05621"},
    )
    axes.set_xlabel("step", fontsize=8)
    axes.set_ylabel("reward", fontsize=8)
    return svg(figure)


def small(width: float, height: float, *, columns: int = 1) -> tuple[Figure, list[Axes]]:
    """An empty figure of so many inches with panels side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    panels = list(figure.subplots(1, columns, squeeze=False).flat)
    for axes in panels:
        axes.tick_params(labelsize=7)
    return figure, panels


def _panel(axes: Axes, steps: list[float], values: list[float], *, dots: bool) -> None:
    """A line of means over the line of each step; evaluations, of which there are few, as dots."""
    from matplotlib.ticker import MaxNLocator

    axes.grid(alpha=0.25)
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    axes.ticklabel_format(axis="y", scilimits=(-3, 4))
    axes.yaxis.get_offset_text().set_fontsize(7)
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    if dots or len(values) < 3:
        axes.plot(steps, values, "o-", color="C1", markersize=3.5, linewidth=1)
        return
    axes.plot(*_thin(steps, values), color="C0", alpha=0.3, linewidth=0.8)
    axes.plot(*_thin(steps, _smooth(values)), color="C0", linewidth=1.4)


def _smooth(values: Sequence[float]) -> list[float]:
    """Of each value the mean with up to nine before it."""
    return [sum(values[max(0, i - _SMOOTH + 1) : i + 1]) / min(i + 1, _SMOOTH) for i in range(len(values))]


def _thin(steps: Sequence[float], values: Sequence[float]) -> tuple[list[float], list[float]]:
    """At most 600 points: of each stretch its lowest and its highest, so that no spike is lost."""
    if len(values) <= _POINTS:
        return list(steps), list(values)
    size = math.ceil(2 * len(values) / _POINTS)
    kept: list[int] = []
    for begin in range(0, len(values), size):
        stretch = range(begin, min(begin + size, len(values)))
        kept += sorted({min(stretch, key=values.__getitem__), max(stretch, key=values.__getitem__)})
    return [steps[index] for index in kept], [values[index] for index in kept]


def _save(figure: Figure, picture: Path) -> None:
    """As PNG. Titles are folders' names, which may have characters that the font lacks."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(picture, format="png")


def svg(figure: Figure) -> bytes:
    """The same bytes for the same picture."""
    import matplotlib

    file = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "weightgym"}):
        figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()

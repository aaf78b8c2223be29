"""Pictures of scored answers. Needs matplotlib (extra ``plots``), which is imported on use.

Names are a file's: they are drawn as plain ASCII, cut.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weightgym.trainers.curves import BOX_STYLE, small, svg
from weightgym.trainers.reservoir import quartiles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Values are drawn up to this size.
_LARGEST = 1e12
_BINS = 40
_LABEL = 28


def component_svg(
    name: str, values: Sequence[float], stretches: Sequence[tuple[int, int, Sequence[float]]], over: str
) -> bytes | None:
    """How values are distributed: in all, and (where there are several) in stretches of first and last place.

    Returns:
        None where there is no value.
    """
    if not values:
        return None
    timed = [stretch for stretch in stretches if stretch[2]]
    figure, axes = small(9.0 if len(timed) > 1 else 4.0, 2.1, columns=2 if len(timed) > 1 else 1)
    drawn = _drawable(values)
    axes[0].hist(drawn, bins=_BINS, range=_range(drawn), color="#2b6cb0")
    axes[0].set_xlabel(_label(name), fontsize=8, parse_math=False)
    axes[0].set_ylabel("answers", fontsize=8)
    if len(timed) > 1:
        places = [(first + last) / 2 for first, last, _ in timed]
        widths = [0.7 * (last - first + 1) for first, last, _ in timed]
        _boxes(axes[1], [_drawable(part) for _, _, part in timed], positions=places, widths=widths)
        axes[1].set_xlabel(over, fontsize=8)
    return svg(figure)


def tasks_svg(tasks: Sequence[tuple[str, Sequence[float]]]) -> bytes:
    """The rewards of each task as a box, one at least a task; in their order, from the top."""
    figure, (axes,) = small(9.0, 0.5 + 0.24 * len(tasks))
    places = list(range(len(tasks), 0, -1))
    _boxes(axes, [_drawable(values) for _, values in tasks], positions=places, widths=0.6, orientation="horizontal")
    axes.set_yticks(places, [_label(name) for name, _ in tasks], parse_math=False)
    axes.set_xlabel("reward", fontsize=8)
    return svg(figure)


def lengths_svg(pairs: Sequence[tuple[int, float]], unit: str) -> bytes | None:
    """Reward over length, a dot an answer; None for fewer than three answers."""
    if len(pairs) < 3:
        return None
    figure, (axes,) = small(9.0, 2.6)
    lengths = [length for length, _ in pairs]
    axes.scatter(_drawable(lengths), _drawable([reward for _, reward in pairs]), s=6, alpha=0.4, color="#2b6cb0",
                 rasterized=True)  # fmt: skip
    if min(lengths) > 0 and max(lengths) > 30 * min(lengths):
        axes.set_xscale("log")
    axes.set_xlabel(f"length in {unit}", fontsize=8)
    axes.set_ylabel("reward", fontsize=8)
    return svg(figure)


def _boxes(axes: Axes, parts: Sequence[Sequence[float]], **where: Any) -> None:
    made = []
    for values in parts:
        low, first, median, third, high = quartiles(values)
        made.append({"whislo": low, "q1": first, "med": median, "q3": third, "whishi": high})
    axes.bxp(made, showfliers=False, manage_ticks=False, patch_artist=True, **BOX_STYLE, **where)


def _drawable(values: Sequence[float]) -> list[float]:
    return [min(max(float(value), -_LARGEST), _LARGEST) for value in values if math.isfinite(value)]


def _range(values: Sequence[float]) -> tuple[float, float]:
    """From the lowest to the highest, but wide enough for bins: values may be a bit apart."""
    low, high = min(values), max(values)
    least = max(1e-6, 1e-6 * max(abs(low), abs(high)))
    return (low, high) if high - low > least else (low - least, high + least)


def _label(name: str) -> str:
    text = ascii(name)[1:-1]
    return text if len(text) <= _LABEL else f"{text[: _LABEL - 3]}..."

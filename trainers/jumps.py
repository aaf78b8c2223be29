"""Suspicious jumps: the reward goes up while something that should follow it goes the wrong way.

At every place of a series, the mean of a window before is compared with that of the window after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy
    import numpy.typing

    Floats = numpy.typing.NDArray[numpy.float64]
    Flags = numpy.typing.NDArray[numpy.bool_]

#: Points of a window, fewer in short series; a series has two windows at least.
WINDOW = 10
_LEAST = 3
#: A change is real from so many of its standard errors on.
_ERRORS = 4.0


@dataclass(frozen=True)
class Series:
    """What should follow the reward: the values, the direction that is wrong, and how large a change must be.

    ``least`` is absolute; ``factor`` is of the value before; ``sudden`` is of the change that the series' own
    slope makes: what grows all the time, as the KL does, is no jump.
    """

    values: Sequence[float]
    wrong: Literal["up", "down"]
    least: float = 0.0
    factor: float = 0.0
    sudden: float = 0.0


@dataclass(frozen=True)
class Jump:
    """Where the reward rose most among the places at which the other one went wrong."""

    name: str
    place: float
    reward: tuple[float, float]  #: before and after
    other: tuple[float, float]


def jumps(places: Sequence[float], rewards: Sequence[float], others: Mapping[str, Series]) -> list[Jump]:
    """One at most for each of the others, which have a value for each place; none for a short series."""
    import numpy

    size = min(WINDOW, len(places) // 2)
    if size < _LEAST:
        return []
    with numpy.errstate(over="ignore"):  # at the ends of floats a change may be infinite
        return _found(places, rewards, others, size)


def _found(places: Sequence[float], rewards: Sequence[float], others: Mapping[str, Series], size: int) -> list[Jump]:
    import numpy

    before, after, real = _changes(rewards, size)
    rises = numpy.where(real & (after > before), after / 2 - before / 2, 0.0)
    found = []
    for name, series in others.items():
        old, new, moved = _changes(series.values, size)
        change = new - old if series.wrong == "up" else old - new
        slope = abs(float(numpy.median(numpy.diff(numpy.asarray(series.values, numpy.float64) / size)))) * size
        least = numpy.maximum(max(series.least, series.sudden * slope * size), series.factor * numpy.abs(old))
        wrong = moved & (change > least)
        rise = numpy.where(wrong, rises, 0.0)
        at = int(rise.argmax())
        if rise[at] > 0:
            reward, other = (float(before[at]), float(after[at])), (float(old[at]), float(new[at]))
            found.append(Jump(name, places[at + size], reward, other))
    return found


def _changes(values: Sequence[float], size: int) -> tuple[Floats, Floats, Flags]:
    """Of each place the means before and after, and whether they differ by more than noise."""
    import numpy

    array = numpy.asarray(values, numpy.float64)
    scale = max(float(numpy.abs(array).max()), 1e-300)  # so that no square is infinite
    windows = numpy.lib.stride_tricks.sliding_window_view(array / scale, size)
    means, errors = windows.mean(-1), windows.var(-1, ddof=1) / size
    before, after = means[:-size], means[size:]
    real = numpy.abs(after - before) > _ERRORS * numpy.sqrt(errors[:-size] + errors[size:]) + 1e-12
    return before * scale, after * scale, real

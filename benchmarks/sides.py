"""What the benchmarks share: sides timed in turn, so that both see the same machine, and medians of their ratios."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

#: Steps that a slow side plays in a round: enough for a steady figure.
SLOW_STEPS = 2000


def slow_side(play: Callable[[int], tuple[float, int]], first: int, steps: int = SLOW_STEPS) -> tuple[float, int]:
    """CPU microseconds a step over ``steps`` steps or more, and the next episode. ``play(i)`` is score and length."""
    played, index = 0, first
    started = time.process_time()
    while played < steps:
        played += play(index % 1000)[1]
        index += 1
    return (time.process_time() - started) * 1e6 / played, index


def medians(rows: Sequence[Sequence[float]]) -> list[float]:
    """The median of every column."""
    return [statistics.median(column) for column in zip(*rows, strict=True)]

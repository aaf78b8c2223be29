"""How ``weightgym train`` shows a run that is going: a live view in a terminal, one line a step elsewhere."""

from __future__ import annotations

import contextlib
import math
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

#: Rows of the table, those that have been seen.
_SHOWN = (
    "reward/mean",
    "reward/max",
    "rollout/invalid",
    "rollout/truncated",
    "rollout/tokens",
    "rollout/distinct",
    "rollout/faults",
    "rollout/stale",
    "group/zero_spread",
    "loss/kl",
    "sampling/logp_diff_mean",
    "sampling/entropy",
    "optimiser/norm",
    "speed/tokens",
    "seconds/rollout",
    "seconds/train",
)
#: Values of a trend: one character each.
_TREND = 32
_BLOCKS, _ASCII_BLOCKS = "▁▂▃▄▅▆▇█", "_.-:=+*#"


def _quietly(show: Callable[..., None], *args: Any, **options: Any) -> None:
    """Show something, if that can be done: the terminal may be gone, or lack a character."""
    with contextlib.suppress(Exception):  # metrics.jsonl has it all; this is no reason to lose a run
        show(*args, **options)


class _QuietLive(Live):
    """Its thread draws, too."""

    def refresh(self) -> None:
        _quietly(super().refresh)


class LiveView:
    """The view of one run; a context manager. What goes wrong with the terminal never reaches the training.

    Args:
        total: steps of the run. done: of them before this start.
        bounds: metric → the limit that the run is stopped at.
        console: where to write. Default: stderr.
    """

    def __init__(
        self, total: int, *, done: int = 0, bounds: Mapping[str, float] | None = None, console: Console | None = None
    ) -> None:
        self._console = console or Console(stderr=True)
        self._total = total
        self._bounds = dict(bounds or {})
        self._history: dict[str, deque[float]] = {}
        self._last: Mapping[str, float] = {}
        self._evaluation = "none yet"
        self._progress = Progress(
            TextColumn("step"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
        )
        self._bar = self._progress.add_task("step", total=total, completed=done)
        self._live = _QuietLive(self._render(), console=self._console, refresh_per_second=4) if self._is_live else None

    @property
    def _is_live(self) -> bool:
        return self._console.is_terminal and not self._console.is_dumb_terminal

    def __enter__(self) -> LiveView:
        if self._live is not None:
            _quietly(self._live.start)
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            _quietly(self._live.stop)

    def update(self, metrics: Mapping[str, float]) -> None:
        """Show a step, or an evaluation. A metric that is missing or not finite is shown as "–"."""
        if "eval/reward" in metrics:
            self._evaluation = line(metrics).replace("evaluation: ", "")
        else:
            self._last = {name: _finite(value) for name, value in metrics.items()}
            for name in _SHOWN:
                if name in metrics or name in self._history:
                    self._history.setdefault(name, deque(maxlen=_TREND)).append(self._last.get(name, math.nan))
        step = _finite(metrics.get("step"))
        if 0 <= step <= self._total:
            self._progress.update(self._bar, completed=step)
        if self._live is None:
            self.note(line(metrics))
        else:
            _quietly(self._live.update, self._render())

    def note(self, text: str) -> None:
        """Print a line above the table, to stay."""
        _quietly(self._console.print, Text(text), highlight=False, soft_wrap=True)

    def _render(self) -> RenderableType:
        plain = self._console.options.ascii_only
        rows = Table(box=None, pad_edge=False, header_style="bold")
        rows.add_column("metric")
        rows.add_column("last", justify="right", min_width=9)
        rows.add_column("trend", no_wrap=True)
        for name, values in self._history.items():
            rows.add_row(name, _number(values[-1], plain), sparkline(values, _ASCII_BLOCKS if plain else _BLOCKS))
        told = Text.assemble(("evaluation ", "bold"), self._evaluation, "\n", ("health     ", "bold"), self._health())
        return Group(self._progress, rows, told) if self._history else Group(self._progress, told)

    def _health(self) -> Text:
        """How near the limits are."""
        near = [
            f"{name} {self._last[name]:.2g} of {limit:g}"
            for name, limit in self._bounds.items()
            if limit != 1 and self._last.get(name, 0.0) >= limit / 2
        ]
        if near:
            return Text(f"near a limit: {', '.join(near)}", style="yellow")
        return Text("within the limits" if self._last else "no step yet")


def sparkline(values: deque[float], blocks: str = _BLOCKS) -> str:
    """A character a value, from the lowest to the highest of them; a gap where there is none."""
    known = [value for value in values if not math.isnan(value)]
    low, high = min(known, default=0.0), max(known, default=0.0)

    def block(value: float) -> str:
        if math.isnan(value):
            return " "
        share = (value / 2 - low / 2) / (high / 2 - low / 2) if high > low else 0.0  # halves: no overflow
        return blocks[min(len(blocks) - 1, int(share * len(blocks)))]

    return "".join(map(block, values))


def line(metrics: Mapping[str, float]) -> str:
    """A step, or an evaluation, in one line."""

    def shown(name: str, style: str) -> str:
        value = _finite(metrics.get(name))
        return "–" if math.isnan(value) else format(value, style)

    step = f"step {shown('step', '.0f')}:"
    if "eval/reward" in metrics:
        return (
            f"{step} evaluation: reward {shown('eval/reward', '.4f')}, {shown('eval/invalid', '.0%')} invalid, "
            f"{shown('eval/faults', '.0%')} faults"
        )
    return (
        f"{step} reward {shown('reward/mean', '.4f')} (best {shown('reward/max', '.3f')}), "
        f"{shown('rollout/invalid', '.0%')} invalid, {shown('rollout/truncated', '.0%')} cut, "
        f"{shown('rollout/faults', '.0%')} faults, "
        f"{shown('group/zero_spread', '.0%')} of groups without spread, "
        f"log-probability gap {shown('sampling/logp_diff_mean', '.1e')}, "
        f"{shown('speed/tokens', '.0f')} tokens a second, "
        f"{shown('seconds/rollout', '.1f')} + {shown('seconds/train', '.1f')} s"
    )


def _finite(value: object) -> float:
    """The value, or NaN where it is no finite number."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan


def _number(value: float, plain: bool) -> str:
    if math.isnan(value):
        return "-" if plain else "–"
    return f"{value:.4g}" if abs(value) < 10_000 else f"{value:.2e}"

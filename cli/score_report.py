"""What a scoring run tells on stderr: progress, a table by task, one line at the end."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from weightgym.cli.console import print_table, printable, table

_STATUSES = ("ok", "invalid", "error", "timeout")
#: Seconds between progress lines where there is no terminal.
_PLAIN_PERIOD = 10.0


@dataclass
class _Line:
    statuses: Counter[str] = field(default_factory=Counter)
    total: float = 0.0


class Tally:
    """Counts and rewards, by task and in all."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, str], _Line] = {}
        self.statuses: Counter[str] = Counter()

    def add(self, key: tuple[str, str], status: str, reward: float | None) -> None:
        """Count one score of the task ``(env, id)``."""
        line = self._lines.setdefault(key, _Line())
        line.statuses[status] += 1
        line.total += reward or 0.0
        self.statuses[status] += 1

    @property
    def faults(self) -> int:
        """Rows without a reward."""
        return self.statuses["error"] + self.statuses["timeout"]

    def print(self) -> None:
        """The table by task; the mean is over the rows that have a reward."""
        numbers = ("rows", "mean reward", *_STATUSES)
        one_env = len({env for env, _ in self._lines}) == 1
        rows = table("task" if one_env else "env and task", *numbers, right=numbers)
        for (env, task), line in sorted(self._lines.items()):
            graded = line.statuses["ok"] + line.statuses["invalid"]
            mean = f"{line.total / graded:.4f}" if graded else "—"
            counts = [str(line.statuses[status]) for status in _STATUSES]
            rows.add_row(printable(task if one_env else f"{env} {task}"), str(line.statuses.total()), mean, *counts)
        print_table(rows, stderr=True)


class ScoringProgress:
    """A bar on a terminal, a line every ten seconds elsewhere."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._counts: Counter[str] = Counter()
        self._started = self._told = time.monotonic()
        shown = Console(stderr=True)
        self._bar = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False),
            TimeRemainingColumn(),
            console=shown,
            disable=not shown.is_terminal,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._plain = not shown.is_terminal
        self._task = self._bar.add_task("", total=total)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def update(self, status: str) -> None:
        """One more row has its score."""
        self._counts[status] += 1
        now = time.monotonic()
        rate = self._counts.total() / max(now - self._started, 1e-9)
        counts = ", ".join(f"{self._counts[name]} {name}" for name in _STATUSES if self._counts[name])
        self._bar.update(self._task, advance=1, description=f"{rate:.1f} rows/s: {counts}")
        if self._plain and now - self._told >= _PLAIN_PERIOD:
            self._told = now
            click.echo(f"{self._counts.total()} of {self._total} rows, {rate:.1f} rows/s: {counts}", err=True)

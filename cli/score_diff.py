"""How new rewards differ from those that a file had recorded, and which recorded totals are partial."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass

import click

from weightgym.cli.console import print_table, printable, table
from weightgym.cli.score_rows import Row
from weightgym.rollouts.readers.recorded import same

#: Rows shown one by one, those that differ most.
_SHOWN = 10


@dataclass
class _Line:
    rows: int = 0
    changed: int = 0
    recorded: float = 0.0
    new: float = 0.0
    most: float = 0.0


class Differences:
    """Counts and sums by task, and the rows that differ most."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, str], _Line] = {}
        self._worst: list[tuple[float, int, str, float, float]] = []
        self._left_out: Counter[str] = Counter()
        self._partial: Counter[str] = Counter()
        self._partial_rows = 0

    @property
    def changed(self) -> int:
        """Rows whose new reward is another than the recorded one."""
        return sum(line.changed for line in self._lines.values())

    def add(self, row: Row, reward: float | None, profile: str) -> None:
        """Count one row and its new score."""
        old = row.recorded
        if old is None:
            self._left_out["nothing recorded"] += 1
            return
        if old.partial:
            self._partial_rows += 1
            self._partial.update(name for name, one in old.others.items() if one.value is not None and one.weight != 0)
        why = old.why_not(reward, profile)
        if why or reward is None or old.reward is None:
            self._left_out[why] += 1
            return
        line = self._lines.setdefault(row.task.key, _Line())
        apart = abs(reward - old.reward)
        line.rows += 1
        line.recorded += old.reward
        line.new += reward
        if same(reward, old.reward):
            return
        line.changed += 1
        line.most = max(line.most, apart)
        heapq.heappush(self._worst, (apart, -row.line, " ".join(row.task.key), old.reward, reward))
        if len(self._worst) > _SHOWN:
            heapq.heappop(self._worst)

    def print(self, *, all: bool) -> None:
        """The tables; without ``all``, only that totals are partial."""
        if self._partial_rows:
            names = ", ".join(f"{printable(name)} ({count})" for name, count in sorted(self._partial.items()))
            click.echo(
                f"the recorded totals of {self._partial_rows} rows have parts that are kept, not recomputed: {names}",
                err=True,
            )
        if not all:
            return
        self._print_tasks()
        self._print_worst()
        for why, count in self._left_out.most_common():
            click.echo(f"not compared: {count} rows ({printable(why)})", err=True)

    def _print_tasks(self) -> None:
        numbers = ("compared", "differ", "recorded sum", "new sum", "difference", "largest")
        rows = table("env and task", *numbers, right=numbers)
        for (env, task), line in sorted(self._lines.items()):
            rows.add_row(printable(f"{env} {task}"), *_cells(line))
        if len(self._lines) > 1:
            rows.add_row("all", *_cells(self._sum()))
        if self._lines:
            print_table(rows, stderr=True)

    def _sum(self) -> _Line:
        lines = self._lines.values()
        return _Line(
            sum(line.rows for line in lines), self.changed, sum(line.recorded for line in lines),
            sum(line.new for line in lines), max(line.most for line in lines),
        )  # fmt: skip

    def _print_worst(self) -> None:
        numbers = ("line", "recorded", "new", "difference")
        rows = table(*numbers, "env and task", right=numbers)
        for _, line, task, old, new in sorted(self._worst, reverse=True):
            rows.add_row(str(-line), f"{old:.9g}", f"{new:.9g}", f"{new - old:+.3g}", printable(task))
        if self._worst:
            print_table(rows, stderr=True)


def _cells(line: _Line) -> list[str]:
    return [
        str(line.rows), str(line.changed), f"{line.recorded:.6g}", f"{line.new:.6g}",
        f"{line.new - line.recorded:+.3g}", f"{line.most:.3g}",
    ]  # fmt: skip

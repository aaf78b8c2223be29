"""``weightgym inspect --rescore``: the determinism check, with a progress bar."""

from __future__ import annotations

from dataclasses import dataclass

import click
from rich.console import Console
from rich.progress import Progress

from weightgym.cli.console import print_table, printable, table
from weightgym.rewards.machine import cores
from weightgym.trainers.rescore import Different, Rescored, chosen, rescore
from weightgym.trainers.scored_file import ScoredFile

#: Answers that are told; the page and --json have more.
_TOLD = 10


@dataclass(frozen=True)
class Check:
    """Scores some answers of a file again."""

    count: int
    workers: int | None

    def __call__(self, file: ScoredFile) -> Rescored:
        """Raises ``GraderError`` where a scorer is not there."""
        records = chosen(file, self.count)
        shown = Console(stderr=True)
        with Progress(console=shown, disable=not shown.is_terminal, transient=True) as bar:
            task = bar.add_task("scoring again", total=len(records))
            return rescore(records, workers=self.workers or cores(), done=lambda: bar.advance(task))


def print_rescored(rescored: Rescored) -> None:
    """Print what came of it."""
    click.echo(f"\nscored again: {rescored.same} of {rescored.count} answers got the same score, bit for bit")
    for what, rows in (("another score", rescored.different), ("could not be scored again", rescored.impossible)):
        if rows:
            _print(what, rows)


def _print(what: str, rows: list[Different]) -> None:
    shown = table("id", "line", what, right=("line",))
    for one in rows[:_TOLD]:
        shown.add_row(printable(one.id), str(one.line), "\n".join(map(printable, one.what)))
    print_table(shown)
    if len(rows) > _TOLD:
        click.echo(f"and {len(rows) - _TOLD} more")

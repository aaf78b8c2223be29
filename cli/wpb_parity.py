"""``weightgym wpb parity``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weightgym.cli.snapshot_options import snapshot_options
from weightgym.cli.unsafe_option import unsafe_option

if TYPE_CHECKING:
    from weightgym.cli.score_rows import Row
    from weightgym.rewards.contracts import Score


@click.command(epilog="Example: weightgym wpb parity answers.jsonl --snapshot wpb-data --episodes 100")
@click.argument("answers", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--episodes", type=click.IntRange(1, 1000), default=1000, show_default=True, help="Only the first N seeds."
)
@click.option("--workers", type=click.IntRange(min=1), help="Processes to score in.  [default: the cores]")
@snapshot_options
@unsafe_option
def parity(answers: Path, episodes: int, workers: int | None) -> None:
    """Score ANSWERS (rows as `weightgym score` takes them) twice, by our scorer and by the published one.

    Every row whose status, mean score or mean length differs is printed. The two round differently, so that about one
    action in three million may differ: means agree nearly always. Exit code: 0 if all rows agree.
    """
    from rich.console import Console
    from rich.progress import track

    from weightgym.cli.console import print_table, table
    from weightgym.rewards.batch import ScoreItem, score_batch
    from weightgym.rewards.machine import cores
    from weightgym.rewards.weight_program.snapshot import layout
    from weightgym.rewards.weight_program.snapshot.process import require_sandbox

    if layout.current() is None:
        raise click.UsageError("parity compares with a snapshot's scorer: give --snapshot DIR")
    require_sandbox()
    rows = {row.line: row for row in _rows(answers)}
    if not rows:
        raise click.ClickException(f"{answers} has no rows to compare")
    scores: dict[tuple[str, int], Score] = {}
    suffix = "" if episodes == 1000 else f"-e{episodes}"
    for profile in ("wpb-v1", "wpb-published"):
        items = (ScoreItem(str(line), row.task, row.completion) for line, row in rows.items())
        results = score_batch(
            items,
            scorer="weightgym.rewards.weight_program.scorer:score",
            profile=profile + suffix,
            workers=workers or cores(),
        )
        for key, score in track(results, profile, total=len(rows), console=Console(stderr=True), transient=True):
            scores[profile, int(key)] = score
    shown = table("line", "task", "scorer", "status", "mean score", "mean length", "reward", right=("line",))
    differing = 0
    for line, row in rows.items():
        ours, theirs = scores["wpb-v1", line], scores["wpb-published", line]
        if _verdict(ours) == _verdict(theirs) and ours.reward is not None:
            continue
        differing += 1
        for name, score in (("ours", ours), ("published", theirs)):
            cells = [_number(score.metrics.get(metric)) for metric in ("raw_score", "mean_length")]
            shown.add_row(
                str(line), row.task.id, name, f"{score.status} {score.reason}"[:90], *cells, _number(score.reward)
            )
    if differing:
        print_table(shown)
    click.echo(f"{len(rows) - differing} of {len(rows)} rows agree over {episodes} episodes")
    if differing:
        raise click.exceptions.Exit(1)


def _rows(answers: Path) -> Iterator[Row]:
    from weightgym.cli.score_rows import BadRow, parse_row, read_lines

    with answers.open("rb") as file:
        for number, raw in read_lines(file):
            try:
                row = parse_row(number, raw)
            except BadRow as error:
                raise click.ClickException(f"{answers}:{number}: {error}") from error
            if row.task.env != "weight-program" or row.task.data["source"] not in ("original", "synth"):
                raise click.ClickException(f"{answers}:{number}: {row.task.id} is not a task of the published dataset")
            yield row


def _verdict(score: Score) -> tuple[str, float | None, float | None]:
    return score.status, score.metrics.get("raw_score"), score.metrics.get("mean_length")


def _number(value: float | None) -> str:
    return "—" if value is None else f"{value:.10g}"

"""``weightgym wsp score``."""

from __future__ import annotations

from pathlib import Path

import click

from weightgym.cli.score_file import FileOptions, score_file
from weightgym.rewards.machine import cores

_EPILOG = """\b
Examples:
  weightgym wsp score conversations.jsonl
  weightgym wsp score conversations.jsonl -o scored.jsonl --resume
"""


@click.command(epilog=_EPILOG)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-o", "--out", type=click.Path(dir_okay=False, path_type=Path), help="Default: FILE with .scored.jsonl.")
@click.option("--workers", type=click.IntRange(min=1), help="Processes to score in.  [default: the cores]")
@click.option("--resume", is_flag=True, help="Go on with OUT after an interruption.")
@click.option("--force", is_flag=True, help="Replace OUT if it exists.")
def score(file: Path, out: Path | None, workers: int | None, resume: bool, force: bool) -> None:
    """Score the conversations in FILE by playing them again, and print the overall result.

    A row is a JSON object on one line: {"env": "wsp-bench", "task": ID, "completion": MESSAGES}, as of `weightgym
    score`, which writes the same file. Tool replies in it are not believed: the model's calls are run again.

    Exit code: 0 if every row got a reward, 1 if some did not, 2 if the command was wrong.
    """
    from weightgym.cli.wsp_report import print_results
    from weightgym.cli.wsp_results import read_results

    if resume and force:
        raise click.UsageError("--resume and --force exclude each other: go on with OUT, or replace it")
    target = out or Path(str(file).removesuffix(".jsonl") + ".scored.jsonl")
    with file.open("rb") as rows:
        good = score_file(rows, str(file), FileOptions(target, None, workers or cores(), None, resume, force))
    if target.exists():  # there is none without a row
        print_results(read_results([target]))
    if not good:
        raise click.exceptions.Exit(1)

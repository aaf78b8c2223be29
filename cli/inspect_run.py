"""``weightgym inspect RUN``: a training run's folder."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from weightgym.cli.console import echo_json
from weightgym.cli.inspect_page import write_if_possible
from weightgym.cli.inspect_rescore import Check
from weightgym.cli.inspect_summary import print_summary
from weightgym.trainers.report import make_report, summary
from weightgym.trainers.report_page import write_page
from weightgym.trainers.rescore import Rescored
from weightgym.trainers.run_folder import read_run


def inspect_run(
    folder: Path, output: Path | None, check: Check | None, tokenizer: str, *, as_json: bool
) -> Rescored | None:
    """Print what a run is like and write its page; what came of scoring again, where it was asked for.

    Raises:
        RunError, StoreError: the folder is no run, or one of its files is broken. GraderError: a scorer is not there.
    """
    with Console(stderr=True).status("reading the rollouts"):
        report = make_report(read_run(folder))
    if check is not None:
        report = report.checked(check)
    page = output or folder / "report.html"
    picture = page.with_name("curves.png")
    written = write_if_possible(
        lambda: write_page(report, page, picture, tokenizer=tokenizer), wanted=output is not None
    )
    if as_json:
        echo_json(summary(report) | {"page": str(page) if written else None})
        return report.rescored
    print_summary(report)
    if written:
        click.echo(f"\n{page}: curves, rewards and samples; {picture}: the curves alone")
    return report.rescored

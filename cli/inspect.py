"""``weightgym inspect``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from weightgym.trainers.report import Report

_EPILOG = """\b
Examples:
  weightgym inspect runs/quickstart
  weightgym inspect runs/quickstart -o /tmp/quickstart.html
  weightgym inspect runs/quickstart --json | jq .reward
  weightgym inspect --metrics
"""


@click.command(epilog=_EPILOG)
@click.argument("run", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The page; curves.png comes beside it.  [default: RUN/report.html]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON object.")
@click.option("--metrics", is_flag=True, help="List every metric of training with its meaning.")
def inspect(run: Path | None, output: Path | None, as_json: bool, metrics: bool) -> None:
    """Look at RUN, the folder of a training run; it may still be going.

    Prints a summary, what is suspicious and where to look next; writes report.html, one page that needs no network
    (curves, rewards, why answers are invalid, samples with their exact text), and curves.png. Both need the extra
    `plots`; the summary does not.
    """
    if metrics:
        _list_metrics()
        return
    if run is None:
        raise click.UsageError("missing the run's folder: weightgym inspect RUN")
    from rich.console import Console

    from weightgym.cli.console import echo_json
    from weightgym.cli.inspect_summary import print_summary
    from weightgym.rollouts.store import StoreError
    from weightgym.trainers.report import make_report, summary
    from weightgym.trainers.run_folder import RunError, read_run

    try:
        with Console(stderr=True).status("reading the rollouts"):
            report = make_report(read_run(run))
    except (RunError, StoreError) as error:
        raise click.ClickException(str(error)) from error
    page = output or run / "report.html"
    written = _write_page(report, page, wanted=output is not None)
    if as_json:
        echo_json(summary(report) | {"page": str(page) if written else None})
        return
    print_summary(report)
    if written:
        click.echo(f"\n{page}: curves, rewards and samples; {page.with_name('curves.png')}: the curves alone")


def _write_page(report: Report, page: Path, *, wanted: bool) -> bool:
    """Whether it could be written; that it could not is an error only if it was asked for by name."""
    from weightgym.trainers.report_page import write_page

    try:
        write_page(report, page, page.with_name("curves.png"))
    except ImportError as error:
        problem = f"no page without {error.name}: pip install 'weightgym[plots]'"
        if wanted:
            raise click.ClickException(problem) from error
        click.echo(problem, err=True)
        return False
    return True


def _list_metrics() -> None:
    from weightgym.cli.console import print_table, table
    from weightgym.trainers.metrics import MEANINGS
    from weightgym.trainers.report import sections

    rows = table("section", "metric", "meaning")
    for title, names in sections(MEANINGS).items():
        for index, name in enumerate(names):
            rows.add_row("" if index else title, name, MEANINGS[name])
    print_table(rows)

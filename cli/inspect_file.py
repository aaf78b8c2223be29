"""``weightgym inspect FILE``: rollouts, or rows that ``weightgym score`` wrote."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from weightgym.cli.console import echo_json, print_table, printable, table
from weightgym.cli.inspect_page import write_if_possible
from weightgym.cli.inspect_rescore import Check, print_rescored
from weightgym.cli.inspect_summary import print_findings, print_reasons
from weightgym.trainers.file_report import FileReport, file_report, file_summary, write_file_page
from weightgym.trainers.part_summary import PartSummary
from weightgym.trainers.rescore import Rescored
from weightgym.trainers.reservoir import quartiles
from weightgym.trainers.scored_file import ScoredFile

#: Rows of tables in the terminal; the page has more.
_COMPONENTS, _PARTS = 12, 4


def inspect_file(
    file: ScoredFile, output: Path | None, check: Check | None, tokenizer: str, *, as_json: bool
) -> Rescored | None:
    """Print what a file is like and write its page; what came of scoring again, where it was asked for.

    Raises:
        click.ClickException: no line is a scored answer. GraderError: a scorer is not there.
    """
    page = output or file.path.with_name(file.path.name.removesuffix(".jsonl") + ".report.html")
    try:
        with Console(stderr=True).status("reading the answers"):
            report = file_report(file)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    if check is not None:
        report = report.checked(check)
    written = write_if_possible(lambda: write_file_page(report, page, tokenizer=tokenizer), wanted=output is not None)
    if as_json:
        echo_json(file_summary(report) | {"page": str(page) if written else None})
        return report.rescored
    _print(report)
    if written:
        click.echo(f"\n{page}: rewards, groups, duplicates and answers")
    return report.rescored


def _print(report: FileReport) -> None:
    rollouts = report.rollouts
    told = ", ".join(f"{count} {status}" for status, count in sorted(rollouts.statuses.items()))
    click.echo(f"{printable(str(report.file.path))}: {rollouts.count} answers: {told}")
    for _, part in sorted(rollouts.parts.items())[:_PARTS]:
        _print_part(part)
    groups, same = rollouts.groups, rollouts.duplicates
    what = "groups" if groups.named else "tasks"
    click.echo(f"\n{groups.count} {what} with several rewards, {groups.flat} of them without spread")
    click.echo(f"{same.answers - same.distinct} answers were given before to the same task")
    print_reasons(rollouts, last=False)
    if report.rescored is not None:
        print_rescored(report.rescored)
    print_findings(report.findings)


def _print_part(part: PartSummary) -> None:
    profile = f", profile {printable(part.profile)}" if part.profile else ""
    correlation = "" if part.correlation is None else f"; rank correlation of length and reward {part.correlation:.2f}"
    click.echo(f"\n{printable(part.env)}{profile}: {part.count} answers to {len(part.tasks)} tasks{correlation}")
    numbers = ("mean", "lowest", "1st quartile", "median", "3rd quartile", "highest")
    rows = table("", *numbers, right=numbers)
    named = [("reward", part.mean.value, part.rewards.values)]
    named += [(name, part.means[name].value, values.values) for name, values in part.components.items()]
    for name, mean, values in named[: _COMPONENTS + 1]:
        if values:
            rows.add_row(printable(name), *(f"{value:.4g}" for value in (mean, *quartiles(values))))
    print_table(rows)

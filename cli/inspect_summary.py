"""What ``weightgym inspect`` prints of a run."""

from __future__ import annotations

import click
from rich.table import Table

from weightgym.cli.console import print_table, printable, table
from weightgym.cli.inspect_rescore import print_rescored
from weightgym.trainers.findings import Finding, trend
from weightgym.trainers.report import Report, brief
from weightgym.trainers.rollout_summary import RolloutSummary
from weightgym.trainers.run_folder import Run

#: Characters of a fault's name, and of its reason.
_LONGEST = 300
#: Reasons of invalid answers that are shown; the page has them all.
_REASONS = 5


def print_summary(report: Report) -> None:
    """Print it; texts out of files have their control characters escaped."""
    run = report.run
    planned = f" of {run.planned}" if run.planned else ""
    click.echo(f"{printable(str(run.folder))}: {run.done}{planned} steps\n")
    print_table(_configuration(run))
    for made in (_rewards(run), _limits(report), _events(run)):
        if made.row_count:
            click.echo()
            print_table(made)
    if report.rollouts is not None:
        _print_rollouts(report.rollouts)
    if report.rescored is not None:
        print_rescored(report.rescored)
    print_findings(report.findings)


def _configuration(run: Run) -> Table:
    rows = table("field", "value", header=False)
    for name, value in brief(run.config).items():
        rows.add_row(printable(name), printable(value))
    return rows


def _rewards(run: Run) -> Table:
    rows = table("", "first", "last", "best", "", right=("first", "last", "best"))
    reward = trend(run, "reward/mean")
    if reward is not None:
        told = f"means of {reward.steps} steps; best at step {reward.best_step}"
        rows.add_row("training reward", _number(reward.first), _number(reward.last), _number(reward.best), told)
    if run.evaluations:
        for name in ("eval/reward", "eval/invalid"):
            values = [row[name] for row in run.evaluations if name in row]
            if not values:
                continue
            best = max(values) if name == "eval/reward" else min(values)
            told = f"steps {run.evaluations[0]['step']:.0f} to {run.evaluations[-1]['step']:.0f}"
            rows.add_row(name, _number(values[0]), _number(values[-1]), _number(best), told)
    return rows


def _limits(report: Report) -> Table:
    rows = table("limit", "allowed", "worst", "at step", "", right=("allowed", "worst", "at step"))
    for used in report.limits:
        name = printable(used.limit)
        near = "near" if used.near else ""
        rows.add_row(f"limits.{name}", _number(used.value), _number(used.worst), str(used.step), near)
    return rows


def _events(run: Run) -> Table:
    rows = table("time", "event", "step", "", right=("step",))
    for event in run.events:
        rows.add_row(event.time.isoformat(" "), event.kind, str(event.step), printable(event.text))
    return rows


def _print_rollouts(rollouts: RolloutSummary) -> None:
    told = ", ".join(f"{count} {status}" for status, count in sorted(rollouts.statuses.items()))
    click.echo(f"\n{rollouts.count} rollouts{': ' if told else ''}{told}; {rollouts.truncated} cut at max_tokens")
    print_reasons(rollouts, last=True)


def print_reasons(rollouts: RolloutSummary, *, last: bool) -> None:
    """Print why answers are invalid (``last``: how many of them in the last steps, too), and why one has no reward."""
    for kinds in rollouts.samples.values():
        if fault := kinds.get("fault"):
            click.echo(f"no reward: {printable(fault.id)[:_LONGEST]}: {printable(fault.score.reason)[:_LONGEST]}")
    if not rollouts.reasons:
        return
    columns = ("answers", "last steps") if last else ("answers",)
    rows = table("why invalid", *columns, "example", right=columns)
    for reason in rollouts.reasons[:_REASONS]:
        counts = (str(reason.count), str(reason.last)) if last else (str(reason.count),)
        rows.add_row(printable(reason.code), *counts, printable(reason.example))
    print_table(rows)


def print_findings(findings: list[Finding]) -> None:
    """Print what is worth a look."""
    click.echo()
    for finding in findings:
        click.echo(f"{finding.level}: {printable(finding.text)}\n  look at: {printable(finding.look)}")
    if not findings:
        click.echo("nothing suspicious was found")


def _number(value: float) -> str:
    return f"{value:.4g}"

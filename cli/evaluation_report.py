"""What ``weightgym eval`` prints: tables for people, or one JSON object."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import click

from weightgym.cli.console import echo_json, print_table, printable, table
from weightgym.rewards.statistics import Interval
from weightgym.rollouts.evaluation import Comparison, Difference, Evaluation, Key, Summary

_NOTHING = "—"


def report_json(sides: Sequence[Evaluation], comparison: Comparison | None) -> None:
    """One object: the first side's fields, and ``against`` and ``comparison`` where there are two."""
    first, *rest = (_side(side) for side in sides)
    compared = None
    if comparison is not None:
        compared = dataclasses.asdict(comparison) | {"tasks": _rows(comparison.tasks)}
    echo_json(first | ({"against": rest[0], "comparison": compared} if rest else {}))


def _side(side: Evaluation) -> dict[str, Any]:
    return dataclasses.asdict(side) | {"tasks": _rows(side.tasks)}


def _rows(tasks: Mapping[Key, Any]) -> list[dict[str, Any]]:
    return [{"env": env, "task": task} | dataclasses.asdict(row) for (env, task), row in tasks.items()]


def print_report(sides: Sequence[Evaluation], comparison: Comparison | None) -> None:
    """A table a side, and one of differences; what is partial or odd is told on stderr."""
    for side in sides:
        _print_side(side)
        click.echo("")
    if comparison is not None:
        _print_comparison(comparison, sides[0], sides[1])


def _print_side(side: Evaluation) -> None:
    whole = side.overall
    ks, passes = sorted(whole.best), sorted(whole.passed)
    best = {f"best@{k}": [_shares(row.best, k) for row in (*side.tasks.values(), whole)] for k in ks if k > 1}
    passed = {f"pass@{k}": [_shares(row.passed, k) for row in (*side.tasks.values(), whole)] for k in passes}
    numbers = ("rollouts", "reward", *best, *passed, "invalid", "cut", "faults")
    rows = table("task", numbers[0], numbers[1], "95 % interval", *numbers[2:], right=numbers)
    names = [*_names(side.tasks), f"{len(side.tasks)} tasks"]
    for place, (name, row) in enumerate(zip(names, (*side.tasks.values(), whole), strict=True)):
        rows.add_row(
            printable(name),
            str(row.rollouts),
            f"{row.reward.mean:.4f}" if row.reward else _NOTHING,
            _interval(row.reward),
            *(column[place] for column in (*best.values(), *passed.values())),
            *(_percent(part, row) for part in (row.invalid, row.cut, row.faults)),
            end_section=place == len(names) - 2,
        )
    limits = {limit for limit in side.thresholds.values() if limit is not None}
    passing = f"; from {min(limits):g} on a reward passes" if passed and len(limits) == 1 else ""
    click.echo(f"{printable(side.policy)} under {printable(side.profile) or 'no profile'}{passing}")
    print_table(rows)
    _warn(side)


def _names(tasks: Mapping[Key, object]) -> list[str]:
    one_env = len({env for env, _ in tasks}) == 1
    return [task if one_env else f"{env} {task}" for env, task in tasks]


def _shares(column: Mapping[int, float], k: int) -> str:
    return f"{column[k]:.4f}" if k in column else _NOTHING


def _interval(interval: Interval | None) -> str:
    return f"{interval.low:.4f} to {interval.high:.4f}" if interval else _NOTHING


def _percent(part: int, row: Summary) -> str:
    return f"{part / row.rollouts:.0%}" if part else "0"


def _warn(side: Evaluation) -> None:
    """What makes these numbers partial."""
    whole = side.overall
    if whole.faults:
        click.echo(f"partial: {whole.faults} of {whole.rollouts} rollouts have no reward and are left out", err=True)
    for k in sorted(whole.best):
        having = sum(k in row.best for row in side.tasks.values())
        if having < len(side.tasks):
            click.echo(f"partial: best@{k} and pass@{k} are of {having} of {len(side.tasks)} tasks: the others have "
                       f"fewer than {k} rewards", err=True)  # fmt: skip
    oldest, newest = side.versions
    if oldest != newest:
        click.echo(f"mixed: these rollouts are of policy versions {oldest} to {newest}", err=True)


def _print_comparison(comparison: Comparison, first: Evaluation, second: Evaluation) -> None:
    numbers = ("pairs", "first", "second", "difference", "wins", "ties", "losses")
    rows = table("task", *numbers[:4], "95 % interval", *numbers[4:], right=numbers)
    whole = comparison.overall
    names = [*_names(comparison.tasks), f"{len(comparison.tasks)} tasks"]
    for place, (name, row) in enumerate(zip(names, (*comparison.tasks.values(), whole), strict=True)):
        rows.add_row(printable(name), *_difference(row), end_section=place == len(names) - 2)
    click.echo(f"{printable(first.policy)} minus {printable(second.policy)}, on the same samples")
    print_table(rows)
    click.echo(_verdict(whole))
    if comparison.unpaired:
        click.echo(f"partial: {comparison.unpaired} rollouts make no pair of two rewards and are left out", err=True)
    if not comparison.same_seeds:
        click.echo("the two sides have other seeds: their rollouts are paired by task and index alone", err=True)


def _difference(row: Difference) -> tuple[str, ...]:
    means = (f"{row.first:.4f}", f"{row.second:.4f}", f"{row.difference.mean:+.4f}")
    interval = f"{row.difference.low:+.4f} to {row.difference.high:+.4f}"
    return str(row.pairs), *means, interval, str(row.wins), str(row.ties), str(row.losses)


def _verdict(whole: Difference) -> str:
    tasks = f"it wins {whole.wins} tasks, ties on {whole.ties} and loses {whole.losses}"
    if whole.difference.low > 0:
        return f"the first is better: {tasks}"
    if whole.difference.high < 0:
        return f"the first is worse: {tasks}"
    return f"these samples don't tell which is better; of the first: {tasks}"

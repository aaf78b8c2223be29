"""``weightgym inspect --explain``: how one score came about."""

from __future__ import annotations

import dataclasses

import click

from weightgym.cli.console import echo_json, print_table, printable, shown, table
from weightgym.rewards.explanation import Step
from weightgym.trainers.rollout_page import explained
from weightgym.trainers.scored_file import ScoredAnswer, ScoredFile

#: Lines of a quoted text.
_LINES = 12


def print_explanation(file: ScoredFile, id: str, *, as_json: bool) -> None:
    """Print the steps.

    Raises:
        click.ClickException: the file has no such answer, or several.
    """
    record = _find(file, id)
    steps, problem = explained(record)
    if as_json:
        named = {"id": record.id, "line": record.line, "env": record.env, "task": record.task}
        score = record.score.model_dump(mode="json", exclude={"info"})
        echo_json(named | {"score": score, "steps": [dataclasses.asdict(step) for step in steps], "problem": problem})
        return
    click.echo(f"{printable(record.id)}, line {record.line}: {printable(record.env)} {printable(record.task)}")
    if problem:
        click.echo(printable(problem), err=True)
    for number, step in enumerate(steps, 1):
        _print(number, step)


def _print(number: int, step: Step) -> None:
    mark = {"passed": "ok", "failed": "FAILED", "told": ""}[step.verdict]
    click.echo(f"\n{number}. {printable(step.title)}{f' [{mark}]' if mark else ''}: {printable(step.text)}")
    if step.numbers:
        rows = table("", "", "", header=False)
        for name, value in step.numbers.items():
            rows.add_row("  ", printable(name), printable(value))
        print_table(rows)
    lines = step.quote.split("\n") if step.quote else []
    for line in lines[:_LINES]:
        click.echo(f"   | {printable(line)[:200]}")
    if len(lines) > _LINES:
        click.echo(f"   | … {len(lines) - _LINES} lines more")


def _find(file: ScoredFile, id: str) -> ScoredAnswer:
    line = int(id[1:]) if id.startswith(":") and id[1:].isascii() and id[1:].isdigit() and len(id) < 20 else None
    found: list[ScoredAnswer] = []
    for record in file:
        if record.line == line if line is not None else record.id == id:
            found.append(record)
            if line is not None or len(found) > 1:
                break
    if not found:
        raise click.ClickException(f"{file.path} has no scored answer {shown(id)}; :7 means the one in line 7")
    if len(found) > 1:
        lines = f"{found[0].line} and {found[1].line}"
        raise click.ClickException(f"id {shown(id)} stands in lines {lines}: name one, --explain :{found[0].line}")
    return found[0]

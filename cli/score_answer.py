"""Scoring one plain answer, in this process."""

from __future__ import annotations

import click
from rich.text import Text

from weightgym.cli.console import echo_json, print_table, printable, table
from weightgym.cli.tasks import find_task
from weightgym.rewards.batch_worker import load_scorer, score_one
from weightgym.rewards.contracts import Score

_STYLES = {"ok": "bold green", "invalid": "bold yellow", "error": "bold red", "timeout": "bold red"}


def score_answer(raw: bytes, name: str, *, env: str, task: str, profile: str | None, as_json: bool) -> bool:
    """Score a whole response (UTF-8) and print the result; whether it got a reward.

    Raises:
        TaskError: the environment, the task or the profile is unknown.
        GraderError: the scorer can't be imported.
        click.ClickException: the answer is not UTF-8.
    """
    entry, found = find_task(env, task)
    try:
        answer = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{name}: not UTF-8: byte {error.start + 1} is 0x{raw[error.start]:02x}") from error
    scorer = load_scorer(entry.scorer)
    score = score_one(scorer, found, answer, profile=entry.checked_profile(profile))
    if as_json:
        echo_json(score.model_dump(mode="json"))
    else:
        _print(f"{entry.name} {found.id}", score)
    return score.reward is not None


def _print(title: str, score: Score) -> None:
    rows = table("", "", header=False)
    rows.add_row("task", title)
    rows.add_row("status", Text(score.status, style=_STYLES[score.status]))
    rows.add_row("reward", "none" if score.reward is None else f"{score.reward:g}")
    if score.reason:
        rows.add_row("reason", printable(score.reason))
    for name, value in score.metrics.items():
        rows.add_row(printable(name), f"{value:g}")
    rows.add_row("profile", score.profile)
    rows.add_row("seconds", f"{score.seconds:.3f}")
    print_table(rows)
    trace = score.info.get("traceback")
    if isinstance(trace, str):
        click.echo(trace, err=True)

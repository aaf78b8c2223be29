"""Scoring a file of answers: survey the rows, score them in worker processes, leave an ordered file."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import click

from weightgym.cli.console import printable
from weightgym.cli.score_journal import Journal, OldRow, only_writer, open_output
from weightgym.cli.score_report import ScoringProgress, Tally
from weightgym.cli.score_rows import BadRow, Row, parse_row, read_lines
from weightgym.envs import registry
from weightgym.rewards.batch import ScoreItem, score_batch
from weightgym.rewards.contracts import TaskError

#: Bad rows told one by one; the rest are only counted.
_MOST_TOLD = 50
_LONGEST_TOLD = 400


@dataclass(frozen=True)
class FileOptions:
    """How to score a file. ``out`` is None for stdout."""

    out: Path | None
    profile: str | None
    workers: int
    timeout: float | None
    resume: bool
    force: bool


@dataclass
class _Survey:
    """What the first reading of the input found."""

    todo: list[int] = field(default_factory=list)  #: lines to score
    kept: dict[int, OldRow] = field(default_factory=dict)  #: lines whose old row stands
    bad: int = 0
    scorers: dict[str, str] = field(default_factory=dict)  #: by environment
    profiles: dict[str, str] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)

    @property
    def good(self) -> list[int]:
        """The lines that have, or will have, a row in the output; in order."""
        return sorted([*self.todo, *self.kept])


def score_file(source: BinaryIO, name: str, options: FileOptions) -> bool:
    """Score the rows of ``source`` (``name`` in messages); whether every row got a reward.

    Raises:
        click.UsageError: the output is in the way, or was made under another profile; or there is no such profile.
    """
    with ExitStack() as stack:
        if options.out:
            stack.enter_context(only_writer(options.out))
        journal, old = None, {}
        if options.out and (output := open_output(options.out, source, resume=options.resume, force=options.force)):
            journal = Journal(stack.enter_context(output))
            old = journal.recover(str(options.out)) if options.resume else {}
        survey = _survey(source, name, options, old)
        if survey.good:
            if journal is None:
                made = open(options.out, "x+b") if options.out else tempfile.TemporaryFile()  # noqa: SIM115
                journal = Journal(stack.enter_context(made))
            _score(source, name, options, survey, journal)
    return _report(survey, name, options)


def _survey(source: BinaryIO, name: str, options: FileOptions, old: dict[int, OldRow]) -> _Survey:
    survey = _Survey()
    for number, raw in read_lines(source):
        try:
            row = parse_row(number, raw)
        except BadRow as error:
            survey.bad += 1
            if survey.bad <= _MOST_TOLD:
                click.echo(f"{name}:{number}: {printable(str(error))[:_LONGEST_TOLD]}", err=True)
            continue
        env = row.task.env
        if env not in survey.scorers:
            survey.scorers[env] = row.entry.scorer
            survey.profiles[env] = checked_profile(row.entry, options.profile)
        before = old.get(number)
        if before is None or before.sha256 != row.sha256 or before.task != row.task.hash:
            survey.todo.append(number)
            continue
        if before.profile != survey.profiles[env]:
            raise click.UsageError(
                f"{options.out}: the row of line {number} was scored under profile {before.profile!r}, not "
                f"{survey.profiles[env]!r}: give --profile {before.profile}, or another output with -o"
            )
        if before.reward is None:
            survey.todo.append(number)
        else:
            survey.kept[number] = before
            survey.tally.add(row.task.key, before.status, before.reward)
    if survey.bad > _MOST_TOLD:
        click.echo(f"{name}: … and {survey.bad - _MOST_TOLD} more bad rows", err=True)
    return survey


def checked_profile(entry: registry.EnvSpec, wanted: str | None) -> str:
    """The profile to score under; a wanted one is tried on the environment before anything is scored.

    Raises:
        click.BadParameter: the environment has no such profile.
    """
    try:
        return entry.checked_profile(wanted)
    except TaskError as error:
        raise click.BadParameter(f"{entry.name}: {error}", param_hint="--profile") from error


def _score(source: BinaryIO, name: str, options: FileOptions, survey: _Survey, journal: Journal) -> None:
    for line, old in survey.kept.items():
        journal.keep(line, old)
    journal.cut()
    emitter = None if options.out else _Emitter(journal, survey.good)
    flying: dict[int, Row] = {}
    done = 0
    try:
        with ExitStack() as stack:
            progress = stack.enter_context(ScoringProgress(len(survey.todo)))
            if survey.todo:
                results = score_batch(
                    _items(source, set(survey.todo), flying),
                    scorer=survey.scorers,
                    profile=survey.profiles,
                    workers=min(options.workers, len(survey.todo)),
                    item_timeout=options.timeout,
                )
                for key, score in stack.enter_context(closing(results)):
                    row = flying.pop(int(key))
                    journal.append(row.line, row.scored(score))
                    done += 1
                    survey.tally.add(row.task.key, score.status, score.reward)
                    progress.update(score.status)
                    if emitter:
                        emitter.emit()
    except KeyboardInterrupt:
        again = "; --resume goes on" if options.out else ""
        click.echo(f"stopped: {done} of {len(survey.todo)} rows scored{again}", err=True)
        raise
    if done < len(survey.todo):
        raise click.ClickException(f"{name}: changed while it was scored; run again with --resume")
    if options.out:
        journal.finish(options.out.resolve())


def _items(source: BinaryIO, todo: set[int], flying: dict[int, Row]) -> Iterator[ScoreItem]:
    """The second reading: what is to be scored, noted in ``flying`` until its score is there."""
    for number, raw in read_lines(source):
        if number in todo:
            try:
                row = parse_row(number, raw)
            except BadRow:
                continue  # it was good before: the count shows that the file changed
            flying[number] = row
            yield ScoreItem(number, row.task, row.completion)


class _Emitter:
    """Copies rows to stdout in input order, each as soon as those before it are there."""

    def __init__(self, journal: Journal, lines: list[int]) -> None:
        self._journal = journal
        self._lines = iter(lines)
        self._next = next(self._lines, None)
        self._stdout = sys.stdout.buffer

    def emit(self) -> None:
        """Copy what can be copied now."""
        while self._next is not None and self._next in self._journal:
            self._stdout.write(self._journal.read(self._next))
            self._next = next(self._lines, None)
        self._stdout.flush()


def _report(survey: _Survey, name: str, options: FileOptions) -> bool:
    """The table and the last line; whether every row got a reward."""
    tally = survey.tally
    total = sum(tally.statuses.values())
    if total:
        tally.print()
    scored = tally.statuses["ok"] + tally.statuses["invalid"]
    parts = [(survey.bad, "bad"), (tally.statuses["error"], "error"), (tally.statuses["timeout"], "timeout")]
    problems = ", ".join(f"{count} {what}" for count, what in parts if count)
    text = f"{scored} of {total + survey.bad} rows of {name} scored"
    if problems:
        text += f" ({problems})"
    if options.out and total:
        text += f", see {options.out}"
        if tally.faults:
            text += "; --resume tries error and timeout again"
    click.echo(text, err=True)
    return not problems

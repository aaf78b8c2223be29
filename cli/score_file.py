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
from rich.console import Console

from weightgym.cli.console import printable
from weightgym.cli.score_diff import Differences
from weightgym.cli.score_journal import Journal, OldRow, only_writer, open_output
from weightgym.cli.score_report import ScoringProgress, Tally
from weightgym.cli.score_rows import BadRow, Row, make_row
from weightgym.cli.tasks import find_task
from weightgym.envs import registry
from weightgym.rewards.batch import ScoreItem, score_batch
from weightgym.rewards.batch_slot import Result
from weightgym.rewards.contracts import TaskError
from weightgym.rewards.score_cache import ScoreCache, score_key
from weightgym.rewards.scorer_version import scorer_version
from weightgym.rollouts.readers.detect import open_reader
from weightgym.rollouts.readers.record import Reader, ReaderError
from weightgym.rollouts.readers.tasks import Matcher

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
    reward: str | None = None  #: which recorded reward is the environment's, by name
    diff: bool = False  #: tell how recorded rewards and new ones differ
    cache: Path | None = None  #: of scores; None: none
    format: str | None = None  #: of the input; None: found out


@dataclass
class _Run:
    """One file on its way: what is read, and what was found so far."""

    reader: Reader
    name: str
    options: FileOptions
    matcher: Matcher
    cache: ScoreCache | None = None
    todo: bytearray = field(default_factory=bytearray)  #: by place: 1 for a row to score
    kept: dict[int, OldRow] = field(default_factory=dict)  #: places of rows whose old score stands
    bad: int = 0
    fault: str = ""  #: where the first row failed through our fault, and why
    scorers: dict[str, str] = field(default_factory=dict)  #: by environment
    profiles: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)
    differences: Differences = field(default_factory=Differences)

    def rows(self) -> Iterator[tuple[str, int, Row | BadRow]]:
        """Where each row is, its place, and the row."""
        for place, where, record in self.reader.rows():
            try:
                if isinstance(record, BadRow):
                    raise record
                yield where, place, make_row(record, self.matcher.match(record), self.options.reward)
            except BadRow as error:
                yield where, place, error

    def count(self, row: Row, status: str, reward: float | None, profile: str) -> None:
        """One more row has its score."""
        self.tally.add(row.task.key, status, reward)
        self.differences.add(row, reward, profile)

    def want(self, place: int) -> None:
        """A row is to be scored."""
        self.todo.extend(bytes(max(0, place + 1 - len(self.todo))))
        self.todo[place] = 1

    @property
    def wanted(self) -> int:
        """How many rows are to be scored."""
        return self.todo.count(1)

    def good(self) -> Iterator[int]:
        """The places that have, or will have, a row in the output; in order."""
        places = range(max(len(self.todo), max(self.kept, default=0) + 1))
        return (place for place in places if place in self.kept or self.todo[place : place + 1] == b"\1")


def score_file(source: BinaryIO | Path, name: str, options: FileOptions) -> bool:
    """Score the rows of ``source``, a file or a folder (``name`` in messages); whether every row got a reward, and,
    with ``diff``, that which was recorded.

    Raises:
        click.UsageError: the output is in the way, or was made under another profile; or there is no such profile.
        click.ClickException: the source can't be read.
    """
    try:
        reader = open_reader(source, name, options.format)
        return _score_file(_Run(reader, name, options, Matcher(find_task, options.profile)))
    except ReaderError as error:
        raise click.ClickException(str(error)) from error


def _score_file(run: _Run) -> bool:
    options = run.options
    with ExitStack() as stack:
        if options.out:
            stack.enter_context(only_writer(options.out))
        journal, old = None, {}
        if options.out and (output := open_output(options.out, run.reader, resume=options.resume, force=options.force)):
            journal = Journal(stack.enter_context(output))
            old = journal.recover(str(options.out)) if options.resume else {}
        with Console(stderr=True).status(f"reading {printable(run.name)}"):
            _survey(run, old)
        if run.wanted or run.kept:
            if journal is None:
                made = open(options.out, "x+b") if options.out else tempfile.TemporaryFile()  # noqa: SIM115
                journal = Journal(stack.enter_context(made))
            if options.cache and run.wanted:
                run.cache = stack.enter_context(ScoreCache(options.cache, _tell))
            _score(run, journal)
    return _report(run)


def _tell(text: str) -> None:
    click.echo(printable(text), err=True)


def _survey(run: _Run, old: dict[int, OldRow]) -> None:
    """The first reading: what is there, and what is to be done."""
    for where, place, row in run.rows():
        if isinstance(row, BadRow):
            run.bad += 1
            if run.bad <= _MOST_TOLD:
                click.echo(f"{printable(where)}: {printable(str(row))[:_LONGEST_TOLD]}", err=True)
            continue
        env = row.task.env
        if env not in run.scorers:
            run.scorers[env] = row.entry.scorer
            run.profiles[env] = checked_profile(row.entry, run.options.profile)
        before = old.get(place)
        if before is None or before.sha256 != row.sha256 or before.task != row.task.hash:
            run.want(place)
            continue
        if before.profile != run.profiles[env]:
            raise click.UsageError(
                f"{run.options.out}: the row of line {place} was scored under profile {before.profile!r}, not "
                f"{run.profiles[env]!r}: give --profile {before.profile}, or another output with -o"
            )
        if before.reward is None:
            run.want(place)
        else:
            run.kept[place] = before
            run.count(row, before.status, before.reward, before.profile)
    if run.bad > _MOST_TOLD:
        click.echo(f"{run.name}: … and {run.bad - _MOST_TOLD} more bad rows", err=True)


def checked_profile(entry: registry.EnvSpec, wanted: str | None) -> str:
    """The profile to score under; a wanted one is tried on the environment before anything is scored.

    Raises:
        click.BadParameter: the environment has no such profile.
    """
    try:
        return entry.checked_profile(wanted)
    except TaskError as error:
        raise click.BadParameter(f"{entry.name}: {error}", param_hint="--profile") from error


def _score(run: _Run, journal: Journal) -> None:
    options = run.options
    for line, old in run.kept.items():
        journal.keep(line, old)
    journal.cut()
    emitter = None if options.out else _Emitter(journal, run.good())
    flying: dict[int, _Flying] = {}
    done, wanted = 0, run.wanted
    try:
        with ExitStack() as stack:
            progress = stack.enter_context(ScoringProgress(wanted))
            if wanted:
                results = score_batch(
                    _items(run, flying),
                    scorer=run.scorers,
                    profile=run.profiles,
                    workers=min(options.workers, wanted),
                    item_timeout=options.timeout,
                )
                for key, score in stack.enter_context(closing(results)):
                    one = flying.pop(int(key))
                    journal.append(one.row.line, one.row.scored(score))
                    if run.cache and one.key:
                        run.cache.put(one.key, score)
                    done += 1
                    run.count(one.row, score.status, score.reward, score.profile)
                    if score.reward is None and not run.fault:
                        run.fault = f"line {one.row.line}: {score.reason}"
                    progress.update(score.status)
                    if emitter:
                        emitter.emit()
    except KeyboardInterrupt:
        again = "; --resume goes on" if options.out else ""
        click.echo(f"stopped: {done} of {wanted} rows scored{again}", err=True)
        raise
    if done < wanted:
        raise click.ClickException(f"{run.name}: changed while it was scored; run again with --resume")
    if options.out:
        journal.finish(options.out.resolve())


@dataclass(frozen=True)
class _Flying:
    """A row until its score is there, and what the cache knows it by; b"" if the cache need not learn it."""

    row: Row
    key: bytes


def _items(run: _Run, flying: dict[int, _Flying]) -> Iterator[ScoreItem | Result]:
    """The second reading: what is to be scored, noted in ``flying``, or its score where the cache has it."""
    for _, place, row in run.rows():
        if isinstance(row, BadRow) or place >= len(run.todo) or not run.todo[place]:
            continue  # one that was good before: the count shows that the file changed
        key = _cache_key(run, row)
        known = run.cache.get(key, profile=run.profiles[row.task.env]) if run.cache and key else None
        flying[place] = _Flying(row, b"" if known else key)
        yield ScoreItem(place, row.task, row.completion) if known is None else (place, known)


def _cache_key(run: _Run, row: Row) -> bytes:
    if run.cache is None:
        return b""
    env = row.task.env
    if env not in run.versions:
        run.versions[env] = scorer_version(run.scorers[env])
    return score_key(row.task, row.completion, profile=run.profiles[env], version=run.versions[env])


class _Emitter:
    """Copies rows to stdout in input order, each as soon as those before it are there."""

    def __init__(self, journal: Journal, lines: Iterator[int]) -> None:
        self._journal = journal
        self._lines = lines
        self._next = next(self._lines, None)
        self._stdout = sys.stdout.buffer

    def emit(self) -> None:
        """Copy what can be copied now."""
        while self._next is not None and self._next in self._journal:
            self._stdout.write(self._journal.read(self._next))
            self._next = next(self._lines, None)
        self._stdout.flush()


def _report(run: _Run) -> bool:
    """The tables and the last line; whether every row got a reward, and the recorded one if that was asked."""
    tally, options = run.tally, run.options
    total = sum(tally.statuses.values())
    if total:
        tally.print()
        run.differences.print(all=options.diff)
    scored = tally.statuses["ok"] + tally.statuses["invalid"]
    parts = [(run.bad, "bad"), (tally.statuses["error"], "error"), (tally.statuses["timeout"], "timeout")]
    problems = ", ".join(f"{count} {what}" for count, what in parts if count)
    text = f"{scored} of {total + run.bad} rows of {run.name} scored"
    if problems:
        text += f" ({problems})"
    if run.cache and run.cache.hits:
        text += f", {run.cache.hits} of them from the cache"
    if run.bad and not total:
        text += ": is it one answer? Then say to which task: --task ID"
    if options.out and total:
        text += f", see {options.out}"
        if tally.faults:
            text += "; --resume tries error and timeout again"
    if run.fault:
        _tell(f"the first without a reward, {run.fault}"[:_LONGEST_TOLD])
    click.echo(text, err=True)
    return not problems and not (options.diff and run.differences.changed)

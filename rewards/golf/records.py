"""Records on disk: a folder each, with the solution, the evaluator's output of a fresh run, and what is made of them.

A folder appears whole or not at all. Whoever reads one believes nothing that can be checked: the digests, what the
output says of the file, and what the rules say of both.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import filelock

from weightgym.rewards.golf import leaderboard, source
from weightgym.rewards.golf.output import MAX_BYTES, Output, OutputError, parse_output
from weightgym.rewards.golf.quality import judge_output

_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
_SOLUTION, _RESULT, _README, _PATCH = "solution.py", "result.json", "README.md", "diff.patch"
_PARTIAL = ".new-"  # a folder that is being written
#: Seconds to wait for another process that writes here; it takes a moment.
_WAIT = 30.0


class RecordError(ValueError):
    """A record that can't be made, or one on disk that is not to be believed. One line."""


@dataclass(frozen=True)
class Record:
    """A record that was read back and held."""

    id: str
    raw: bytes  #: solution.py
    output: Output


@dataclass(frozen=True)
class Shelf:
    """What a root holds: the records, and why each of the other folders is none, by name."""

    records: tuple[Record, ...]
    broken: dict[str, str]


def check_id(id: str) -> str:
    """The id, if it can name a folder.

    Raises:
        RecordError: it can't.
    """
    if not _ID.fullmatch(id):
        raise RecordError(f"a record's id is 1 to 60 of a-z, 0-9 and -, and begins with no -; not {ascii(id)[:80]}")
    return id


def check_free(root: Path, id: str) -> None:
    """Say at once what :func:`add` would say after the run.

    Raises:
        RecordError: the id is bad or taken.
    """
    if os.path.lexists(root / check_id(id)):
        raise RecordError(f"{root / id} exists: choose another id")


def add(root: Path, id: str, raw: bytes, output: Output) -> Shelf:
    """Make the record ``root/id`` of a run that has just ended, and the leaderboard anew; what is there then.

    ``output`` is what this process's evaluator made of ``raw``, never something that was read from a file.

    Raises:
        RecordError: the id is bad or taken, the run is not legal, or another process keeps the root for itself.
        OSError: it can't be written; there is no new record then.
    """
    quality = judge_output(raw, output)
    if quality.verdict != "legal":
        raise RecordError(f"only what the gate calls legal becomes a record; this is {quality.verdict}")
    root.mkdir(parents=True, exist_ok=True)
    with _only_writer(root):
        check_free(root, id)
        for left in root.glob(f"{_PARTIAL}*"):  # by a run that was killed
            shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
        new = Record(id, raw, output)
        _write(root / id, _files(new, _improved(read_all(root).records, new)))
        return _refresh(root)


def refresh(root: Path) -> Shelf:
    """Read all records, and make ``root/README.md`` anew of those that hold.

    Raises:
        RecordError: another process keeps the root for itself.
        OSError: there is no such folder, or it can't be written.
    """
    if not root.is_dir():
        raise RecordError(f"{root} is no folder: `weightgym golf record` makes it")
    with _only_writer(root):
        return _refresh(root)


def read_all(root: Path) -> Shelf:
    """All records of a root, by id, and what is broken."""
    records: list[Record] = []
    broken: dict[str, str] = {}
    for entry in sorted(root.iterdir()):
        if entry.name.startswith(".") or not (entry.is_dir() or entry.is_symlink()):
            continue
        try:
            records.append(read(entry))
        except (RecordError, OSError) as error:
            broken[entry.name] = str(error)
    return Shelf(tuple(records), broken)


def read(folder: Path) -> Record:
    """Read one record, and check all that can be checked without a run.

    Raises:
        RecordError: it does not hold.
        OSError: a file is missing or can't be read.
    """
    check_id(folder.name)
    if folder.is_symlink():
        raise RecordError("it is a link, not a folder")
    raw = _bytes(folder / _SOLUTION, source.MAX_BYTES)
    try:
        output = parse_output(_bytes(folder / _RESULT, MAX_BYTES))
    except OutputError as error:
        raise RecordError(f"{_RESULT}: {error}") from None
    quality = judge_output(raw, output)
    if quality.verdict == "illegal":
        first = quality.problems[0] if quality.problems else quality.findings[0]
        raise RecordError(f"it is illegal: {first.code}: {first.text}")
    return Record(folder.name, raw, output)


def _improved(records: tuple[Record, ...], new: Record) -> Record | None:
    """The best record of the same contest that the new one is better than."""
    here = leaderboard.contest(new.output)
    rivals = [one for one in records if leaderboard.contest(one.output) == here]
    worse = [one for one in rivals if leaderboard.place(one) > leaderboard.place(new)]
    return min(worse, key=leaderboard.place, default=None)


def _files(new: Record, base: Record | None) -> dict[str, bytes]:
    before = leaderboard.baseline_source() if base is None else base.raw.decode()
    names = (f"{'baseline' if base is None else base.id}/{_SOLUTION}", f"{new.id}/{_SOLUTION}")
    return {
        _SOLUTION: new.raw,
        _RESULT: new.output.model_dump_json(indent=2).encode() + b"\n",
        _README: leaderboard.readme(new.id, new.output, base).encode(),
        _PATCH: leaderboard.patch(before, new.raw.decode(), *names).encode(),
    }


def _write(folder: Path, files: dict[str, bytes]) -> None:
    """Make a folder with these files; it gets its name when all of them are on the disk."""
    partial = folder.with_name(_PARTIAL + folder.name)
    partial.mkdir()
    try:
        for name, content in files.items():
            with open(partial / name, "xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        partial.rename(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _refresh(root: Path) -> Shelf:
    shelf = read_all(root)
    partial = root / f"{_PARTIAL}{_README}"
    partial.write_text(leaderboard.page(shelf.records))
    partial.replace(root / _README)
    return shelf


def _bytes(path: Path, most: int) -> bytes:
    """A regular file of bounded size; no link is followed and no pipe waited for."""
    flags = os.O_NOFOLLOW | os.O_NONBLOCK
    with open(path, "rb", opener=lambda name, mode: os.open(name, mode | flags)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise RecordError(f"{path.name} is no regular file")
        content = file.read(most + 1)
    if len(content) > most:
        raise RecordError(f"{path.name} has more than {most:,} bytes")
    return content


@contextmanager
def _only_writer(root: Path) -> Iterator[None]:
    try:
        with filelock.FileLock(root / ".lock", timeout=_WAIT):
            yield
    except filelock.Timeout:
        raise RecordError(f"another process has been writing to {root} for {_WAIT:.0f} seconds: try again") from None

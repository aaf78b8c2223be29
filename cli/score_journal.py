"""The output of a scoring run: lines appended as they come, found again after a crash, put in order at the end."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
import tempfile
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import click
import filelock

from weightgym.rollouts.readers.record import Reader


@dataclass(frozen=True, slots=True)
class OldRow:
    """A row that an earlier run left: where it lies, and what its score says."""

    offset: int
    size: int
    sha256: str
    task: str  #: hash of the task that it was scored on
    status: str
    reward: float | None
    profile: str


class Journal:
    """A file of output rows and an index of them by input line. Only the index is kept in memory, 16 bytes a line."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._offsets, self._sizes = array("q"), array("q")  # by line; a size of 0: no row
        self._end = 0

    def __contains__(self, line: int) -> bool:
        return line < len(self._sizes) and self._sizes[line] > 0

    def _note(self, line: int, offset: int, size: int) -> None:
        if (missing := line + 1 - len(self._sizes)) > 0:
            self._offsets.frombytes(bytes(8 * missing))
            self._sizes.frombytes(bytes(8 * missing))
        self._offsets[line], self._sizes[line] = offset, size

    def _lines(self) -> Iterator[int]:
        return (line for line, size in enumerate(self._sizes) if size)

    def recover(self, name: str) -> dict[int, OldRow]:
        """The rows of an earlier run, by input line; of several for one line, the last. Half a last line is left out.

        Raises:
            click.UsageError: the file holds anything but scored rows.
        """
        rows: dict[int, OldRow] = {}
        for number, raw in enumerate(self._file, start=1):
            if not raw.endswith(b"\n"):
                break  # the run was killed as it wrote this
            try:
                line, row = _old_row(raw, self._end)
            except (ValueError, TypeError, KeyError, RecursionError):
                raise click.UsageError(
                    f"{name}:{number} is not a row that this command wrote: name another output with -o, or replace "
                    "the file with --force"
                ) from None
            rows[line] = row
            self._end += len(raw)
        return rows

    def keep(self, line: int, row: OldRow) -> None:
        """Let an old row stand."""
        self._note(line, row.offset, row.size)

    def cut(self) -> None:
        """Remove what lies behind the recovered rows (everything, where none were)."""
        if os.fstat(self._file.fileno()).st_size > self._end:
            self._file.truncate(self._end)

    def append(self, line: int, row: bytes) -> None:
        """Write one row and flush it."""
        self._file.seek(self._end)
        self._file.write(row)
        self._file.flush()
        self._note(line, self._end, len(row))
        self._end += len(row)

    def read(self, line: int) -> bytes:
        """The row of that input line."""
        self._file.seek(self._offsets[line])
        return self._file.read(self._sizes[line])

    def finish(self, path: Path) -> None:
        """Leave at ``path`` the rows of the index alone, in input order. Nobody sees a file in between."""
        if self._is_ordered():
            return
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".weightgym-", suffix=".tmp")
        try:
            with open(handle, "wb") as ordered:
                os.fchmod(handle, stat.S_IMODE(os.fstat(self._file.fileno()).st_mode))
                for line in self._lines():
                    ordered.write(self.read(line))
                ordered.flush()
                os.fsync(handle)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise

    def _is_ordered(self) -> bool:
        end = 0
        for line in self._lines():
            if self._offsets[line] != end:
                return False
            end += self._sizes[line]
        return end == os.fstat(self._file.fileno()).st_size


def _old_row(raw: bytes, offset: int) -> tuple[int, OldRow]:
    score = json.loads(raw)["score"]
    line, reward = score["line"], score["reward"]
    texts = [score[name] for name in ("row_sha256", "task_sha256", "status", "profile")]
    if (
        type(line) is not int
        or not all(isinstance(text, str) for text in texts)
        or not (reward is None or isinstance(reward, float))
    ):
        raise ValueError("not a score")
    digest, task, status, profile = texts
    return line, OldRow(offset, len(raw), digest, task, sys.intern(status), reward, sys.intern(profile))


@contextmanager
def only_writer(path: Path) -> Iterator[None]:
    """Keep every other run of this command, on this machine, from writing the same output.

    Raises:
        click.UsageError: another run is writing it.
    """
    name = hashlib.sha256(str(path.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    lock = filelock.FileLock(Path(tempfile.gettempdir()) / f"weightgym-{os.getuid()}-{name}.lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise click.UsageError(f"{path} is being written by another run: wait for it, or name another output") from None
    try:
        yield
    finally:
        lock.release()


def open_output(path: Path, source: Reader, *, resume: bool, force: bool) -> BinaryIO | None:
    """The output of an earlier run that this one resumes or replaces (``force``); None when there is none.

    Raises:
        click.UsageError: it is there and neither is wanted, or it is no regular file, or it is the input itself.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise click.UsageError(f"{path} is not a regular file: for rows on stdout give -o -")
    if source.reads(status.st_dev, status.st_ino):
        raise click.UsageError(f"{path} is the input: name another output with -o")
    if not (resume or force):
        raise click.UsageError(f"{path} exists: --resume goes on with it, --force replaces it, -o names another")
    return open(path, "r+b")

"""Trajectories on disk: a JSON line each, written as it ends; a killed run goes on without repeats."""

from __future__ import annotations

import os
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from types import TracebackType

import filelock
from pydantic import ValidationError

from weightgym.rewards.append import append_whole
from weightgym.rollouts.trajectory import Trajectory


class StoreError(ValueError):
    """The store's file is in the way, is not a store, is in use, or can't be written."""


def read(path: Path) -> Iterator[Trajectory]:
    """The trajectories of a file; half a last line (the run was killed as it wrote) is left out.

    Raises:
        StoreError: another line is no trajectory; the message names the line and the field.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.endswith(b"\n"):
                yield _parse(path, number, line)


def _parse(path: Path, number: int, line: bytes) -> Trajectory:
    try:
        return Trajectory.model_validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "line"
        raise StoreError(f"{path}:{number} is no trajectory: {field}: {first['msg']}") from error


class Appender:
    """A file that trajectories are added to, each at once and whole or not at all.

    Raises:
        OSError: it can't be opened.
    """

    def __init__(self, path: Path) -> None:
        self._file: FileIO = path.open("ab", buffering=0)  # a buffer would be written at closing, again in vain

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return os.fstat(self._file.fileno()).st_size

    def add(self, trajectory: Trajectory) -> None:
        """Write one.

        Raises:
            OSError: the disk is full, say; what was written before is whole.
        """
        append_whole(self._file, line(trajectory))

    def cut(self, size: int) -> None:
        """Keep the first ``size`` bytes only."""
        self._file.truncate(size)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Store:
    """A file of trajectories that is being written. One process at a time.

    Args:
        resume: go on with a file that is there. ``error`` and ``timeout`` are ours: those rollouts are made again.

    Raises:
        StoreError: the file is there and ``resume`` is not wanted; it is no store; another run is writing it; the
            disk is full.
    """

    def __init__(self, path: Path, *, resume: bool) -> None:
        self.path = path
        self._lock = filelock.FileLock(path.with_name(path.name + ".lock"))
        try:
            self._lock.acquire(timeout=0)
        except filelock.Timeout:
            raise StoreError(f"{path} is being written by another run: wait for it, or name another file") from None
        try:
            self.kept = self._recover(resume)
            self._file = Appender(path)
        except BaseException:
            self._lock.release()
            raise

    def _recover(self, resume: bool) -> dict[str, Trajectory]:
        if not self.path.exists():
            return {}
        if not resume:
            raise StoreError(f"{self.path} exists: --resume goes on with it, -o names another")
        kept = {one.id: one for one in read(self.path) if one.score.reward is not None}
        whole = b"".join(line(one) for one in kept.values())
        if whole != self.path.read_bytes():
            partial = self.path.with_name(self.path.name + ".partial")
            try:
                partial.write_bytes(whole)
                partial.replace(self.path)
            except OSError as error:
                partial.unlink(missing_ok=True)
                raise self._unwritten(error) from error
        return kept

    def add(self, trajectory: Trajectory) -> None:
        """Write one, at once.

        Raises:
            StoreError: the disk is full, say; what was written before is whole.
        """
        try:
            self._file.add(trajectory)
        except OSError as error:
            raise self._unwritten(error) from error

    def _unwritten(self, error: OSError) -> StoreError:
        return StoreError(
            f"can't write {self.path}: {error.strerror}. What it holds is whole: make room, then --resume goes on"
        )

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._lock.release()


def line(trajectory: Trajectory) -> bytes:
    """The trajectory as a line. Floats keep all their digits."""
    return trajectory.model_dump_json().encode() + b"\n"

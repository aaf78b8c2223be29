"""Whose a run's folder is: nothing that is there is overwritten, and one process writes."""

from __future__ import annotations

from pathlib import Path

import filelock


def check_folder(output: Path, *, resume: bool) -> bytes:
    """Nothing that is there may be overwritten.

    Raises:
        ValueError: the folder holds a run that is not to be resumed, or something else.
    """
    if (output / "metrics.jsonl").exists():
        if not resume:
            raise ValueError(f"{output} holds a run already: --resume goes on with it, --output names another")
    elif (output / "config.json").exists():
        raise ValueError(f"{output} holds other files, a model perhaps: --output names another folder")
    return b""


def lock_folder(output: Path) -> filelock.BaseFileLock:
    """The right to write the run's folder, which is made.

    Raises:
        ValueError: another process has it.
    """
    output.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(output / ".lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise ValueError(f"{output} is being trained by another process: wait for it, or name another folder") from None
    return lock

"""A snapshot on disk: where its files are, its rows, and whether all of it is what was published."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weightgym.rewards.contracts import TaskError
from weightgym.rewards.weight_program.snapshot import process, rows
from weightgym.rewards.weight_program.snapshot.integrity import check_files, sha256

REPOSITORY = "neilkale/WeightProgramBench"
#: SHA-256 of the published ``runtime/tasks.jsonl`` (the dataset's card).
PUBLISHED_TASKS = "cc2d728fc3c820f217ecf43a4fdc0c9e2a5e292fcdd8b4afb0cb1d34774691e6"

#: The chosen snapshot. In the environment, so that worker processes have the same one.
FOLDER_VARIABLE, DIGEST_VARIABLE = "WEIGHTGYM_SNAPSHOT", "WEIGHTGYM_SNAPSHOT_SHA256"

_FETCH = f"fetch it with `weightgym wpb fetch --revision COMMIT DIR`, or from huggingface.co/datasets/{REPOSITORY}"


@dataclass(frozen=True)
class Snapshot:
    """A checked snapshot. Rows by task id (``synth/<game>``, ``original/<game>``), in the original order."""

    folder: Path
    tasks_sha256: str
    digests: Mapping[str, str]  #: of the checked files, by their path in ``runtime``
    rows: Mapping[str, Mapping[str, Any]]

    @property
    def runtime(self) -> Path:
        """The folder of the frozen scorer and games."""
        return self.folder / "runtime"


def choose(folder: Path | None, *, tasks_sha256: str | None = None) -> None:
    """Use that snapshot in this process and in those that it starts (None: no snapshot).

    Args:
        tasks_sha256: the digest of its task file, when it is not the published one.

    Raises:
        TaskError: it is incomplete, or a file is not what its digest says. Then nothing changes.
    """
    process.close_all()  # they have loaded the old one
    if folder is None:
        for name in (FOLDER_VARIABLE, DIGEST_VARIABLE):
            os.environ.pop(name, None)
        return
    digest = tasks_sha256 or PUBLISHED_TASKS
    load.cache_clear()
    load(folder.resolve(), digest)
    os.environ[FOLDER_VARIABLE], os.environ[DIGEST_VARIABLE] = str(folder.resolve()), digest


def current() -> Snapshot | None:
    """The chosen snapshot, checked.

    Raises:
        TaskError: it is incomplete, or a file is not what its digest says.
    """
    folder = os.environ.get(FOLDER_VARIABLE)
    return load(Path(folder), os.environ.get(DIGEST_VARIABLE) or PUBLISHED_TASKS) if folder else None


@functools.lru_cache(maxsize=4)
def load(folder: Path, tasks_sha256: str) -> Snapshot:
    """Read a snapshot and check every digest. Once a process: it must not change meanwhile.

    Raises:
        TaskError: a file is missing or is not what its digest says; the message names it.
    """
    if not folder.is_dir():
        raise TaskError(f"there is no snapshot folder {folder}: {_FETCH}")
    runtime = folder / "runtime"
    tasks, verify, listing = runtime / "tasks.jsonl", runtime / "verify.py", runtime / "source.json"
    splits = [folder / "data" / f"{split}.jsonl" for split in ("train", "test")]
    _require(folder, [tasks, verify, listing, *splits])
    found = sha256(tasks.read_bytes())
    if found != tasks_sha256:
        raise TaskError(f"{tasks} is not the published task file: its SHA-256 is {found}, want {tasks_sha256}")
    frozen = rows.read(tasks)
    names = [row["game"] for row in frozen if row["source"] == "synth"]
    games = {name: runtime / "minatar_synth" / "games" / f"{name}.py" for name in names}
    _require(folder, list(games.values()))
    digests = check_files(runtime, [tasks, verify], games)
    return Snapshot(folder, found, digests, rows.join(frozen, splits))


def _require(folder: Path, files: list[Path]) -> None:
    missing = [str(path.relative_to(folder)) for path in files if not path.is_file()]
    if missing:
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise TaskError(f"the snapshot in {folder} lacks {shown}: {_FETCH}")

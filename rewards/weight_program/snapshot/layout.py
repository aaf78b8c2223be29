"""A snapshot on disk: where its files are, its rows, and whether all of it is what was published."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weightgym.rewards.contracts import TaskError
from weightgym.rewards.weight_program.snapshot.integrity import check_files, sha256

REPOSITORY = "neilkale/WeightProgramBench"
#: SHA-256 of the published ``runtime/tasks.jsonl`` (the dataset's card).
PUBLISHED_TASKS = "cc2d728fc3c820f217ecf43a4fdc0c9e2a5e292fcdd8b4afb0cb1d34774691e6"

#: The chosen snapshot. In the environment, so that worker processes have the same one.
FOLDER_VARIABLE, DIGEST_VARIABLE = "WEIGHTGYM_SNAPSHOT", "WEIGHTGYM_SNAPSHOT_SHA256"

_FROZEN = {
    "name": str,
    "split": str,
    "game": str,
    "source": str,
    "prompt": str,
    "system_prompt": str,
    "episodes": int,
}
_ADDED = ("task_id", "family", "upstream_source_url", "upstream_revision", "native_source_url")
_SPLITS = {"synth": "train", "original": "test"}
_FETCH = f"fetch it with `weightgym wpb fetch --revision COMMIT DIR`, or from huggingface.co/datasets/{REPOSITORY}"


@dataclass(frozen=True)
class Snapshot:
    """A checked snapshot. Rows by task id (``synth/<game>``, ``original/<game>``), in the original order."""

    folder: Path
    tasks_sha256: str
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
    if folder is None:
        for name in (FOLDER_VARIABLE, DIGEST_VARIABLE):
            os.environ.pop(name, None)
        return
    digest = tasks_sha256 or PUBLISHED_TASKS
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
    found = sha256(tasks)
    if found != tasks_sha256:
        raise TaskError(f"{tasks} is not the published task file: its SHA-256 is {found}, want {tasks_sha256}")
    frozen = _read(tasks)
    games = [runtime / "minatar_synth" / "games" / f"{row['game']}.py" for row in frozen if row["source"] == "synth"]
    _require(folder, games)
    check_files(listing, [tasks, verify, *games])
    return Snapshot(folder, found, _rows(frozen, splits))


def _require(folder: Path, files: list[Path]) -> None:
    missing = [str(path.relative_to(folder)) for path in files if not path.is_file()]
    if missing:
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise TaskError(f"the snapshot in {folder} lacks {shown}: {_FETCH}")


def _read(path: Path) -> list[dict[str, Any]]:
    rows = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise TaskError(f"{path}, line {number}: no JSON ({error})") from error
        for name, kind in _FROZEN.items():
            if not isinstance(row, dict) or not isinstance(row.get(name), kind):
                raise TaskError(f"{path}, line {number}: field {name!r} is missing or is no {kind.__name__}")
        if not row["game"].isidentifier() or _SPLITS.get(row["source"]) != row["split"]:
            what = f"game {row['game']!r}, source {row['source']!r}, split {row['split']!r}"
            raise TaskError(f"{path}, line {number}: unexpected {what}")
        rows.append(row)
    return rows


def _rows(frozen: list[dict[str, Any]], splits: list[Path]) -> dict[str, dict[str, Any]]:
    """The frozen rows with the columns that the splits' files add."""
    added: dict[str, tuple[Path, dict[str, Any]]] = {}
    for path in splits:
        for row in _read(path):
            added[f"{row['source']}/{row['game']}"] = path, row
    rows = {}
    for index, row in enumerate(frozen):
        id = f"{row['source']}/{row['game']}"
        if id in rows:
            raise TaskError(f"runtime/tasks.jsonl has {id} twice")
        path, more = added.pop(id, (splits[0], {}))
        differing = [name for name in _FROZEN if more.get(name) != row[name]]
        if differing or more.get("task_id") != index or path.stem != row["split"]:
            raise TaskError(f"{path}: the row of {id} is missing or differs from runtime/tasks.jsonl, line {index + 1}")
        rows[id] = row | {name: more.get(name) for name in _ADDED}
    if added:
        raise TaskError(f"{next(iter(added.values()))[0]}: {next(iter(added))} is not in runtime/tasks.jsonl")
    return rows

"""The rows of a snapshot: the frozen ones of ``runtime/tasks.jsonl``, and what ``data/*.jsonl`` adds to them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weightgym.rewards.contracts import TaskError, canonical_json
from weightgym.rewards.weight_program.channels import CAPS

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


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a file, each with all frozen fields.

    Raises:
        TaskError: a row is not what it should be; the message names file, line and field.
    """
    rows = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            row = json.loads(line)
            canonical_json(row)  # no NaN, no infinity
        except (ValueError, RecursionError) as error:
            raise TaskError(f"{path}, line {number}: no strict JSON ({error})") from error
        for name, kind in _FROZEN.items():
            if not isinstance(row, dict) or type(row.get(name)) is not kind:
                raise TaskError(f"{path}, line {number}: field {name!r} is missing or is no {kind.__name__}")
        game, source, split, episodes = (row[name] for name in ("game", "source", "split", "episodes"))
        known = game.isidentifier() and game.isascii() and (source != "original" or game in CAPS)
        if not known or _SPLITS.get(source) != split or episodes < 1:
            what = f"game {game!r}, source {source!r}, split {split!r}, episodes {episodes}"
            raise TaskError(f"{path}, line {number}: unexpected {what}")
        rows.append(row)
    if not rows:
        raise TaskError(f"{path} has no rows")
    return rows


def join(frozen: Sequence[dict[str, Any]], splits: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """The frozen rows by task id, with the columns that the splits' files add.

    Raises:
        TaskError: a row is missing, stands twice, or differs; the message names it.
    """
    added: dict[str, tuple[Path, dict[str, Any]]] = {}
    for path in splits:
        for row in read(path):
            if (id := _id(row)) in added:
                raise TaskError(f"{path}: {id} stands twice")
            added[id] = path, row
    rows: dict[str, dict[str, Any]] = {}
    for index, row in enumerate(frozen):
        id = _id(row)
        if id in rows:
            raise TaskError(f"runtime/tasks.jsonl: {id} stands twice")
        path, more = added.pop(id, (splits[0], {}))
        number = more.get("task_id")
        differing = any(more.get(name) != row[name] for name in _FROZEN) or type(number) is not int or number != index
        if differing or path.stem != row["split"]:
            raise TaskError(f"{path}: the row of {id} is missing or differs from runtime/tasks.jsonl, line {index + 1}")
        rows[id] = row | {name: more.get(name) for name in _ADDED}
    if added:
        id, (path, _) = next(iter(added.items()))
        raise TaskError(f"{path}: {id} is not in runtime/tasks.jsonl")
    return rows


def _id(row: dict[str, Any]) -> str:
    return f"{row['source']}/{row['game']}"

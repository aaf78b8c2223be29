"""Digests of a snapshot: ``runtime/source.json`` lists the SHA-256 of its files.

The card says what is listed (the task file, the scorer, every game file), not in which form. So any nesting of objects
and lists is read, and a digest belongs to the file that a key above it or a text beside it names. A file that nothing
names must have one of the digests that name no file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from weightgym.rewards.contracts import TaskError

_DIGEST = re.compile(r"(?:sha256:)?([0-9a-f]{64})", re.ASCII)


def sha256(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check_files(listing: Path, files: Sequence[Path]) -> None:
    """Compare files with the digests of ``source.json``.

    Raises:
        TaskError: the list can't be read, or a file is not what it says; the message names the file.
    """
    try:
        entries = list(_entries(json.loads(listing.read_text("utf-8")), ()))
    except (ValueError, RecursionError) as error:
        raise TaskError(f"{listing} is no JSON: {error}") from error
    stems = {path.stem for path in files}
    named: dict[str, set[str]] = {}
    for names, digest in entries:
        for stem in ({_stem(name) for name in names} & stems) or {""}:
            named.setdefault(stem, set()).add(digest)
    for path in files:
        wanted = named.get(path.stem) or named.get("", set())
        found = sha256(path)
        if found not in wanted:
            listed = ", ".join(sorted(wanted)) if len(wanted) == 1 else f"none of {len(wanted)} listed digests"
            raise TaskError(f"{path} is not the published file: its SHA-256 is {found}, {listing.name} says {listed}")


def _entries(value: Any, names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every digest, with the keys above it and the texts beside it."""
    if isinstance(value, str):
        match = _DIGEST.fullmatch(value)
        if match:
            yield names, match[1]
    elif isinstance(value, dict):
        beside = tuple(text for text in value.values() if isinstance(text, str) and not _DIGEST.fullmatch(text))
        for key, item in value.items():
            yield from _entries(item, (*names, key, *(beside if isinstance(item, str) else ())))
    elif isinstance(value, list):
        for item in value:
            yield from _entries(item, names)


def _stem(name: str) -> str:
    """``runtime/tasks.jsonl``, ``tasks_sha256`` and ``tasks`` all name the file ``tasks.jsonl``."""
    return PurePosixPath(name).stem.removesuffix("_sha256")

"""Digests of a snapshot: ``runtime/source.json`` lists the SHA-256 of its files.

The card says what is listed (the task file, the scorer, every game file), not in which form. So any nesting of objects
and lists is read. A digest belongs to the file whose path stands at or beside it; else to the game whose name does;
else it is a digest without a name, such as ``{"verifier_sha256": "…"}``, which only files that nothing names may have.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from weightgym.rewards.contracts import TaskError

_DIGEST = re.compile(r"(?:sha256:)?([0-9a-f]{64})", re.ASCII)
_PATH = re.compile(r"[\w./-]+\.(?:py|jsonl|json|txt|md)", re.ASCII)


def sha256(content: bytes) -> str:
    """SHA-256 of a file's bytes."""
    return hashlib.sha256(content).hexdigest()


@dataclass
class _Listing:
    """The digests of the list, by what they belong to."""

    paths: dict[str, set[str]] = field(default_factory=dict)
    games: dict[str, set[str]] = field(default_factory=dict)
    nameless: set[str] = field(default_factory=set)


def check_files(runtime: Path, main: Sequence[Path], games: Mapping[str, Path]) -> dict[str, str]:
    """Compare the files of ``runtime`` with the digests of its ``source.json``; returns path (in it) → digest of all.

    Args:
        main: files that must be listed, besides the games.
        games: name → file, which must be listed too. Other files that are listed by path are checked as well.

    Raises:
        TaskError: the list can't be read, or a file is not what it says; the message names the file.
    """
    listing = _read(runtime / "source.json", games)
    checked = {}
    for path in main:
        relative = path.relative_to(runtime).as_posix()
        checked[relative] = _check(path, _by_path(listing, relative) or listing.nameless)
    for game, path in games.items():
        relative = path.relative_to(runtime).as_posix()
        named = _by_path(listing, relative) | listing.games.get(game, set())
        checked[relative] = _check(path, named or ({} if listing.games else listing.nameless))
    for name in listing.paths:
        if not any(_names(name, relative) for relative in checked):
            path = _find(runtime, name)
            checked[path.relative_to(runtime).as_posix()] = _check(path, listing.paths[name])
    return checked


def _check(path: Path, wanted: set[str] | dict[str, str]) -> str:
    found = sha256(path.read_bytes())
    if found not in wanted:
        listed = next(iter(wanted)) if len(wanted) == 1 else f"{len(wanted)} digests, none of them that"
        raise TaskError(f"{path} is not the published file: its SHA-256 is {found}, source.json says {listed}")
    return found


def _by_path(listing: _Listing, relative: str) -> set[str]:
    return {digest for name, digests in listing.paths.items() if _names(name, relative) for digest in digests}


def _names(name: str, relative: str) -> bool:
    """``runtime/verify.py`` and ``verify.py`` name ``verify.py``; ``coin.py`` names ``minatar_synth/games/coin.py``."""
    parts, wanted = PurePosixPath(name).parts, PurePosixPath("runtime", relative).parts
    return wanted[-len(parts) :] == parts


def _find(runtime: Path, name: str) -> Path:
    """The file of the snapshot that the list names by path."""
    for folder in (runtime.parent, runtime, runtime / "minatar_synth"):
        path = (folder / name).resolve()
        if path.is_file() and path.is_relative_to(runtime):
            return path
    raise TaskError(f"{runtime / 'source.json'} lists {name}, which the snapshot lacks")


def _read(path: Path, games: Mapping[str, Path]) -> _Listing:
    try:
        entries = list(_entries(json.loads(path.read_bytes()), ()))
    except (ValueError, RecursionError) as error:
        raise TaskError(f"{path} is no JSON: {error}") from error
    listing = _Listing()
    for names, digest in entries:
        paths = [name for name in names if _PATH.fullmatch(name)]
        known = [name for name in names if name in games]
        if paths:
            listing.paths.setdefault(paths[0].removeprefix("./"), set()).add(digest)
        elif known:
            listing.games.setdefault(known[0], set()).add(digest)
        else:
            listing.nameless.add(digest)
    return listing


def _entries(value: Any, names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every digest with the texts that may name it: its own key, and the texts beside it."""
    if isinstance(value, str):
        match = _DIGEST.fullmatch(value)
        if match:
            yield names, match[1]
    elif isinstance(value, dict | list):
        pairs = list(value.items()) if isinstance(value, dict) else [("", item) for item in value]
        texts = tuple(text for _, text in pairs if isinstance(text, str) and not _DIGEST.fullmatch(text))
        several = sum(isinstance(item, str) for _, item in pairs) - len(texts) > 1
        for key, item in pairs:
            if isinstance(item, str):
                yield from _entries(item, (key,) if several else (key, *texts, *names))
            else:
                yield from _entries(item, (key,))

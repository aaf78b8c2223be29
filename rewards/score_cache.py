"""Scores that were made before, in a SQLite file: an answer is scored once.

The key is a digest of profile, task, scorer version and completion, so nothing that could change a score is left out.
Only ``ok`` and ``invalid`` scores that are repeatable (``Score.repeatable``) are kept. Several processes may use one
file. One that is damaged, locked, of another kind or can't be written makes the cache a cold one, which is told: a
cache never stops a run, and never invents a score.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import ValidationError

from weightgym.rewards.cache import cache_root
from weightgym.rewards.contracts import Completion, Score, Task, canonical_json, sha256_hex

#: Marks the file as ours ("WGsc"), and the form of what is in it.
_APPLICATION, _FORM = 0x57477363, 1
#: Seconds to wait for another process that writes.
_PATIENCE = 5.0
#: Scores that are written together, and the seconds that they wait at most: what a killed run may lose.
_TOGETHER, _DELAY = 256, 2.0
#: Bad entries told one by one; the rest are only counted.
_MOST_TOLD = 5


def default_path() -> Path:
    """Where the cache is if nothing else is said."""
    return cache_root() / "scores.sqlite3"


def score_key(task: Task, completion: Completion, *, profile: str, version: str) -> bytes:
    """What a score is found by: SHA-256 of (profile, task hash, scorer version, completion hash)."""
    answer = sha256_hex(canonical_json(completion))
    return bytes.fromhex(sha256_hex(canonical_json([profile, task.hash, version, answer])))


class ScoreCache:
    """The open cache. To be closed, or used as a context.

    Args:
        path: of the file; it and its folder are made if they are not there.
        tell: gets a line where something is wrong.
    """

    def __init__(self, path: Path, tell: Callable[[str], None]) -> None:
        self.path = path
        self.hits = 0
        self._bad = 0
        self._tell = tell
        self._waiting: dict[bytes, Score] = {}
        self._since = time.monotonic()
        self._database: sqlite3.Connection | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None)
            self._prepare(self._database)
        except (OSError, sqlite3.Error, _Foreign) as error:
            self._give_up(error)

    def _prepare(self, database: sqlite3.Connection) -> None:
        (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()  # first: others may be at it
        (mark,) = database.execute("PRAGMA application_id").fetchone()
        (form,) = database.execute("PRAGMA user_version").fetchone()
        if tables and (mark, form) != (_APPLICATION, _FORM):
            raise _Foreign("it is no cache of scores, or one of another version of weightgym")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        if not tables:
            database.execute("BEGIN IMMEDIATE")
            database.execute(
                "CREATE TABLE IF NOT EXISTS scores (key BLOB PRIMARY KEY, sum BLOB NOT NULL, score TEXT NOT NULL)"
            )
            database.execute(f"PRAGMA application_id = {_APPLICATION}")
            database.execute(f"PRAGMA user_version = {_FORM}")
            database.execute("COMMIT")

    def get(self, key: bytes, *, profile: str) -> Score | None:
        """The score of that key, if it is there."""
        score = self._waiting.get(key)
        if score is None and self._database is not None:
            try:
                row = self._database.execute("SELECT sum, score FROM scores WHERE key = ?", (key,)).fetchone()
                score = None if row is None else self._read(key, row[0], row[1], profile)
            except sqlite3.Error as error:
                self._give_up(error)
        self.hits += score is not None
        return score

    def _read(self, key: bytes, checksum: object, text: object, profile: str) -> Score | None:
        try:
            if not isinstance(text, str) or checksum != _sum(key, text):
                raise ValueError("its checksum is wrong")
            score = Score.model_validate(json.loads(text))
            if not score.repeatable or score.profile != profile:
                raise ValueError(f"it is {score.status} under profile {score.profile!r}")
        except (ValueError, TypeError, ValidationError) as error:
            self._bad += 1
            if self._bad <= _MOST_TOLD:
                self._tell(f"the score cache {self.path} holds a bad entry ({_line(error)}): scored again")
            return None
        return score

    def put(self, key: bytes, score: Score) -> None:
        """Keep a score, if it is one to keep."""
        if self._database is None or not score.repeatable:
            return
        self._waiting[key] = score
        if len(self._waiting) >= _TOGETHER or time.monotonic() - self._since > _DELAY:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        waiting, self._waiting, self._since = self._waiting, {}, time.monotonic()
        if self._database is None or not waiting:
            return
        rows = []
        for key, score in waiting.items():
            text = json.dumps(score.model_dump(mode="json"), allow_nan=False)
            rows.append((key, _sum(key, text), text))
        try:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.executemany("INSERT OR REPLACE INTO scores VALUES (?, ?, ?)", rows)
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        """Go on without."""
        how = "use another with --cache, or remove it" if _damaged(error) else "or use another with --cache"
        self._tell(f"no score cache, everything is scored: {self.path}: {_line(error)}; {how}")
        if self._database is not None:
            database, self._database = self._database, None
            database.close()
        self._waiting = {}

    def close(self) -> None:
        """Write what waits, and close."""
        self.flush()
        if self._database is not None:
            self._database.close()
            self._database = None
        if self._bad > _MOST_TOLD:
            self._tell(f"the score cache {self.path} holds {self._bad - _MOST_TOLD} more bad entries")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Foreign(Exception):
    """The file is something else."""


def _damaged(error: Exception) -> bool:
    return isinstance(error, _Foreign) or (
        isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)
    )


def _sum(key: bytes, text: str) -> bytes:
    return hashlib.blake2b(key + text.encode(), digest_size=8).digest()


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]

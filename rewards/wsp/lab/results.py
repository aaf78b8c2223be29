"""What came of episodes: a JSONL file of the lab's, which no client sees."""

from __future__ import annotations

import os
from collections.abc import Mapping
from io import FileIO
from pathlib import Path

from pydantic import JsonValue

from weightgym.rewards.append import append_whole
from weightgym.rewards.contracts import canonical_json


class Results:
    """Adds lines to a file that its owner alone can read. One writer at a time.

    Raises:
        OSError: it can't be opened.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._file = FileIO(opened, "r+")
        size = os.fstat(opened).st_size
        if size and os.pread(opened, 1, size - 1) != b"\n":  # a lab was killed while it wrote
            append_whole(self._file, b"\n")

    def add(self, record: Mapping[str, JsonValue]) -> None:
        """Append a line, whole or not at all."""
        append_whole(self._file, canonical_json(record).encode() + b"\n")

    def close(self) -> None:
        """Nothing comes after."""
        self._file.close()

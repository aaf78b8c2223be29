"""Adding to a file, whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from io import FileIO


def append_whole(file: FileIO, line: bytes) -> None:
    """Write a line at the end of an unbuffered file. One writer at a time.

    Raises:
        OSError: the disk is full, say; the file is then as it was.
    """
    rest, end = memoryview(line), os.fstat(file.fileno()).st_size
    try:
        while rest:
            rest = rest[file.write(rest) :]
    except OSError:
        with suppress(OSError):  # half a line does no harm either: readers leave it out
            file.truncate(end)
        raise

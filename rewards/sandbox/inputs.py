"""Bytes that a phase can read and nobody can change."""

from __future__ import annotations

import fcntl
import os
from types import TracebackType
from typing import Self

_ADD_SEALS = 1033  # F_ADD_SEALS, which Python 3.11 does not name everywhere
_ALL_SEALS = 0x1 | 0x2 | 0x4 | 0x8  # SEAL, SHRINK, GROW, WRITE


class Sealed:
    """An anonymous file in memory, sealed: its content is fixed, even for who opens it anew. Phases map it."""

    def __init__(self, data: bytes | memoryview) -> None:
        self.fd = os.memfd_create("input", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            left = memoryview(data).cast("B")
            while left:
                left = left[os.write(self.fd, left) :]
            fcntl.fcntl(self.fd, _ADD_SEALS, _ALL_SEALS)
        except BaseException:
            self.close()
            raise

    def reader(self) -> int:
        """A new descriptor for reading only, with an offset and flags of its own."""
        return os.open(f"/proc/self/fd/{self.fd}", os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        """Let go of it; phases that have it keep it."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

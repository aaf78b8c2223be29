"""A phase's end of its two pipes."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from typing import Any

from . import frames

#: Exit codes of a phase whose code failed. Anything can claim them: they only name a failure.
EXCEPTION, OUT_OF_MEMORY = 3, 4
_READ, _SHARED = 1, 1  # PROT_READ, MAP_SHARED


class Port:
    """What a runner's function is given: frames in, frames out, and its inputs.

    ``inputs`` are read-only maps of what the parent handed over, by name. ``Tensor`` is how a frame holds a tensor: its
    dtype's name, its shape, its bytes.
    """

    Tensor = frames.Tensor

    def __init__(self, source: int, sink: int, inputs: Mapping[str, int]) -> None:
        self._source = source
        self._sink = sink
        self.inputs: dict[str, memoryview] = {name: _map(descriptor) for name, descriptor in inputs.items()}

    def receive(self) -> dict[str, Any]:
        """The next frame; ``EOFError`` when there are no more."""
        header = self._read(frames.HEADER.size)
        return frames.decode(self._read(frames.body_length(header)))

    def send(self, items: Mapping[str, Any]) -> None:
        """Send a frame; waits until the parent has read most of it."""
        for part in frames.encode(items):
            left = memoryview(part)
            while left:
                left = left[os.write(self._sink, left) :]

    def _read(self, count: int) -> bytearray:
        buffer = bytearray(count)
        left = memoryview(buffer)
        while left:
            got = os.readv(self._source, [left])
            if got == 0:
                raise EOFError("the parent has no more frames")
            left = left[got:]
        return buffer


def _map(descriptor: int) -> memoryview:
    """Map a file for reading, and keep no descriptor (as Python's mmap does): its owner could change its mode."""
    size = os.fstat(descriptor).st_size
    try:
        if size == 0:
            return memoryview(b"")
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        word, number = ctypes.c_size_t, ctypes.c_int
        address = libc.mmap(None, word(size), number(_READ), number(_SHARED), number(descriptor), ctypes.c_long(0))
        if address == ctypes.c_void_p(-1).value:
            raise OSError(ctypes.get_errno(), "an input can't be mapped")
        return memoryview((ctypes.c_char * size).from_address(address)).cast("B").toreadonly()
    finally:
        os.close(descriptor)

"""Which shared libraries an ELF file names as needed (64 bits, little-endian: all machines that we sandbox on)."""

from __future__ import annotations

import mmap
import struct

_LOAD, _DYNAMIC = 1, 2  # kinds of segments
_NEEDED, _STRINGS = 1, 5  # tags of the dynamic section


def needed(path: str) -> frozenset[str]:
    """Their names; none for a file that is not such an object."""
    with open(path, "rb") as file:
        if file.read(6) != b"\x7fELF\x02\x01":
            return frozenset()
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as image:
            try:
                return _needed(image)
            except struct.error:
                return frozenset()


def _needed(image: mmap.mmap) -> frozenset[str]:
    (table,) = struct.unpack_from("<Q", image, 32)
    size, count = struct.unpack_from("<HH", image, 54)
    segments = []  # kind, offset in the file, address, bytes in the file
    for index in range(count):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", image, table + index * size)
        segments.append((kind, offset, address, length))
    tags = [
        struct.unpack_from("<qQ", image, at)
        for kind, offset, _, length in segments
        if kind == _DYNAMIC
        for at in range(offset, offset + length - 15, 16)
    ]
    strings = next((value for tag, value in tags if tag == _STRINGS), 0)
    start = next((o + strings - a for kind, o, a, n in segments if kind == _LOAD and a <= strings < a + n), 0)
    names = (start + value for tag, value in tags if tag == _NEEDED)
    return frozenset(image[at : image.find(b"\0", at)].decode("utf-8", "replace") for at in names)

"""The only format in which a phase and its parent talk: flat, typed, bounded; never pickle.

A frame is ``b"WGF1"``, the length of its body (u64) and the body: one item after the other, each a kind (u8), the
length of its name (u16), the name (UTF-8) and a value. Numbers are little-endian.

=====  =======================================================================
kind   value
=====  =======================================================================
``i``  i64
``d``  f64
``b``  u64 length, bytes
``s``  u64 length, UTF-8
``t``  dtype (u8, an index of ``DTYPES``), rank (u8), rank × u64, raw elements
=====  =======================================================================
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

MAGIC = b"WGF1"
HEADER = struct.Struct("<4sQ")
#: Names as torch has them, and bytes of an element. Only ever append.
DTYPES = (
    ("uint8", 1), ("int8", 1), ("int16", 2), ("int32", 4), ("int64", 8),
    ("float16", 2), ("bfloat16", 2), ("float32", 4), ("float64", 8), ("bool", 1),
)  # fmt: skip
MAX_ITEMS = 65_536
MAX_RANK = 8
_CODES = {name: code for code, (name, _) in enumerate(DTYPES)}


class FrameError(ValueError):
    """The bytes are no frame. What they hold is not repeated in the message."""


class Tensor(NamedTuple):
    """A contiguous tensor as it travels: the dtype's name, the shape, the raw little-endian elements."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes | memoryview


Value = int | float | bytes | memoryview | str | Tensor


def encode(items: Mapping[str, Any]) -> list[bytes | memoryview]:
    """The frame as parts to be written one after the other (large values are not copied).

    Raises:
        TypeError, ValueError: a value that the format does not hold.
    """
    parts: list[bytes | memoryview] = [b""]
    for name, value in items.items():
        encoded = name.encode()
        head = struct.pack("<H", len(encoded)) + encoded
        if type(value) is int:
            parts.append(b"i" + head + struct.pack("<q", value))
        elif type(value) is float:
            parts.append(b"d" + head + struct.pack("<d", value))
        elif type(value) is str:
            text = value.encode()
            parts += [b"s" + head + struct.pack("<Q", len(text)), text]
        elif type(value) in (bytes, bytearray, memoryview):
            raw = memoryview(value).cast("B")
            parts += [b"b" + head + struct.pack("<Q", len(raw)), raw]
        elif type(value) is Tensor:
            shape = struct.pack(f"<BB{len(value.shape)}Q", _CODES[value.dtype], len(value.shape), *value.shape)
            parts += [b"t" + head + shape, memoryview(value.data).cast("B")]
        else:
            raise TypeError(f"{name}: a frame holds int, float, str, bytes and Tensor, not {type(value).__name__}")
    parts[0] = HEADER.pack(MAGIC, sum(map(len, parts)))
    return parts


def body_length(header: bytes | bytearray) -> int:
    """Bytes of the body that follows a header.

    Raises:
        FrameError: it is no header.
    """
    magic, length = HEADER.unpack(header)
    if magic != MAGIC:
        raise FrameError("not a frame")
    return int(length)


def decode(body: bytes | bytearray | memoryview) -> dict[str, Value]:
    """The items of a frame's body. Tensors and bytes are views of it.

    Raises:
        FrameError: anything at all is wrong with it.
    """
    reader = _Reader(memoryview(body).toreadonly().cast("B"))
    items: dict[str, Value] = {}
    while reader.left:
        if len(items) == MAX_ITEMS:
            raise FrameError("too many items")
        kind = bytes(reader.take(1))
        name = _text(reader.take(reader.number("<H")))
        if name in items:
            raise FrameError("a name comes twice")
        items[name] = _value(kind, reader)
    return items


def _value(kind: bytes, reader: _Reader) -> Value:
    if kind == b"i":
        return int(reader.number("<q"))
    if kind == b"d":
        return float(reader.number("<d"))
    if kind == b"b":
        return reader.take(reader.number("<Q"))
    if kind == b"s":
        return _text(reader.take(reader.number("<Q")))
    if kind == b"t":
        return _tensor(reader)
    raise FrameError("unknown kind of item")


def _tensor(reader: _Reader) -> Tensor:
    code, rank = reader.number("<B"), reader.number("<B")
    if code >= len(DTYPES) or rank > MAX_RANK:
        raise FrameError("unknown dtype, or too many dimensions")
    shape = tuple(reader.number("<Q") for _ in range(rank))
    name, size = DTYPES[code]
    return Tensor(name, shape, reader.take(math.prod(shape) * size))


def _text(raw: memoryview) -> str:
    try:
        return bytes(raw).decode()
    except UnicodeDecodeError:
        raise FrameError("text is not UTF-8") from None


class _Reader:
    """Takes bytes off the front; never past the end."""

    def __init__(self, view: memoryview) -> None:
        self._view = view
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._view) - self._at

    def take(self, count: int) -> memoryview:
        if count > self.left:
            raise FrameError("cut short")
        self._at += count
        return self._view[self._at - count : self._at]

    def number(self, layout: str) -> Any:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]

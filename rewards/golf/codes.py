"""How few bytes an array fits into: sizes of lossless encodings that a decoder could undo.

Entropies are those of an adaptive coder, which learns its frequencies as it goes: half of log2(n) bits a symbol.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
CHUNK = 1 << 20  #: elements at a time, which bounds the memory
_PART = 1 << 13


def entropy_bytes(counts: Array) -> float:
    """The size of symbols that occur so often, in any order."""
    seen = counts[counts > 0].astype(np.float64)
    total = float(seen.sum())
    if len(seen) < 2:
        return 1.0
    bits = total * np.log2(total) - float(seen @ np.log2(seen)) + len(seen) / 2 * np.log2(total)
    return float(bits) / 8


def zlib_bytes(data: bytes) -> int:
    """The size after zlib, at a level that takes at most about a second."""
    return len(zlib.compress(data, 6 if len(data) < 1 << 22 else 1))


def plane_bytes(items: Array) -> float:
    """The size of items of any dtype, each byte of an item coded by its own frequencies, or of all by zlib."""
    raw = np.ascontiguousarray(items).reshape(-1).view(np.uint8).reshape(-1, items.dtype.itemsize)
    if raw.nbytes < 64:
        return float(raw.nbytes)
    size = 0.0
    for plane in range(raw.shape[1]):
        counts = np.zeros(256, np.int64)
        for start in range(0, len(raw), CHUNK):
            counts += np.bincount(raw[start : start + CHUNK, plane], minlength=256)
        size += min(entropy_bytes(counts), len(raw))
    # Worth trying on all of it only where it helps on a part.
    middle = max(0, len(raw) // 2 - _PART // 2)
    part = raw[middle : middle + _PART]
    if zlib_bytes(part.tobytes()) < size * len(part) / len(raw):
        size = min(size, zlib_bytes(raw.tobytes()))
    return size


def code_bytes(codes: Array, count: int, *, quick: bool = False) -> float:
    """The size of codes below ``count``: by their frequencies, or (not when ``quick``) packed and then by zlib."""
    if count <= 1:
        return 1.0
    histogram = np.zeros(count, np.int64)
    for start in range(0, len(codes), CHUNK):
        histogram += np.bincount(codes[start : start + CHUNK], minlength=count)
    size = entropy_bytes(histogram)
    if quick:
        return size
    if count > 256:
        return min(size, plane_bytes(codes.astype(np.uint16)) if count <= 1 << 16 else size)
    return min(size, zlib_bytes(_packed(codes.astype(np.uint8), count)))


def _packed(codes: Array, count: int) -> bytes:
    """One code in 1, 2, 4 or 8 bits."""
    width = next(w for w in (1, 2, 4, 8) if count <= 1 << w)
    each = 8 // width
    padded = np.concatenate([codes, np.zeros(-len(codes) % each, np.uint8)]).reshape(-1, each)
    packed = np.zeros(len(padded), np.uint8)
    for place in range(each):
        packed |= padded[:, place] << (place * width)
    return packed.tobytes()


def distinct(values: Array, limit: int) -> Array | None:
    """The distinct values in rising order, or None for more than ``limit``."""
    if len(values) > 1 << 16 and len(np.unique(values[:: len(values) >> 16])) > 3 << 14:
        return None
    found = values[:0]
    for start in range(0, len(values), CHUNK):
        found = np.union1d(found, values[start : start + CHUNK])
        if len(found) > limit:
            return None
    return found


def ranks(values: Array, levels: Array) -> Array:
    """The place of each value among the levels, which have all of them. uint32 [n]."""
    parts = [np.searchsorted(levels, values[s : s + CHUNK]).astype(np.uint32) for s in range(0, len(values), CHUNK)]
    return np.concatenate(parts) if parts else np.zeros(0, np.uint32)

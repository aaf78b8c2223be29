"""Random numbers by counter: number i of a stream is a hash of (key, i), in integers only.

They are the same bits on every machine and under every version of Python and NumPy, and any part of a stream can be
made without the parts before it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")
UInt16s = npt.NDArray[np.uint16]
UInt64s = npt.NDArray[np.uint64]

#: The constants of SplitMix64 (Steele, Lea, Flood 2014).
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def key_of(*parts: str | int) -> int:
    """A 64-bit key from the parts. Distinct parts give unrelated keys, and a key says nothing about its parts."""
    text = "".join(f"{len(part)}:{part}" for part in map(str, parts))  # the lengths keep ("ab", "c") from ("a", "bc")
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def words64(key: int, count: int) -> UInt64s:
    """The first ``count`` numbers of the stream of that key, uint64 of shape (count,)."""
    x = np.arange(1, count + 1, dtype=np.uint64)
    x *= _STEP
    x += np.uint64(key)
    for shift, factor in ((30, _MIX_1), (27, _MIX_2)):
        x ^= x >> np.uint64(shift)
        x *= factor
    x ^= x >> np.uint64(31)
    return x


def words16(key: int, count: int) -> UInt16s:
    """The first ``count`` 16-bit numbers of the stream of that key, uint16 of shape (count,)."""
    little = words64(key, -(-count // 4)).astype("<u8", copy=False).view("<u2")[:count]
    return little.astype(np.uint16, copy=False)


class Draws:
    """Numbers one at a time, for building a language. Not for text: it is slow."""

    def __init__(self, key: int) -> None:
        self._key, self._block, self._left = key, 0, list[int]()

    def below(self, count: int) -> int:
        """An integer from 0 to count - 1."""
        if not self._left:
            self._left = words64(key_of(self._key, self._block), 4096).tolist()
            self._block += 1
        return (self._left.pop() >> 32) * count >> 32

    def chance(self, percent: int) -> bool:
        """True with that probability."""
        return self.below(100) < percent

    def one(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.below(len(items))]

    def some(self, items: Sequence[T], count: int) -> list[T]:
        """``count`` different items in random order."""
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in range(count)]

    def skewed(self, items: Sequence[T]) -> T:
        """One of the items, early ones far more often."""
        return items[min(self.below(len(items)), self.below(len(items)))]


def lookup(weights: Sequence[int], size: int) -> npt.NDArray[np.int64]:
    """A table of ``size`` entries in which index i stands about in proportion to ``weights[i]``: draw from it evenly.

    Every index of the first ``size // total`` weight is there as often as rounding down of the cumulated weights says.
    """
    edges = np.cumsum(np.asarray(weights, dtype=np.int64))
    return np.searchsorted(edges, (np.arange(size, dtype=np.int64) * int(edges[-1])) // size, side="right")

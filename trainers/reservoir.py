"""Samples of what is too much to keep: chosen by a hash of ids, so that the order of rows changes nothing."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Value = TypeVar("Value")


def hash_of(text: str) -> int:
    """64 bits of a text, lone surrogates too."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


@dataclass
class Reservoir(Generic[Value]):
    """The values with the smallest keys, at most ``size``; ``count`` is of all that came."""

    size: int
    count: int = 0
    heap: list[tuple[int, Value]] = field(default_factory=list)

    def add(self, key: int, value: Value) -> None:
        """Take a value, or not."""
        self.count += 1
        self._push((-key, value))

    def merge(self, other: Reservoir[Value]) -> None:
        """As if all of the other's values had come here."""
        self.count += other.count
        for pair in other.heap:
            self._push(pair)

    @property
    def values(self) -> list[Value]:
        """The sample, by its keys."""
        return [value for _, value in sorted(self.heap, key=lambda pair: pair[0], reverse=True)]

    def _push(self, pair: tuple[int, Value]) -> None:
        if len(self.heap) < self.size:
            heapq.heappush(self.heap, pair)
        elif pair[0] > self.heap[0][0]:
            heapq.heapreplace(self.heap, pair)


@dataclass
class Mean:
    """A running mean of finite numbers, which never overflows."""

    count: int = 0
    value: float = 0.0

    def add(self, value: float) -> None:
        """Count a number in."""
        self.merge(Mean(1, value))

    def merge(self, other: Mean) -> None:
        """Count another mean's numbers in."""
        total = self.count + other.count
        if total:
            self.value = self.value * (self.count / total) + other.value * (other.count / total)
        self.count = total


def quartiles(values: Iterable[float]) -> tuple[float, float, float, float, float]:
    """Lowest, quartiles and highest of at least one value."""
    import numpy

    low, first, median, third, high = numpy.quantile(sorted(values), [0, 0.25, 0.5, 0.75, 1], method="nearest").tolist()
    return low, first, median, third, high

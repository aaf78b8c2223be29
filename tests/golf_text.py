"""Measures of text: bits a byte by simple models, and what two texts have in common."""

from __future__ import annotations

import bz2
import lzma

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
TASKS = tuple(f"lang/{number}" for number in range(32))


def compressed_bits(text: Bytes) -> tuple[float, float]:
    """Bits a byte by bz2 and by xz."""
    data = text.tobytes()
    return len(bz2.compress(data)) * 8 / len(data), len(lzma.compress(data)) * 8 / len(data)


def bigram_bits(text: Bytes) -> float:
    """Entropy of a byte given the one before it, of the text's own counts: no table of byte pairs does better."""
    counts = np.bincount(text[:-1].astype(np.int64) * 256 + text[1:], minlength=65_536).reshape(256, 256)
    seen = counts > 0
    share = (counts / np.maximum(counts.sum(1, keepdims=True), 1))[seen]
    return float(-(counts[seen] * np.log2(share)).sum() / counts.sum())


def bag_bits(train: Bytes, val: Bytes, length: int) -> float:
    """Bits a byte of rows of ``val`` by the byte pairs of ``train``, each byte weighted by how much more often than in
    ``train`` it has been in the row so far."""
    pairs = np.bincount(train[:-1].astype(np.int64) * 256 + train[1:], minlength=65_536).reshape(256, 256) + 0.05
    usual = (np.bincount(train, minlength=256) + 0.5) / (train.size + 128)
    bits = []
    for start in range(0, val.size - length, length):
        row = val[start : start + length + 1]
        seen = np.cumsum(np.eye(256)[row[:-1]], axis=0)
        here = (seen + 8 * usual) / (np.arange(1, length + 1)[:, None] + 8)
        chance = pairs[row[:-1]] * (here / usual) ** 0.75
        bits.append(-np.log2(chance[np.arange(length), row[1:]] / chance.sum(1)).mean())
    return float(np.mean(bits))


def order_bits(train: Bytes, val: Bytes, orders: int, entries: int | None = None) -> list[float]:
    """Bits a byte of ``val`` by interpolated counts of ``train`` over 0, 1, … ``orders`` bytes of context; of each
    order only the ``entries`` most frequent strings, if that is given."""
    chance = np.full(val.size - orders, 1 / 256)
    bits = []
    for order in range(orders + 1):
        grams, counts = np.unique(_grams(train, order + 1), return_counts=True)
        if entries is not None and counts.size > entries:
            kept = counts > np.partition(counts, -entries)[-entries]
            grams, counts = grams[kept], counts[kept]
        contexts, first = np.unique(grams >> np.uint64(8), return_index=True)
        total, kinds = np.add.reduceat(counts, first), np.diff(np.append(first, grams.size))
        wanted = _grams(val, order + 1)[orders - order :]
        gram, context = _find(grams, wanted), _find(contexts, wanted >> np.uint64(8))
        seen = np.maximum(np.where(gram >= 0, counts[gram], 0) - 0.75, 0)
        mixed = (seen + 0.75 * kinds[context] * chance) / total[context]
        chance = np.where(context >= 0, mixed, chance)
        bits.append(float(-np.log2(chance).mean()))
    return bits


def _grams(text: Bytes, length: int) -> npt.NDArray[np.uint64]:
    out = np.zeros(text.size - length + 1, dtype=np.uint64)
    for index in range(length):
        out = (out << np.uint64(8)) | text[index : index + out.size].astype(np.uint64)
    return out


def _find(keys: npt.NDArray[np.uint64], wanted: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Where the wanted are among sorted keys; −1 where they are not."""
    place = np.searchsorted(keys, wanted).clip(0, keys.size - 1)
    return np.where(keys[place] == wanted, place, -1)


def windows(text: Bytes, length: int) -> npt.NDArray[np.uint64]:
    """A hash of every window of ``length`` bytes (a power of two)."""
    out = text.astype(np.uint64) + np.uint64(1)
    factor, width = 0x9E3779B97F4A7C15, 1
    while width < length:
        mixed = out[:-width] * np.uint64(factor)
        out = (mixed ^ (mixed >> np.uint64(29))) + out[width:]
        factor, width = factor * factor % (1 << 64) | 1, width * 2
    return out


def shared_share(one: Bytes, other: Bytes, length: int) -> float:
    """The share of the windows of ``one`` that stand in ``other`` too."""
    return float(np.isin(windows(one, length), windows(other, length)).mean())

"""Numbers about rewards: means with bootstrap intervals, best@k, pass@k, paired differences. NumPy only.

Rewards come in groups, one a task: the samples of a task resemble each other, so a task counts as one cluster, not as
so many independent values. A mean is the mean of the tasks' means: each task counts the same, however many of its
samples have a reward. What has no reward (``error``, ``timeout``) is not here at all: the caller counts it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

#: Bootstrap resamples. The ends of an interval then vary by about 1 % of its width between seeds.
RESAMPLES = 4000
#: Random indices held at once.
_CHUNK = 1 << 22


@dataclass(frozen=True)
class Interval:
    """A mean, and the ends of its interval."""

    mean: float
    low: float
    high: float


def mean_interval(
    groups: Sequence[Sequence[float]], *, level: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """The mean of the groups' means with a percentile interval of the hierarchical bootstrap.

    Each resample draws as many groups as there are, with replacement, and then from each drawn group as many values as
    it has, with replacement. With one group the interval tells of its samples alone; with one value a group, of the
    groups alone. Where the groups hardly differ it is too wide, at most by a factor of √2 (Davison & Hinkley 1997,
    section 3.8). One value in all gives an interval of no width: it says nothing.

    Args:
        groups: finite values, at least one a group. Their order, and that of the groups, changes no bit of the result.
        level: the share of the resampled means that lies within.

    Raises:
        ValueError: there is no group, a group is empty, a value is not finite, or ``level`` is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise ValueError(f"level: {level}, want more than 0 and less than 1")
    if not groups:
        raise ValueError("no groups: a mean needs one value at least")
    parts = sorted((_checked(group) for group in groups), key=lambda part: part.tolist())
    means = _resampled_means(parts, resamples, np.random.default_rng(seed))
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(np.mean([part.mean() for part in parts])), float(low), float(high))


def _resampled_means(parts: Sequence[Floats], resamples: int, rng: np.random.Generator) -> Floats:
    """One mean of means a resample, float64 of shape (resamples,)."""
    counts = np.array([len(part) for part in parts])
    starts = np.cumsum(counts) - counts
    values = np.concatenate(parts)
    longest = int(counts.max())
    rows = max(1, _CHUNK // (len(parts) * longest))
    chunks = []
    for begin in range(0, resamples, rows):
        drawn = rng.integers(len(parts), size=(min(rows, resamples - begin), len(parts)))
        size = counts[drawn][..., None]
        inner = (rng.random((*drawn.shape, longest)) * size).astype(np.int64)
        picked = values[starts[drawn][..., None] + inner]
        inside = np.arange(longest) < size
        chunks.append((picked.sum(-1, where=inside) / size[..., 0]).mean(-1))
    return np.concatenate(chunks)


def best_at_k(rewards: Sequence[float], k: int) -> float:
    """The expected maximum of ``k`` of these rewards, drawn without replacement; exact.

    Sorted upwards, the i-th of n is the maximum of C(i-1, k-1) of the C(n, k) choices.

    Raises:
        ValueError: ``k`` is not between 1 and the number of rewards, or a reward is not finite.
    """
    values = _checked(rewards)
    n = _check_k(len(values), k)
    return math.fsum(math.comb(i, k - 1) / math.comb(n, k) * value for i, value in enumerate(values.tolist()))


def pass_at_k(rewards: Sequence[float], k: int, *, threshold: float) -> float:
    """The probability that one of ``k`` of these rewards, drawn without replacement, is ``threshold`` or more.

    It is 1 - C(n-c, k)/C(n, k) for c of n that pass: unbiased for k fresh samples (Chen et al. 2021, arXiv:2107.03374).

    Raises:
        ValueError: as ``best_at_k``; or the threshold is not finite.
    """
    if not math.isfinite(threshold):
        raise ValueError(f"threshold: {threshold}, want a finite number")
    values = _checked(rewards)
    n = _check_k(len(values), k)
    return 1.0 - math.comb(n - int((values >= threshold).sum()), k) / math.comb(n, k)


def paired_interval(
    groups: Sequence[Sequence[tuple[float, float]]],
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """The mean of (first minus second) with the interval of :func:`mean_interval`: pairs are resampled as pairs.

    Args:
        groups: one a task; a pair for each sample that both sides have a reward for.

    Raises:
        ValueError: as ``mean_interval``.
    """
    for group in groups:
        _checked([value for pair in group for value in pair])
    differences = [[first - second for first, second in group] for group in groups]
    return mean_interval(differences, level=level, resamples=resamples, seed=seed)


def _checked(values: Sequence[float]) -> Floats:
    """Float64, sorted upwards.

    Raises:
        ValueError: it is empty, or a value is not finite.
    """
    array: Any = np.sort(np.asarray(values, dtype=np.float64))
    if not array.size:
        raise ValueError("an empty group: each needs one value at least")
    if not np.isfinite(array).all():
        raise ValueError(f"{array[~np.isfinite(array)][0]} is not finite: leave out what has no reward")
    return array  # type: ignore[no-any-return]


def _check_k(n: int, k: int) -> int:
    if not 1 <= k <= n:
        raise ValueError(f"k: {k}, want 1 to {n}, the number of rewards")
    return n

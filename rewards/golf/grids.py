"""Groups of float32 values that are quantised: a scale times integers, perhaps plus an offset, or a few levels each.

A group is a row of a matrix. Nothing is taken on trust: what a grid does not give back to the last bit is charged.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from weightgym.rewards.golf.codes import Array, code_bytes, entropy_bytes

_REACH = 1 << 15  #: the largest integer of a grid
_SLACK = 256  #: units in the last place that a level may be off
_PROBES = 48  #: values a group by which its scale is chosen


@dataclass
class GridCost:
    """What groups cost as grids. Adds up over chunks; scales and offsets are priced by the caller."""

    residual_bits: float = 0.0
    raw_values: int = 0  #: in groups that are no grid
    scales: list[Array] = field(default_factory=list)
    offsets: list[Array] = field(default_factory=list)
    codes: list[Array] = field(default_factory=list)
    widths: list[Array] = field(default_factory=list)

    def add(self, rows: Array, *, affine: bool) -> None:
        """Fit the rows, float32 [groups, length], all finite."""
        offset = rows.min(1, keepdims=True) if affine else np.zeros((len(rows), 1), np.float32)
        scale = _snapped(rows, offset, _scale(rows - offset.astype(np.float64)))
        codes, off = _residual(rows, offset, scale)
        fits = (np.abs(codes).max(1) <= _REACH) & (np.abs(off).max(1) <= _SLACK)
        self.raw_values += int((~fits).sum()) * rows.shape[1]
        rows, codes, off = rows[fits], codes[fits].astype(np.int32), off[fits]
        self.scales.append(scale[fits, 0])
        if affine:
            self.offsets.append(offset[fits, 0])
        self.codes.append(codes)
        span = np.maximum(np.abs(codes).max(1, initial=0), 1)
        self.widths.append(np.ceil(np.log2(span + 1)).astype(np.int64))
        self.residual_bits += _residual_bits(rows, codes, off)

    def code_bytes(self, *, quick: bool = False) -> float:
        """The size of all codes, groups of like range together."""
        if not self.codes:
            return 0.0
        codes, widths = np.concatenate(self.codes), np.concatenate(self.widths)
        if not codes.size:
            return 0.0
        apart = entropy_bytes(np.bincount(widths))
        for width in np.unique(widths):
            apart += _shifted_bytes(codes[widths == width].reshape(-1), quick)
        return min(apart, _shifted_bytes(codes.reshape(-1), quick))


def _shifted_bytes(codes: Array, quick: bool) -> float:
    low = int(codes.min())
    return 5.0 + code_bytes((codes - low).astype(np.uint32), int(codes.max()) - low + 1, quick=quick)


def _scale(rows: Array) -> Array:
    """The largest step of which all values of a group are multiples, nearly: float64 [groups, 1]."""
    size = np.abs(rows)
    largest = size.max(1, keepdims=True)
    apart = np.diff(np.sort(rows, axis=1), axis=1)
    noise = largest * 2.0**-20
    steps = np.where(apart > noise, apart, np.inf).min(1, keepdims=True, initial=np.inf)
    steps = np.minimum(steps, np.where(size > noise, size, np.inf).min(1, keepdims=True))
    steps = _refined(size, np.where(np.isfinite(steps), steps, 1.0))
    for divisor in (2, 3, 5, 7):
        bad = _misses(rows, steps)
        if not bad.any():
            break
        finer = _refined(size[bad], steps[bad] / divisor)
        better = ~_misses(rows[bad], finer)
        steps[np.flatnonzero(bad)[better]] = finer[better]
    return steps


def _refined(size: Array, steps: Array) -> Array:
    """Steps made exact with ever larger multiples: those divide the rounding away."""
    for reach in (8, 64, 512, 4096, _REACH):
        multiple = np.where(size <= (reach + 0.5) * steps, size, 0.0).max(1, keepdims=True)
        count = np.round(multiple / steps)
        steps = np.where(count > 0, multiple / np.maximum(count, 1), steps)
    return steps


def _misses(rows: Array, steps: Array) -> Array:
    places = rows / steps
    missed: Array = np.any(np.abs(places - np.round(places)) > 0.02, axis=1)
    return missed


def _snapped(rows: Array, offset: Array, steps: Array) -> Array:
    """The scale near each step that gives the most values back exactly; the shortest of equals. float32 [groups, 1]."""
    probes = rows[:, :: max(1, rows.shape[1] // _PROBES)]
    base = steps.astype(np.float32)
    tried = [base.astype(np.float16).astype(np.float32), _bfloat16(base), base]
    for ulps in (1, -1, 2, -2, 3, -3):
        tried.append((base.view(np.int32) + ulps).view(np.float32))
    best, hits = base.copy(), np.full(len(rows), -1)
    for scale in tried:
        usable = np.where(np.isfinite(scale) & (scale > 0), scale, base)
        now = (_residual(probes, offset, usable)[1] == 0).sum(1)
        better = now > hits
        best[better], hits[better] = usable[better], now[better]
    return best


def _bfloat16(values: Array) -> Array:
    rounded: Array = ((values.view(np.uint32) + 0x8000) & np.uint32(0xFFFF0000)).view(np.float32)
    return rounded


def _residual(rows: Array, offset: Array, scale: Array) -> tuple[Array, Array]:
    """Codes (float64, whole) and by how many units in the last place (int64) scale × code + offset misses."""
    codes = np.round((rows - offset.astype(np.float64)) / scale)
    given = codes.astype(np.float32) * scale + offset
    return codes, rows.view(np.int32).astype(np.int64) - (given + np.float32(0)).view(np.int32)


def _residual_bits(rows: Array, codes: Array, off: Array) -> float:
    """What the misses cost: once a level, where they depend on group and code alone, and else once a value."""
    wrong = off.any(1)
    if not wrong.any():
        return 0.0
    rows, codes, off = rows[wrong], codes[wrong], off[wrong]
    width = np.log2(2 * np.abs(off).max(1) + 1)
    values = 1 + (np.diff(np.sort(rows, axis=1), axis=1) > 0).sum(1)
    levels = 1 + (np.diff(np.sort(codes, axis=1), axis=1) > 0).sum(1)
    times = np.where(values == levels, levels, rows.shape[1])
    return float((times * width).sum()) + 4 * len(rows)


@dataclass
class LevelCost:
    """What groups cost as tables of a few levels each. Adds up over chunks."""

    levels: list[Array] = field(default_factory=list)
    counts: Array = field(default_factory=lambda: np.zeros(256, np.int64))
    raw_values: int = 0
    groups: int = 0

    def add(self, rows: Array) -> None:
        """Groups of more than 256 levels are no tables."""
        order = np.sort(rows, axis=1)
        new = np.concatenate([np.ones((len(rows), 1), bool), np.diff(order, axis=1) > 0], axis=1)
        few = new.sum(1) <= 256
        self.raw_values += int((~few).sum()) * rows.shape[1]
        order, new = order[few], new[few]
        self.groups += len(order)
        self.levels.append(order[new])
        self.counts += np.bincount((np.cumsum(new, axis=1) - 1).reshape(-1), minlength=256)

    def code_bytes(self) -> float:
        """The size of the places in the tables."""
        return entropy_bytes(self.counts) + self.groups

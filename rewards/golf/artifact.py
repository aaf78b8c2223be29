"""What an artifact really weighs: our own lossless compression of the tensors that came back.

The claim of a solution is believed only where it is the larger of the two numbers. Honest schemes must not pay for
that, so the compression sees through what quantisers do: integers times a scale of a tensor, row, column or block, few
levels, 16-bit floats, zeros, and tensors or slices that are there several times.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from weightgym.rewards.golf.codes import CHUNK, Array, code_bytes, distinct, plane_bytes, ranks, zlib_bytes
from weightgym.rewards.golf.grids import GridCost, LevelCost
from weightgym.rewards.golf.tensors import Tensor

_TENSOR_BYTES = 2  #: for each tensor: which encoding it has
_BLOCKS = (16, 32, 64, 128, 256, 512)
_SAMPLE = 1 << 13  #: values by which an encoding is chosen
_CEILING = 16_000_000  #: four times the rules' cap
_MOST_BYTES = 128 << 20  #: of different tensors, as they are: 4 MB of artifact are a quarter of a bit for each byte
_SEARCHED = 400  #: tensors, the largest first, in which grids are looked for: that takes some milliseconds each
_FINALISTS = 2  #: encodings that are then tried on all values
_LONG_LABELS = 1 << 20  #: bytes of names and shapes from which on they are not compressed
_SLICE = 1 << 10  #: bytes from which on equal slices are looked for
_CLAIM_LIMIT = 1 << 40


class ClaimError(Exception):
    """The claimed number of bytes is not one."""


@dataclass(frozen=True)
class Account:
    """The bytes of an artifact."""

    claimed: int
    audited: int
    source: int

    @property
    def total(self) -> int:
        """What counts against the cap."""
        return max(self.claimed, self.audited) + self.source


def account(claimed: Any, tensors: Mapping[str, Tensor], source: bytes) -> Account:
    """Weigh the artifact whose state the tensors are.

    Raises:
        ClaimError: the claim is not a plain int, or negative or absurd.
    """
    if type(claimed) is not int or not 0 <= claimed < _CLAIM_LIMIT:
        raise ClaimError("artifact_bytes is not a plain int of at least 0")
    return Account(claimed, audited_bytes(tensors), len(source))


def canonical(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors without negative zeros, whose signs are not charged for. Serve these."""
    return {name: _without_negative_zeros(tensor) for name, tensor in tensors.items()}


def _without_negative_zeros(tensor: Tensor) -> Tensor:
    if tensor.dtype == "bfloat16":
        return Tensor(tensor.dtype, np.where(tensor.array == 0x8000, np.uint16(0), tensor.array))
    if tensor.array.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # signalling NaNs
            return Tensor(tensor.dtype, np.where(tensor.array == 0, tensor.array.dtype.type(0), tensor.array))
    return tensor


def audited_bytes(tensors: Mapping[str, Tensor], ceiling: int = _CEILING) -> int:
    """The bytes that the tensors fit into, names and shapes too. Equal ones, and equal slices of one, count once.

    Past the ceiling the work ends: the true number is then at least the one that is given back. Tensors of more than
    128 MiB are not looked into, for that would take a minute: they count as the ceiling and more.
    """
    with np.errstate(all="ignore"):  # any bits may come
        return _audited_bytes(canonical(tensors), ceiling)


def _audited_bytes(tensors: Mapping[str, Tensor], ceiling: int) -> int:
    seen: set[bytes] = set()
    total, raw = float(_label_bytes(tensors)), 0
    for tensor in sorted(tensors.values(), key=lambda tensor: -tensor.array.nbytes):
        total += _TENSOR_BYTES
        array = np.ascontiguousarray(tensor.array)
        digest = _digest(array) + tensor.dtype.encode()
        if digest in seen or not array.size:
            continue
        if total > ceiling:
            break
        seen.add(digest)
        array, repeats = _unique_slices(array)
        raw += array.nbytes
        if raw > _MOST_BYTES:
            return ceiling + raw // 32
        total += repeats + _array_bytes(tensor.dtype, array, search=len(seen) <= _SEARCHED)
    return int(np.ceil(total))


def _label_bytes(tensors: Mapping[str, Tensor]) -> int:
    """Names, dtypes and shapes: a model that loads its state itself could keep its weights in there."""
    text = "\n".join(f"{name} {one.dtype} {one.array.shape}" for name, one in tensors.items()).encode()
    return len(text) if len(text) > _LONG_LABELS else zlib_bytes(text)


def _digest(array: Array) -> bytes:
    return hashlib.blake2b(array.reshape(-1).view(np.uint8).data, digest_size=32).digest()


def _unique_slices(array: Array) -> tuple[Array, int]:
    """The slices along the first axis that differ, and the bytes that say where each belongs."""
    if array.ndim < 2 or array.nbytes < _SLICE * len(array):
        return array, 0
    known: dict[bytes, int] = {}
    first = [known.setdefault(_digest(part), place) == place for place, part in enumerate(array)]
    return (array, 0) if all(first) else (array[np.array(first)], 2 * len(first))


def _array_bytes(dtype: str, array: Array, *, search: bool) -> float:
    if dtype == "bool" or (array.dtype.kind in "iu" and dtype != "bfloat16"):
        return _plain_bytes(array.reshape(-1))
    if dtype == "bfloat16":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    values = array.astype(np.float32)
    if array.dtype == np.float64 and not np.array_equal(values, array, equal_nan=True):
        return _plain_bytes(array.reshape(-1))
    return _float_bytes(values) if search else _plain_bytes(values.reshape(-1))


def _plain_bytes(values: Array) -> float:
    """Values one by one: as few levels, or byte by byte; zeros apart where there are many. ``values`` is [n]."""
    size = _dense_bytes(values)
    zeros = values == 0
    count = int(zeros.sum())
    if len(values) // 8 < count < len(values):
        mask = min(code_bytes(zeros.astype(np.uint32), 2), zlib_bytes(np.packbits(zeros).tobytes()))
        size = min(size, mask + _dense_bytes(values[~zeros]))
    return size


def _dense_bytes(values: Array) -> float:
    short = _shortest(values)
    size = plane_bytes(short)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        values = values.view(f"<u{values.dtype.itemsize}")
    levels = distinct(values, min(1 << 16, len(values) // 2 + 1))
    if levels is not None:
        size = min(size, _level_bytes(levels) + code_bytes(ranks(values, levels), len(levels)))
    return size


def _level_bytes(levels: Array) -> float:
    size = _shortest(levels).nbytes
    if levels.dtype.kind in "iu":
        return min(size, 9 + (int(levels[-1]) - int(levels[0]) + 8) // 8)  # which of a range are there
    if levels.dtype == np.float32 and len(levels) > 2:
        for affine in (False, True):
            grid = GridCost()
            grid.add(levels[None], affine=affine)
            if not grid.raw_values:  # the steps between the levels, at most two bytes each
                steps = np.diff(grid.codes[0][0])
                each = 0 if steps.max() == 1 else 1 if steps.max() < 256 else 2
                size = min(size, 12 + int(grid.residual_bits / 8) + each * len(levels))
    return size


def _shortest(values: Array) -> Array:
    """The same values in 16 bits, where nothing is lost."""
    if values.dtype != np.float32:
        return values
    bits = values.view(np.uint32)
    if not (bits & np.uint32(0xFFFF)).any():
        return (bits >> np.uint32(16)).astype(np.uint16)
    half = values.astype(np.float16)
    return half if np.array_equal(half.astype(np.float32), values) else values


def _float_bytes(values: Array) -> float:
    flat = values.reshape(-1)
    size = _plain_bytes(flat)
    if len(flat) < 32 or not np.isfinite(flat).all():
        return size
    tried = []
    for matrix in _groupings(values):
        sample = matrix[_some(len(matrix), _SAMPLE // matrix.shape[1])]
        for price in (_symmetric_bytes, _affine_bytes, _table_bytes):
            tried.append((price(sample, quick=True) / sample.size, price, matrix))
    for rate, price, matrix in sorted(tried, key=lambda one: one[0])[:_FINALISTS]:
        if rate * len(flat) < size * 1.1:
            size = min(size, price(matrix, quick=False))
    return size


def _some(count: int, wanted: int) -> Array:
    """Places spread without a period: one could fall in with that of the groups."""
    chosen = np.random.default_rng(0).permutation(count)[: max(wanted, 4)]
    return np.sort(chosen)


def _groupings(values: Array) -> Iterator[Array]:
    """Matrices float32 [groups, length] of the same values."""
    flat = values.reshape(-1)
    shapes = set()
    if values.ndim > 1:
        for rows in (len(values), flat.size // max(1, values.shape[-1])):
            if 1 < rows <= flat.size // 8 and rows not in shapes:
                shapes.add(rows)
                yield flat.reshape(rows, -1)
        if 1 < values.shape[-1] <= flat.size // 8:
            yield flat.reshape(-1, values.shape[-1]).T
    for length in _BLOCKS:
        if 2 * length <= flat.size:
            yield np.concatenate([flat, np.zeros(-flat.size % length, np.float32)]).reshape(-1, length)


def _chunks(matrix: Array) -> Iterator[Array]:
    count = max(1, CHUNK // matrix.shape[1])
    for start in range(0, len(matrix), count):
        yield np.ascontiguousarray(matrix[start : start + count])


def _symmetric_bytes(matrix: Array, *, quick: bool) -> float:
    return _grid_bytes(matrix, affine=False, quick=quick)


def _affine_bytes(matrix: Array, *, quick: bool) -> float:
    return _grid_bytes(matrix, affine=True, quick=quick)


def _grid_bytes(matrix: Array, *, affine: bool, quick: bool) -> float:
    grid = GridCost()
    for rows in _chunks(matrix):
        grid.add(rows, affine=affine)
    sides = [np.concatenate(part) for part in (grid.scales, grid.offsets) if part]
    aside = sum(side.nbytes if quick else _plain_bytes(side) for side in sides if len(side))
    return grid.code_bytes(quick=quick) + aside + grid.residual_bits / 8 + 4 * grid.raw_values + len(matrix) / 8


def _table_bytes(matrix: Array, *, quick: bool) -> float:
    table = LevelCost()
    for rows in _chunks(matrix):
        table.add(rows)
    levels = _shortest(np.concatenate(table.levels))
    return table.code_bytes() + levels.nbytes + 4 * table.raw_values + len(matrix) / 8

"""The indices of a target: how they are read, which weights they select, and how a value is put there.

Integers, slices and lists mean what they mean to NumPy. A selection never takes more memory than its tensor.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn, cast

import numpy as np

from weightgym.rewards.weight_program.fence import Block, excerpt
from weightgym.rewards.weight_program.network import SHAPES, Weights
from weightgym.rewards.weight_program.tokens import (
    MAX_DEPTH,
    NUMBERS,
    SCALAR,
    SPACE,
    bad_value,
    bad_value_tail,
    index_at,
    integer,
    numbers_at,
    reader,
    unexpected,
)

Index = int | slice | list[int]

_spaces_at = reader(SPACE)
_brackets_at = reader(rf"(?:\[{SPACE})*+")
_LIST = re.compile(rf"{SPACE}\[{NUMBERS}\]{SPACE}")
_SHORT = r"(-?(?:0|[1-9][0-9]{0,2}+))"
_PLAIN = re.compile(rf"{SPACE}{_SHORT}{SPACE}(?:,{SPACE}{_SHORT}{SPACE})?+\]")
_ALL, _BACKWARDS = slice(None), slice(None, None, -1)
_FIX = "an index is an integer, a slice, or a list of integers"


def read_indices(block: Block, name: str, at: int) -> tuple[list[Index], int]:
    """The indices after the "[" that stands before ``at``, and the place after their "]".

    Raises:
        EditsError: ``bad_index``, ``index_range``, ``nesting_depth`` or ``syntax``.
    """
    shape = SHAPES[name]
    plain = _PLAIN.match(block.code, at)  # most statements name one weight or one row
    if plain:
        integers = [int(literal) for literal in plain.groups() if literal]
        sizes = zip(integers, shape, strict=False)
        if len(integers) <= len(shape) and all(-size <= index < size for index, size in sizes):
            return list(integers), plain.end()
    indices: list[Index] = []
    closed = False
    while not closed:
        if len(indices) == len(shape):
            block.fail("bad_index", at, f"too many indices; {name} takes at most {len(shape)}")
        index, at = _index(block, name, len(indices), at)
        indices.append(index)
        closed = block.code[at] == "]"
        at = at + 1 if closed else _spaces_at(block.code, at + 1).end()
        if not closed and block.code.startswith("]", at):  # a trailing comma
            closed, at = True, at + 1
    lengths = [len(index) for index in indices if isinstance(index, list)]
    if len(lengths) == 2 and lengths[0] != lengths[1] and 1 not in lengths:
        wrong = f"index lists of {lengths[0]} and {lengths[1]} entries do not pair up"
        block.fail("bad_index", at - 1, f"{wrong}; make them equally long")
    return indices, at


def _index(block: Block, name: str, axis: int, at: int) -> tuple[Index, int]:
    """One index, and the place of the "," or "]" after it."""
    listed = _LIST.match(block.code, at)
    if listed:
        if not block.code.startswith((",", "]"), listed.end()):
            _no_index(block, listed.end(), after=True)
        return _integers(block, name, axis, listed[1], listed.start(1)), listed.end()
    match = index_at(block.code, at)
    start, colon, stop, step = match.groups()
    at = match.end()
    if start is None and colon is None:
        if block.code.startswith("[", at):
            _no_list(block, at)
        _no_index(block, at, after=False)
    if not block.code.startswith((",", "]"), at):
        _no_index(block, at, after=match.lastindex != 2)
    if colon is None:
        index = _integer(block, start, match.start(1))
        _check_range(block, name, axis, index, match.start(1))
        return index, at
    first = None if start is None else _integer(block, start, match.start(1))
    bound = None if stop is None else _integer(block, stop, match.start(3))
    stride = None if step is None else _integer(block, step, match.start(4))
    if stride == 0:
        block.fail("bad_index", match.start(4), "the step of a slice must not be 0; leave it out, or use 1 or -1")
    return slice(first, bound, stride), at


def _integers(block: Block, name: str, axis: int, run: str, at: int) -> list[int]:
    """The indices of a list, all from 0."""
    literals = run.split(",")
    try:
        indices = list(map(int, literals))
    except ValueError:  # floats, and what int() does not read: hexadecimal, "- 1", joined lines
        start = at
        indices = []
        for literal in literals:
            indices.append(_integer(block, literal, start))
            start += len(literal) + 1
    size = SHAPES[name][axis]
    least = min(indices)
    if least < -size or max(indices) >= size:
        for index, literal in zip(indices, literals, strict=True):
            _check_range(block, name, axis, index, at)
            at += len(literal) + 1
    return [index % size for index in indices] if least < 0 else indices


def _no_list(block: Block, at: int) -> NoReturn:
    match = numbers_at(block.code, at + 1)
    end = match.end()
    if match[1]:
        _no_index(block, end, after="," not in block.code[match.end(1) : end])
    if block.code.startswith("]", end):
        block.fail("bad_index", at, "an index list must not be empty; write at least one integer")
    if not block.code.startswith("[", end):
        _no_index(block, end, after=False)
    if _brackets_at(block.code, at)[0].count("[") >= MAX_DEPTH:
        block.fail("nesting_depth", end, f"brackets nest deeper than {MAX_DEPTH}; {_FIX}")
    block.fail("bad_index", end, f"a list in an index list is not allowed; {_FIX}")


def _integer(block: Block, literal: str, at: int) -> int:
    try:
        return integer(literal)
    except OverflowError as error:
        block.fail("index_range", at, f"an index of {error}; use an index inside the tensor")
    except ValueError:
        block.fail("bad_index", at, f"{excerpt(literal.strip())} is not an integer; {_FIX}")


def _check_range(block: Block, name: str, axis: int, index: int, at: int) -> None:
    size = SHAPES[name][axis]
    if not -size <= index < size:
        which = f"axis {axis} of {name}, which has size {size}"
        at = _spaces_at(block.code, at).end()
        block.fail("index_range", at, f"the index is out of range for {which}; use {-size} to {size - 1}")


def _no_index(block: Block, at: int, *, after: bool) -> NoReturn:
    """``after``: an integer or a list has just ended."""
    number = SCALAR.match(block.code, at)
    if at == len(block.code):
        block.fail("syntax", at, unexpected(block.code, at, "close the bracket"))
    if number and not after:
        block.fail("bad_index", at, f"{excerpt(number[0])} is not an integer; {_FIX}")
    wrong = bad_value_tail(block.code, at) if after else None
    if wrong is None and number is None:
        wrong = bad_value(block.code, at)
    what = wrong.partition(";")[0] if wrong else unexpected(block.code, at, "").rstrip("; ")
    block.fail("bad_index", at, f"{what}; {_FIX}")


def selected_shape(name: str, indices: list[Index]) -> tuple[int, ...]:
    """The shape of what the indices (in range, lists paired up) select: what a value must broadcast to."""
    shape = SHAPES[name]
    lengths = [len(index) for index in indices if isinstance(index, list)]
    if lengths and len(indices) == len(shape) and slice not in map(type, indices):
        return (max(lengths),)
    sizes = [
        len(index) if isinstance(index, list) else len(range(size)[index])
        for index, size in zip(indices, shape, strict=False)
        if not isinstance(index, int)
    ]
    return (*sizes, *shape[len(indices) :])


def working_tensors() -> dict[str, Weights]:
    """The six tensors by name, all zero, each column in one piece: NumPy is slow on many short rows."""
    return {name: np.zeros(shape[::-1], dtype=np.float32).T for name, shape in SHAPES.items()}


def assign(tensor: Weights, indices: list[Index], operator: str, value: float | Weights) -> None:
    """Put the value into one of ``working_tensors``; ``+=`` and ``-=`` add duplicates once, as NumPy does.

    Raises:
        ValueError: the value does not broadcast to the selection, by the rule of ``np.broadcast_to``.
        FloatingPointError: a sum overflows float32, and ``np.errstate(over="raise")`` holds.
    """
    kinds = list(map(type, indices))
    axes = tensor.ndim - kinds.count(int)
    key: tuple[Any, ...] = tuple(indices)
    if list in kinds:
        axis = kinds.index(list)
        if slice in kinds or len(kinds) < tensor.ndim:
            entries = cast(list[int], indices[axis])
        else:  # lists and integers pair up: one weight of the flat tensor for each pair
            entries = _offsets(indices, tensor.shape)
            tensor, indices, axes, axis = tensor.reshape(-1, order="F"), [entries], 1, 0
        key, value = _last_ones(indices, axis, entries, axes, value)
    if not isinstance(value, float) and value.ndim > axes:  # NumPy would drop leading axes of size 1
        raise ValueError("the value has too many axes")
    rounded = np.float32(value) if isinstance(value, float) else value
    if kinds == [slice, list]:
        # The same turned over: NumPy gathers whole rows faster than columns, and forwards faster than backwards.
        tensor, rounded, rows = tensor.T, _turned(rounded), indices[0]
        if rows == _BACKWARDS and (rounded.ndim < 2 or rounded.shape[1] == 1):
            rows = _ALL
        tensor, key = (tensor if rows == _ALL else tensor[:, rows]), (key[1],)
    if operator == "=":
        tensor[key] = rounded
    elif operator == "+=":
        tensor[key] += rounded
    else:
        tensor[key] -= rounded


def _turned(value: np.float32 | Weights) -> np.float32 | Weights:
    """The value of a turned-over selection."""
    return value.T if value.ndim == 2 else value[:, None] if isinstance(value, np.ndarray) and value.ndim else value


def _last_ones(
    indices: list[Index], axis: int, entries: list[int], axes: int, value: float | Weights
) -> tuple[tuple[Any, ...], float | Weights]:
    """Key and value with only the last of duplicate entries of the list at ``axis``: the one that counts.

    NumPy would give the same, but with arrays as large as the list times the other axis.
    """
    if len(set(entries)) == len(entries):
        return (*indices[:axis], np.array(entries, dtype=np.intp), *indices[axis + 1 :]), value
    last = dict(zip(entries, range(len(entries)), strict=True))
    # NumPy takes an array of indices in less than half the time of a list.
    key = (*indices[:axis], np.array(list(last), dtype=np.intp), *indices[axis + 1 :])
    if not isinstance(value, float):
        axis += value.ndim - axes
        if axis >= 0 and value.shape[axis] > 1:
            if value.shape[axis] != len(entries):
                raise ValueError("the value is not as long as the list")
            value = value.take(list(last.values()), axis=axis)
    return key, value


def _offsets(indices: list[Index], shape: tuple[int, ...]) -> list[int]:
    """Places in the tensor, read column by column, of the pairs."""
    lists = [index if isinstance(index, list) else [cast(int, index)] for index in indices]
    if len(lists) == 1:
        return lists[0]
    rows, columns = lists
    length, height = max(len(rows), len(columns)), shape[0]
    pairs = zip(rows * (length // len(rows)), columns * (length // len(columns)), strict=True)
    return [column * height + row % height for row, column in pairs]

"""The right side of an assignment: a number, or a nested list of numbers."""

from __future__ import annotations

import re
from typing import NoReturn

import numpy as np

from weightgym.rewards.weight_program.fence import Block, excerpt
from weightgym.rewards.weight_program.network import Weights
from weightgym.rewards.weight_program.tokens import (
    MAX_DEPTH,
    NUMBERS,
    SCALAR,
    SPACE,
    bad_value,
    bad_value_tail,
    number,
    numbers,
    numbers_at,
    reader,
    unexpected,
)

#: The smallest float64 that rounds to an infinite float32.
_TOO_LARGE = float.fromhex("0x1.ffffffp127")
#: The end of the message for an overflow.
FINITE = "keep every weight below 3.4e38 in size"

_spaces_at = reader(SPACE)
_brackets_at = reader(rf"(?:\[{SPACE})*+")
#: A list of numbers in a list, with the comma after it: its numbers are group 1.
_ROW = re.compile(rf"\[{NUMBERS}\]{SPACE}(,?+){SPACE}")


def read_value(block: Block, at: int) -> tuple[float | Weights, int]:
    """The number, or the list of numbers as a float32 array, that starts here, and its end.

    All fit a finite float32. A number is a float that is not rounded yet.

    Raises:
        EditsError: ``bad_value``, ``shape_mismatch`` (a ragged or empty list), ``float32_overflow``,
            ``nesting_depth`` or ``syntax``.
    """
    if block.code.startswith("[", at):
        return _read_list(block, at)
    match = SCALAR.match(block.code, at)
    if match is None:
        _no_value(block, at)
    value = number(match[0])
    if not -_TOO_LARGE < value < _TOO_LARGE:
        _too_large(block, at, match[0])
    return value, match.end()


def _no_value(block: Block, at: int) -> NoReturn:
    wrong = bad_value(block.code, at)
    if wrong:
        block.fail("bad_value", at, wrong)
    block.fail("syntax", at, unexpected(block.code, at, "write a number, or a list of numbers"))


def _too_large(block: Block, at: int, literal: str) -> NoReturn:
    block.fail("float32_overflow", at, f"{excerpt(literal)} is too large for float32; {FINITE}")


def _read_list(block: Block, at: int) -> tuple[Weights, int]:
    """A list of numbers, or of lists of numbers: no tensor has more than two axes."""
    code = block.code
    match = numbers_at(code, at + 1)
    end = match.end()
    if match[1]:
        if not code.startswith("]", end):
            _no_entry(block, at, end, after="," not in code[match.end(1) : end])
        return _array(block, [match.start(1)], [match[1]]), end + 1
    starts: list[int] = []
    rows: list[str] = []
    row = _ROW.match(code, end)
    while row:
        starts.append(row.start(1))
        rows.append(row[1])
        end = row.end()
        row = _ROW.match(code, end) if row[2] else None
    if not rows or not code.startswith("]", end):
        _no_row(block, at, end, after=bool(rows) and "," not in code[code.rindex("]", at, end) : end])
    widths = [run.count(",") + 1 for run in rows]
    if len(set(widths)) > 1:
        odd = next(place for place, width in enumerate(widths) if width != widths[0])
        wrong = f"row {odd} (from 0) has length {widths[odd]}, the rows before it {widths[0]}"
        block.fail("shape_mismatch", starts[odd], f"{wrong}; make all rows equally long")
    return _array(block, starts, rows).reshape(len(rows), widths[0]), end + 1


def _no_row(block: Block, opened: int, at: int, *, after: bool) -> NoReturn:
    """``opened`` is the outer bracket; ``after``: a row without a comma has just ended."""
    code = block.code
    if after or not code.startswith("[", at):
        _no_entry(block, opened, at, after=after)
    brackets = _brackets_at(code, at)
    if brackets[0].count("[") >= MAX_DEPTH:
        block.fail("nesting_depth", at, f"lists nest deeper than {MAX_DEPTH}; write one or two levels")
    match = numbers_at(code, at + 1)
    if not match[1] and code.startswith("[", match.end()):
        block.fail("shape_mismatch", at, "lists nest three deep, but a tensor has at most two axes; take one level out")
    _no_entry(block, at, match.end(), after=bool(match[1]) and "," not in code[match.end(1) : match.end()])


def _no_entry(block: Block, opened: int, at: int, *, after: bool) -> NoReturn:
    """``opened`` is the innermost bracket; ``after``: a number or a list has just ended."""
    code = block.code
    if at == len(code):
        block.fail("syntax", opened, "this '[' is never closed; write its ']'")
    entry = code[at] == "[" or SCALAR.match(code, at)
    if entry and after and code[at] != "-":
        block.fail("syntax", at, unexpected(code, at, "write a comma before it"))
    if entry and not after:
        block.fail("shape_mismatch", at, "numbers and lists are mixed in one list; nest all numbers equally deep")
    if code[at] == "]":
        block.fail("shape_mismatch", at, "a list must not be empty; write at least one number")
    wrong = bad_value_tail(code, at) if after else None
    if wrong:
        block.fail("bad_value", at, wrong)
    _no_value(block, at)


def _array(block: Block, starts: list[int], runs: list[str]) -> Weights:
    """The numbers of all runs, flat. ``starts`` is where each of them stands."""
    values = numbers(",".join(runs))
    if not -_TOO_LARGE < min(values) <= max(values) < _TOO_LARGE:
        place = next(place for place, value in enumerate(values) if not -_TOO_LARGE < value < _TOO_LARGE)
        for at, run in zip(starts, runs, strict=True):
            literals = run.split(",")
            if place < len(literals):
                at = _spaces_at(block.code, at + sum(map(len, literals[:place])) + place).end()
                _too_large(block, at, literals[place].strip())
            place -= len(literals)
    return np.array(values, dtype=np.float32)

"""The edits language: assignments of numbers to parts of the six tensors, read without running anything.

::

    W1[0:60, 3] = 0.25         # NAME, NAME[index] or NAME[index, index]
    b2[[1, 2, -1]] += [1, 2, 3]

An index is an integer, a slice, or a list of integers; the right side is a number or a nested list of numbers.
Literals, indices and broadcasting mean what they mean in Python and NumPy. The statements apply in order to weights
that are all zero. Nothing here recurses, and the time is linear in the length of the text.
"""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from weightgym.rewards.weight_program.arithmetic import default_arithmetic
from weightgym.rewards.weight_program.fence import JOIN, Block, EditsError, excerpt, find_block
from weightgym.rewards.weight_program.network import SHAPES, Weights, tensors, zero_weights
from weightgym.rewards.weight_program.selection import (
    Index,
    assign,
    read_indices,
    selected_shape,
    working_tensors,
)
from weightgym.rewards.weight_program.tokens import GAP, SPACE, bad_target_tail, bad_value_tail, reader, unexpected
from weightgym.rewards.weight_program.values import FINITE, read_value

__all__ = ["Edits", "EditsError", "parse_edits"]

MAX_STATEMENTS = 20_000

_NAMES = ", ".join(SHAPES)

_TARGET = re.compile(rf"([^\W\d]\w*+){GAP}(\[)?+")
_ASSIGN = re.compile(rf"{GAP}(=|\+=|-=)(?!=){GAP}")
_OTHER_OPERATOR = re.compile(r"(?:\*\*|//|<<|>>|[*/%@&|^])=|:=|==")
_CHAINED = re.compile(rf"(?:{'|'.join(SHAPES)})\b[^=;\n]*+=(?!=)")
_INDENTED = re.compile(r"[ \t](?![ \t\f])")  # a form feed starts the count of columns again, as in Python
_gap_at = reader(GAP)
_spaces_at = reader(SPACE)
_end_at = reader(rf"{GAP}(;?+){GAP}(\n?+)")


@dataclass(frozen=True, eq=False)
class Edits:
    """A program that was read: its weights (float32 of shape (20486,), all finite) and its number of statements."""

    weights: Weights
    count: int


def parse_edits(answer: str) -> Edits:
    """The weights that the last ``edits`` block of an answer programs.

    Raises:
        EditsError: the answer is no valid program. Its code is ``answer_too_large``, ``no_block``,
            ``unclosed_block``, ``no_edits``, ``too_many_statements``, ``nesting_depth``, ``unknown_name``,
            ``bad_target``, ``bad_index``, ``index_range``, ``bad_value``, ``shape_mismatch``, ``float32_overflow``
            or ``syntax``.
    """
    block = find_block(answer)
    working = working_tensors()
    with default_arithmetic(), np.errstate(all="ignore", over="raise"):
        count = _run(block, working)
    weights = zero_weights()
    for name, tensor in tensors(weights).items():
        tensor[...] = working[name]
    return Edits(weights, count)


def _run(block: Block, weights: dict[str, Weights]) -> int:
    """Read, check and apply one statement after the other; returns how many there were."""
    code = block.code
    if code.endswith(JOIN):
        block.fail("syntax", len(code) - 1, "a backslash continues the last line; remove it")
    count = 0
    at = _next_line(block, 0)
    while at < len(code):
        if count == MAX_STATEMENTS:
            wrong = f"more than {MAX_STATEMENTS:,} statements"
            block.fail("too_many_statements", at, f"{wrong}; set slices or lists instead of single weights")
        at = _next_statement(block, _statement(block, weights, at))
        count += 1
    if count == 0:
        raise EditsError("no_edits", "the block holds no statement; write at least one", block.first_line - 1, 1)
    return count


def _next_line(block: Block, at: int) -> int:
    """The first statement after blank lines, from the end of a line or the start of the block."""
    start = _spaces_at(block.code, at).end()
    line = block.code.rfind("\n", at, start) + 1 or at
    if start > line and start < len(block.code) and _INDENTED.search(block.code[line:start]):
        block.fail("syntax", start, "the statement is indented; start it in the first column")
    return start


def _next_statement(block: Block, at: int) -> int:
    """From the end of one statement to the start of the next."""
    code = block.code
    match = _end_at(code, at)
    at = match.end()
    if match[2]:
        return _next_line(block, match.start(2))
    if match[1] or at == len(code):
        return at
    if code[at] == ",":
        block.fail("bad_value", at, "a tuple is not allowed; write a list in square brackets")
    if code[at] == "=" and not code.startswith("==", at):
        _chained(block, at)
    wrong = bad_value_tail(code, at)
    if wrong:
        block.fail("bad_value", at, wrong)
    block.fail("syntax", at, unexpected(code, at, "end the statement before it with a newline or ';'"))


def _statement(block: Block, weights: dict[str, Weights], at: int) -> int:
    """Read, check and apply the statement that starts here; returns its end."""
    start = at
    name, indices, at = _target(block, at)
    match = _ASSIGN.match(block.code, at)
    if match is None:
        _no_operator(block, at)
    value_at = match.end()
    if block.code.startswith(("W", "b"), value_at) and _CHAINED.match(block.code, value_at):
        _chained(block, value_at)
    value, end = read_value(block, value_at)
    try:
        assign(weights[name], indices, match[1], value)
    except FloatingPointError:
        block.fail("float32_overflow", value_at, f"{match[1]} makes a weight too large for float32; {FINITE}")
    except ValueError:
        shapes = f"shape {np.shape(value)} does not broadcast to shape {selected_shape(name, indices)}"
        what = f"{shapes} of {excerpt(block.code[start:at])}"
        block.fail("shape_mismatch", value_at, f"{what}; write a number or a list of that shape")
    return end


def _target(block: Block, at: int) -> tuple[str, list[Index], int]:
    """The tensor's name, its indices, and the end of the target."""
    match = _TARGET.match(block.code, at)
    if match is None:
        code = "bad_target" if block.code[at] in "[(*" else "syntax"
        block.fail(code, at, unexpected(block.code, at, f"a statement starts with one of {_NAMES}"))
    name = match[1]
    if keyword.iskeyword(name):
        block.fail("syntax", at, f"unexpected {excerpt(name)}; only assignments to tensors are allowed")
    if name not in SHAPES:
        block.fail("unknown_name", at, f"{excerpt(name)} is not a tensor; the tensors are {_NAMES}")
    if not match[2]:
        return name, [], match.end(1)
    indices, end = read_indices(block, name, match.end())
    return name, indices, end


def _chained(block: Block, at: int) -> NoReturn:
    block.fail("bad_target", at, "a chained assignment is not allowed; write one assignment for each target")


def _no_operator(block: Block, at: int) -> NoReturn:
    at = _gap_at(block.code, at).end()
    other = _OTHER_OPERATOR.match(block.code, at)
    if other:
        block.fail("syntax", at, f"the operator {other[0]} is not allowed; use =, += or -=")
    wrong = bad_target_tail(block.code, at)
    if wrong:
        block.fail("bad_target", at, wrong)
    block.fail("syntax", at, unexpected(block.code, at, "go on with =, += or -= and a value"))

"""The edits language: assignments of numbers to slices of the six tensors, read without running anything.

    W1[0:60, 3] = 0.25        # NAME, NAME[index] or NAME[index, index]
    b2[[1, 2, -1]] += [1, 2, 3]

An index is an integer, a slice, or a list of integers; the right side is a number or a nested list of numbers.
Literals, indices and broadcasting mean what they mean in Python and NumPy. Statements apply in order to zero weights.
Nothing recurses, and the time is linear in the text.
"""

from __future__ import annotations

import difflib
import keyword
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from weightgym.rewards.weight_program import tokens
from weightgym.rewards.weight_program.fence import Block, EditsError, excerpt, find_block
from weightgym.rewards.weight_program.network import SHAPES, Weights, tensors, zero_weights
from weightgym.rewards.weight_program.tokens import GAP, INDEX, NUMBERS, SCALAR, SPACE

__all__ = ["Edits", "EditsError", "parse_edits"]

MAX_STATEMENTS = 20_000
MAX_DEPTH = 6

#: The smallest float64 that rounds to an infinite float32.
_TOO_LARGE = float.fromhex("0x1.ffffffp127")
_NAMES = ", ".join(SHAPES)

_BETWEEN = re.compile(rf"{SPACE}")
_INDENTED = re.compile(r"[ \t](?![ \t\f])")  # a form feed starts the column count again, as in Python
_TARGET = re.compile(rf"([^\W\d]\w*+){GAP}(\[)?+")
_ASSIGN = re.compile(rf"{GAP}(=|\+=|-=)(?!=){GAP}")
_END = re.compile(rf"{GAP}(?:(;){GAP})?+")
_OPEN_LIST = re.compile(rf"\[{SPACE}")
_COMMA = re.compile(rf"{SPACE}(,?+){SPACE}")

_Index = int | slice | list[int]

"""The words of the edits language: its literals and their values, and what to say of all that it leaves out.

The patterns are possessive, so they read a text once. A list of numbers is one match, however long it is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import cast

from weightgym.rewards.weight_program.fence import JOIN, excerpt
from weightgym.rewards.weight_program.network import SHAPES

#: How deep square brackets may nest.
MAX_DEPTH = 6
#: The longest decimal integer, in digits, that Python reads by default.
MAX_INTEGER_DIGITS = 4300

_SPACES = f" \t\f{JOIN}\n"
#: Whitespace between tokens: on one line, and inside brackets.
GAP = f"[ \t\f{JOIN}]*+"
SPACE = f"[{_SPACES}]*+"

_DIGITS = r"[0-9]++(?:_[0-9]++)*+"
_PREFIXED = r"0(?:[xX](?:_?[0-9a-fA-F])++|[oO](?:_?[0-7])++|[bB](?:_?[01])++)"
_PREFIXES = frozenset(("0x", "0X", "0o", "0O", "0b", "0B"))
_ALONE = r"(?![0-9A-Za-z_.])"  # 1j, 1..2 and 0b12 are not numbers with something after them
_UNSIGNED = (
    r"(?!0[0_]*+[1-9][0-9_]*+(?![.eE0-9_]))"  # Python refuses 012 but takes 00, 012.5 and 012e1
    rf"(?:{_PREFIXED}|(?:{_DIGITS}(?:\.(?:{_DIGITS})?+)?+|\.{_DIGITS})(?:[eE][-+]?+{_DIGITS})?+){_ALONE}"
)
_INTEGER = rf"(?:-{SPACE})?+(?:{_PREFIXED}|0(?:_?0)*+|[1-9](?:_?[0-9])*+){_ALONE}"
_NUMBER = rf"(?:-{SPACE})?+{_UNSIGNED}"
_WORD = re.compile(rf"\w+|[^\n{JOIN}]")

_Read = Callable[[str, int], re.Match[str]]


def reader(pattern: str) -> _Read:
    """``match`` of a pattern that matches everywhere, if only the empty text."""
    return cast(_Read, re.compile(pattern).match)


#: One number with an optional minus sign, on one line.
SCALAR = re.compile(rf"(?:-{GAP})?+{_UNSIGNED}")
#: What follows a "[": group 1 is numbers with commas between them. A trailing comma is read too.
NUMBERS = rf"{SPACE}({_NUMBER}{SPACE}(?:,{SPACE}{_NUMBER}{SPACE})*+)(?:,{SPACE})?+"
#: The same, or only blanks, with None as group 1.
numbers_at = reader(rf"(?:{NUMBERS})?+{SPACE}")
#: One integer, or a slice: its start, first colon, stop and step, each None where it is left out.
index_at = reader(
    rf"{SPACE}({_INTEGER})?+{SPACE}(?:(:){SPACE}({_INTEGER})?+{SPACE}(?::{SPACE}({_INTEGER})?+{SPACE})?+)?+"
)


def numbers(run: str) -> list[float]:
    """The values of numbers with commas between them, as Python reads them; infinite when too large for a float."""
    literals = run.split(",")
    try:
        values = list(map(float, literals))
    except ValueError:  # hexadecimal, "- 1", a joined line: what float() does not read
        return list(map(number, literals))
    if "-" in run and 0.0 in values:
        return [value or _zero(literal, value) for value, literal in zip(values, literals, strict=True)]
    return values


def _zero(literal: str, value: float) -> float:
    """-0 is the integer zero, which has no sign; -0.0 has one."""
    return value if "." in literal or "e" in literal or "E" in literal else 0.0


def number(literal: str) -> float:
    """The value of one number, as Python reads it; infinite when too large for a float."""
    negative, digits = _sign(literal)
    try:
        value = float(int(digits, 0)) if digits[:2] in _PREFIXES else float(digits)
    except OverflowError:
        value = math.inf
    if negative:
        return -value if value else _zero(digits, -value)
    return value


def integer(literal: str) -> int:
    """The value of one integer.

    Raises:
        OverflowError: a decimal integer of more than 4,300 digits.
        ValueError: the literal is a number, but not an integer.
    """
    negative, digits = _sign(literal)
    if digits[:2] in _PREFIXES:
        value = int(digits, 0)
    elif len(digits) <= MAX_INTEGER_DIGITS:
        value = int(digits)
    elif not digits.strip("0_"):
        value = 0
    elif digits.replace("_", "").isdigit():
        value = _long_integer(digits.replace("_", ""))
    else:
        raise ValueError("not an integer")
    return -value if negative else value


def _long_integer(digits: str) -> int:
    if len(digits) > MAX_INTEGER_DIGITS:
        raise OverflowError(f"more than {MAX_INTEGER_DIGITS:,} digits")
    return int(digits)


def _sign(literal: str) -> tuple[bool, str]:
    digits = literal.strip(_SPACES)
    return (True, digits[1:].lstrip(_SPACES)) if digits.startswith("-") else (False, digits)


_Forms = tuple[tuple[re.Pattern[str], str, str], ...]


def _forms(*rows: tuple[str, str, str]) -> _Forms:
    return tuple((re.compile(pattern), noun, fix) for pattern, noun, fix in rows)


_RESULT = "write the result as a number"
_WRITE_OUT = "write the numbers out"
_BRACKETS = "write numbers, and lists in square brackets"
#: What may stand where a number should; the first that matches names it.
_VALUES = _forms(
    (r"(?i:f|fr|rf)['\"]", "an f-string", "write the number itself"),
    (r"(?i:[rbu]|br|rb)?['\"]", "a string", "write the number without quotes"),
    (r"(?:True|False)\b", "a boolean", "write 1 or 0"),
    (r"None\b", "None", "write a number"),
    (r"(?i:nan|inf|infinity)\b", "NaN or infinity", "write a finite number"),
    (r"lambda\b", "a lambda", _WRITE_OUT),
    (rf"[^\W\d]\w*+{SPACE}:=", "a walrus assignment", _WRITE_OUT),
    (rf"[^\W\d]\w*+{SPACE}for\b", "a comprehension", _WRITE_OUT),
    (rf"[^\W\d][\w.]*+{SPACE}\(", "a call", _WRITE_OUT),
    (rf"[^\W\d]\w*+{SPACE}\.", "an attribute", _WRITE_OUT),
    (rf"(?:{'|'.join(SHAPES)})\b", "reading a tensor", "write numbers (or is a ']' missing before it?)"),
    (r"[^\W\d]", "a name", "write the number itself"),
    (r"\(", "a parenthesis (tuple, group or call)", _BRACKETS),
    (r"\{", "a dictionary or set", _BRACKETS),
    (r"\*", "a starred value", _WRITE_OUT),
    (r"\.\.\.", "an ellipsis", "write a number"),
    (r"\+", "a plus sign before a number", "leave it out"),
    (r"-", "a second minus sign", "write one or none"),
    (r"~", "arithmetic", _RESULT),
    (r"[0-9.][\w.]*+(?<=[jJ])", "a complex number", "write a real number"),
    (r"0[0-9_]++\b(?!\.)", "an integer with leading zeros", "leave the zeros out"),
    (r"[0-9]|\.[0-9]", "a malformed number", "write it as Python does, such as 12, -0.5 or 1e-3"),
    (r"[^\x00-\x7f]", "a character that is not ASCII", "write plain ASCII"),
)
#: What may follow a number or a list that should have ended.
_VALUE_TAILS = _forms(
    (r":=", "a walrus assignment", _WRITE_OUT),
    (r"(?:\*\*|//|<<|>>|[-+*/%@&|^])=?+", "arithmetic", _RESULT),
    (r"(?:async|for)\b", "a comprehension", _WRITE_OUT),
    (r"if\b", "a condition", _RESULT),
    (r"==|!=|[<>]|(?:in|is|not|and|or)\b", "a comparison", _RESULT),
    (r"\(", "a call", _WRITE_OUT),
    (r"\[", "an index into a value", _WRITE_OUT),
    (r"\.", "an attribute", _WRITE_OUT),
)
#: What may follow a target instead of an operator.
_TARGET_TAILS = _forms(
    (r"\[", "a second pair of brackets", "write both indices in one: W1[row, column]"),
    (r"\.", "an attribute", "assign to a tensor or a part of it"),
    (r"\(", "a call", "assign to a tensor or a part of it"),
    (r":(?!=)", "an annotation", "write the assignment alone"),
    (r",", "a tuple target", "write one assignment for each target"),
)


def _find(forms: _Forms, code: str, at: int) -> str | None:
    found = next(((noun, fix) for pattern, noun, fix in forms if pattern.match(code, at)), None)
    return f"{found[0]} is not allowed; {found[1]}" if found else None


def bad_value(code: str, at: int) -> str | None:
    """What is wrong with the expression that stands where a number should; None when it is no expression."""
    if code.startswith("-", at):
        at += 1
        while at < len(code) and code[at] in _SPACES.rstrip("\n"):
            at += 1
        if code.startswith("[", at):
            return "a minus sign before a list is not allowed; put it before each number"
    return _find(_VALUES, code, at)


def bad_value_tail(code: str, at: int) -> str | None:
    """What is wrong with the expression that goes on where a value should have ended; None when it does not."""
    return _find(_VALUE_TAILS, code, at)


def bad_target_tail(code: str, at: int) -> str | None:
    """What is wrong with a target that goes on where an operator should stand; None when it does not."""
    return _find(_TARGET_TAILS, code, at)


def unexpected(code: str, at: int, fix: str) -> str:
    """The message for what has no place there."""
    if code.startswith("\\", at):
        return "a backslash in the middle of a line is not allowed; it must be the last character of its line"
    match = _WORD.match(code, at)
    if match:
        return f"unexpected {excerpt(match[0])}; {fix}"
    return f"unexpected end of the {'line' if at < len(code) else 'block'}; {fix}"

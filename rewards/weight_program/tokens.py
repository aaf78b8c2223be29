"""The words of the edits language: patterns for its literals, their values, and names for what it leaves out.

All patterns are possessive, so each reads its text once. A list of numbers is one match, however long it is.
"""

from __future__ import annotations

import math
import re

from weightgym.rewards.weight_program.fence import JOIN, excerpt
from weightgym.rewards.weight_program.network import SHAPES

#: Whitespace between tokens: on one line, and inside brackets.
_SPACES = f" \t\f{JOIN}\n"
GAP = f"[ \t\f{JOIN}]*+"
SPACE = f"[{_SPACES}]*+"

#: The longest decimal integer, in digits, that Python reads by default.
MAX_INTEGER_DIGITS = 4300

_DIGITS = r"[0-9]++(?:_[0-9]++)*+"
_PREFIXED = r"0(?:[xX](?:_?[0-9a-fA-F])++|[oO](?:_?[0-7])++|[bB](?:_?[01])++)"
_ALONE = r"(?![0-9A-Za-z_.])"  # "1j", "1..2" and "0b12" are not numbers followed by something
_UNSIGNED = (
    r"(?!0[0_]*+[1-9][0-9_]*+(?![.eE]))"  # Python refuses 012 but takes 00, 012.5 and 012e1
    rf"(?:{_PREFIXED}|(?:{_DIGITS}(?:\.(?:{_DIGITS})?+)?+|\.{_DIGITS})(?:[eE][-+]?+{_DIGITS})?+){_ALONE}"
)
_INTEGER = rf"-?+{SPACE}(?:{_PREFIXED}|0(?:_?0)*+|[1-9](?:_?[0-9])*+){_ALONE}"
_NUMBER = rf"-?+{SPACE}{_UNSIGNED}"

SCALAR = re.compile(rf"-?+{GAP}{_UNSIGNED}")
#: The numbers after a "[" or a ",": group 1 is ``1, 2, -3``, None when there are none. A trailing comma is eaten.
NUMBERS = re.compile(rf"{SPACE}(?:({_NUMBER}{SPACE}(?:,{SPACE}{_NUMBER}{SPACE})*+)(?:,{SPACE})?+)?+")
#: One integer or slice: start, first colon, stop, step; all empty at anything else.
INDEX = re.compile(
    rf"{SPACE}({_INTEGER})?+{SPACE}(?:(:){SPACE}({_INTEGER})?+{SPACE}(?::{SPACE}({_INTEGER})?+{SPACE})?+)?+"
)

_PREFIXES = frozenset(("0x", "0X", "0o", "0O", "0b", "0B"))
_WORD = re.compile(rf"\w+|[^\n{JOIN}]")

_Form = tuple[re.Pattern[str], str, str]


def _forms(*rows: tuple[str, str, str]) -> tuple[_Form, ...]:
    return tuple((re.compile(pattern), noun, fix) for pattern, noun, fix in rows)


_RESULT = "write the result as a number"
_NUMBERS_OUT = "write the numbers out"
_ARITHMETIC = "arithmetic"
#: What may stand where a number should, first match wins.
_VALUES = _forms(
    (r"(?i:f|fr|rf)['\"]", "an f-string", "write the number itself"),
    (r"(?i:[rbu]|br|rb)?['\"]", "a string", "write the number without quotes"),
    (r"(?:True|False)\b", "a boolean", "write 1 or 0"),
    (r"None\b", "None", "write a number"),
    (r"(?i:nan|inf|infinity)\b", "NaN or infinity", "every weight is finite: write a finite number"),
    (r"lambda\b", "a lambda", _NUMBERS_OUT),
    (rf"[^\W\d]\w*+{SPACE}:=", "a walrus assignment", _NUMBERS_OUT),
    (rf"[^\W\d]\w*+{SPACE}for\b", "a comprehension", _NUMBERS_OUT),
    (rf"[^\W\d][\w.]*+{SPACE}\(", "a call", _NUMBERS_OUT),
    (rf"[^\W\d]\w*+{SPACE}\.", "an attribute", _NUMBERS_OUT),
    (rf"(?:{'|'.join(SHAPES)})\b", "reading a tensor", "write its numbers out (or is a ']' missing before it?)"),
    (r"[^\W\d]", "a name", "write the number itself"),
    (r"\(", "a parenthesis (tuple, call or group)", "write numbers, and lists with square brackets"),
    (r"\{", "a dictionary or set", "write numbers, and lists with square brackets"),
    (r"\*", "a starred value", _NUMBERS_OUT),
    (r"\.\.\.", "an ellipsis", "write a number"),
    (r"\+", "a plus sign before a number", "leave it out"),
    (r"-", "a second minus sign", "write one or none"),
    (r"~", _ARITHMETIC, _RESULT),
    (r"[0-9.][\w.]*+(?<=[jJ])", "a complex number", "write a real number"),
    (r"0[0-9_]++\b(?!\.)", "a decimal integer with leading zeros", "leave the zeros out"),
    (r"[0-9]|\.[0-9]", "a malformed number", "write it as Python does, such as 12, -0.5 or 1e-3"),
    (r"[^\x00-\x7f]", "a character that is not ASCII", "write plain ASCII digits"),
)
#: What may follow a number or a list that should have ended.
_TAILS = _forms(
    (r":=", "a walrus assignment", _NUMBERS_OUT),
    (r"(?:\*\*|//|<<|>>|[-+*/%@&|^])=?+", _ARITHMETIC, _RESULT),
    (r"(?:async\b\s*)?for\b", "a comprehension", _NUMBERS_OUT),
    (r"if\b", "a condition", _RESULT),
    (r"==|!=|[<>]|(?:in|is|not|and|or)\b", "a comparison", _RESULT),
    (r"\(", "a call", _NUMBERS_OUT),
    (r"\[", "an index into a value", _NUMBERS_OUT),
    (r"\.", "an attribute", _NUMBERS_OUT),
)


def _find(forms: tuple[_Form, ...], code: str, at: int) -> tuple[str, str] | None:
    return next(((noun, fix) for pattern, noun, fix in forms if pattern.match(code, at)), None)


def value_form(code: str, at: int) -> tuple[str, str] | None:
    """What stands where a number should: its name and a fix. None when it is no expression at all."""
    if code.startswith("-", at):
        at += 1
        while at < len(code) and code[at] in _SPACES:
            at += 1
        if code.startswith("[", at):
            return "a minus sign before a list", "put it before each number"
    return _find(_VALUES, code, at)


def tail_form(code: str, at: int) -> tuple[str, str] | None:
    """What follows a value that should have ended: its name and a fix. None when it is no expression."""
    return _find(_TAILS, code, at)


def word(code: str, at: int) -> str:
    """What stands there, quoted for a message: a word, a character, or an end."""
    match = _WORD.match(code, at)
    if match:
        return excerpt(match[0])
    return "the end of the line" if at < len(code) else "the end of the block"


def unexpected(code: str, at: int, wanted: str) -> str:
    """The message for text that has no place in the language."""
    if code.startswith("\\", at):
        return "a backslash in the middle of a line; only the last character of a line may be one"
    return f"unexpected {word(code, at)}; {wanted}"


def numbers(run: str) -> list[float]:
    """The values of a match of ``NUMBERS``, as Python reads the literals (infinite when too large for a float)."""
    literals = run.split(",")
    try:
        values = list(map(float, literals))
    except ValueError:  # hexadecimal, "- 1", a joined line: what float() does not read
        return list(map(number, literals))
    if "-" in run and 0.0 in values:
        return [value or number(literal) for value, literal in zip(values, literals, strict=True)]
    return values


def number(literal: str) -> float:
    """The value of one literal of ``NUMBERS`` or ``SCALAR`` (infinite when too large for a float)."""
    negative, digits = _sign(literal)
    try:
        value = float(int(digits, 0)) if digits[:2] in _PREFIXES else float(digits)
    except OverflowError:
        value = math.inf
    # -0 is the integer zero, which has no sign; -0.0 has one.
    integer_zero = value == 0.0 and "." not in digits and "e" not in digits.lower()
    return -value if negative and not integer_zero else value


def integer(literal: str) -> int:
    """The value of one literal of ``INDEX`` or ``NUMBERS``.

    Raises:
        OverflowError: a decimal integer of more than 4,300 digits.
        ValueError: the literal is a number, but no integer.
    """
    negative, digits = _sign(literal)
    if digits[:2] in _PREFIXES:
        value = int(digits, 0)
    elif len(digits) <= MAX_INTEGER_DIGITS:
        value = int(digits)
    elif not digits.strip("0_"):
        value = 0
    elif digits.replace("_", "").isdigit():
        raise OverflowError(f"an integer of more than {MAX_INTEGER_DIGITS:,} digits")
    else:
        raise ValueError("not an integer")
    return -value if negative else value


def _sign(literal: str) -> tuple[bool, str]:
    digits = literal.strip(_SPACES)
    return (True, digits[1:].lstrip(_SPACES)) if digits.startswith("-") else (False, digits)

"""Strict JSON lines: what a row may be, checked one by one."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterator
from typing import Any, BinaryIO, NoReturn

from weightgym.rollouts.readers.record import BadRow

BOM = b"\xef\xbb\xbf"
_JSON_SPACE = " \t\n\r"
#: Of brackets in a completion. What a conversation needs is five or so; what follows copies it by recursion.
_MOST_DEPTH = 100


def read_lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines of the file that are not blank, with their numbers, without newlines."""
    file.seek(0)
    for number, raw in enumerate(file, start=1):
        line = raw.removesuffix(b"\n").removesuffix(b"\r")
        if line.removeprefix(BOM if number == 1 else b"").strip():
            yield number, line


def row_sha256(raw: bytes) -> str:
    """What a row is recognised by when a run is resumed."""
    return hashlib.sha256(raw).hexdigest()


def decode(number: int, raw: bytes) -> str:
    """The text of a line.

    Raises:
        BadRow: it is not UTF-8.
    """
    raw = raw.removeprefix(BOM) if number == 1 else raw
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise BadRow(f"not UTF-8: byte {error.start + 1} of the line is 0x{raw[error.start]:02x}") from error


def parse_object(text: str, *, nan: bool = False) -> dict[str, Any]:
    """A JSON object by the letter of the standard: no duplicate key, no number that a float can't hold, no NaN.

    Args:
        nan: take NaN and infinities, which Python's own writer makes.

    Raises:
        BadRow: it is anything else.
    """
    try:
        fields = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=float if nan else _no_constant,
            parse_float=_finite,
            parse_int=_int,
        )
    except json.JSONDecodeError as error:
        raise BadRow(f"not JSON: {error.msg} at column {error.colno}") from error
    except RecursionError as error:
        raise BadRow("nested too deeply") from error
    if not isinstance(fields, dict):
        raise BadRow(f'not a JSON object but {kind(fields)}: want {{"env": …, "task": …, "completion": …}}')
    return fields


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in fields if names.count(name) > 1)
        raise BadRow(f"key {shown(twice)} stands twice in one object: leave one")
    return fields


def _no_constant(name: str) -> NoReturn:
    raise BadRow(f"{name} is not JSON: use null or a number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise BadRow(f"number {shown(text)} is too large for a float")
    return value


def _int(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:  # Python's limit on the digits of an integer
        raise BadRow(f"an integer of {len(text)} digits is too long") from error


def check_depth(name: str, value: Any) -> None:
    """Whether a value nests only as deep as what follows can copy.

    Raises:
        BadRow: it is deeper.
    """
    level = [value]
    for _ in range(_MOST_DEPTH):
        parts = [part.values() if isinstance(part, dict) else part for part in level if isinstance(part, dict | list)]
        level = [item for part in parts for item in part]
        if not level:
            return
    raise BadRow(f"{name!r} is nested too deeply: at most {_MOST_DEPTH} levels")


def body_of(text: str, fields: dict[str, Any]) -> str:
    """The row's text without the closing brace. A "score" that it has becomes "previous_score".

    Numbers keep their digits where nothing must change. NaN and infinities, which no JSON can hold, become text.

    Raises:
        BadRow: it is nested too deeply to be written again.
    """
    if "score" in fields:
        renamed = {name: value for name, value in fields.items() if name != "score"}
        text = dumped(renamed | {_free_name(fields): fields["score"]})
    return text.strip(_JSON_SPACE).removesuffix("}").rstrip(_JSON_SPACE)


def _free_name(fields: dict[str, Any]) -> str:
    """Where an old score goes: nothing that a row brings along is lost, its older scores included."""
    names = itertools.chain(["previous_score"], (f"previous_score_{n}" for n in itertools.count(2)))
    return next(name for name in names if name not in fields)


def dumped(value: Any) -> str:
    """Strict JSON; NaN and infinities as the texts ``NaN``, ``Infinity`` and ``-Infinity``.

    Raises:
        BadRow: it is nested too deeply.
    """
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        return json.dumps(_without_nan(value), allow_nan=False)
    except RecursionError as error:
        raise BadRow("nested too deeply") from error


def _without_nan(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {name: _without_nan(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return value


def number(value: Any) -> float | None:
    """A finite number, or None for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(value) if math.isfinite(value) else None
        except OverflowError:
            return None
    return None


def kind(value: Any) -> str:
    """What a value is, for messages."""
    if value is None:
        return "null"
    names = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list", dict: "an object"}
    return names.get(type(value), type(value).__name__)


def shown(value: object) -> str:
    """A value of unknown size in an error message."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}… ({len(text)} characters)"

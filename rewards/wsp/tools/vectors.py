"""Vectors in a call: numbers, or a reference to something that the weights or an earlier call hold."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import PlainValidator, WithJsonSchema

from weightgym.rewards.wsp.edits import Floats, frozen
from weightgym.rewards.wsp.profile import LIMITS

FORMS = (
    '"left singular vector 0 of PARAMETER", "right singular vector 2 of PARAMETER", "row 7 of PARAMETER", '
    '"column 7 of PARAMETER" or "captured activation #3"'
)
_SINGULAR = re.compile(r"(left|right) singular vector (\d{1,9})(?: of (\S{1,200}))?", re.ASCII | re.IGNORECASE)
_LINE = re.compile(r"(row|column) (\d{1,9})(?: of (\S{1,200}))?", re.ASCII | re.IGNORECASE)
_CAPTURED = re.compile(r"captured activation #(\d{1,9})", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True)
class Reference:
    """What a vector is. ``parameter`` None: the one that the call is about."""

    kind: Literal["left", "right", "row", "column", "captured"]
    index: int
    parameter: str | None = None

    def __str__(self) -> str:
        if self.kind == "captured":
            return f"captured activation #{self.index}"
        what = f"{self.kind} singular vector" if self.kind in ("left", "right") else self.kind
        return f"{what} {self.index}" + (f" of {self.parameter}" if self.parameter else "")


def parse_vector(value: Any) -> Reference | Floats:
    """A reference, or the numbers as float32.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(value, str):
        return _parse_reference(value)
    if not isinstance(value, list) or not value:
        raise ValueError(f"want a list of numbers, or {FORMS}")
    if len(value) > LIMITS.vector_elements:
        raise ValueError(f"{len(value):,} numbers; at most {LIMITS.vector_elements:,}")
    return frozen(checked_numbers(value))


def checked_numbers(values: list[Any]) -> list[Any]:
    """The values, if all are numbers.

    Raises:
        ValueError: one is not.
    """
    for place, one in enumerate(values):
        if type(one) not in (int, float):
            raise ValueError(f"value {place} is {type(one).__name__}, not a number")
    return values


def _parse_reference(text: str) -> Reference:
    plain = " ".join(text[:300].split())
    kind: Any
    if found := _SINGULAR.fullmatch(plain) or _LINE.fullmatch(plain):
        kind, index, parameter = found.groups()
        return Reference(kind.lower(), int(index), parameter)
    if found := _CAPTURED.fullmatch(plain):
        return Reference("captured", int(found[1]))
    raise ValueError(f"{text[:80]!r} is no reference; write {FORMS}")


def describe(vector: Reference | Floats) -> str:
    """In words, for the edit log."""
    return str(vector) if isinstance(vector, Reference) else f"{len(vector)} values"


def unit(vector: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    """Of length 1, in float64; None where it is zero."""
    wide = np.asarray(vector, dtype=np.float64)
    length = float(np.linalg.norm(wide))
    return wide / length if length else None


Vector = Annotated[
    Reference | Floats,
    PlainValidator(parse_vector),
    WithJsonSchema(
        {
            "anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "string"}],
            "description": f"numbers, or {FORMS}; everything is counted from 0",
        }
    ),
]

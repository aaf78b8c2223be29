"""The edits of weights: what is written down of each, and what it does, bit for bit.

An edit holds all its numbers: whatever it was made from (a singular vector, an activation) is computed once, when it is
made. Applying one is element-wise float32 arithmetic, each operation rounded by itself, in the order written here. So
the same start and the same log give the same bits on every machine.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    PlainValidator,
    SerializationInfo,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from weightgym.rewards.contracts import canonical_json
from weightgym.rewards.wsp.refusals import Refused

Floats = npt.NDArray[np.float32]
Axis = Literal["rows", "columns"]

#: What an edit takes beside its arrays, and an index in memory: on the safe side.
_EDIT_BYTES = 1000
_INDEX_BYTES = 40


def frozen(values: Any) -> Floats:
    """A read-only float32 copy.

    Raises:
        ValueError: a value is not finite as float32.
    """
    try:
        with np.errstate(over="ignore"):
            made = np.array(values, dtype=np.float32, order="C")
    except OverflowError as error:  # an integer of hundreds of digits
        raise ValueError("a value is not a finite float32") from error
    if not np.isfinite(made).all():
        raise ValueError("a value is not a finite float32")
    made.setflags(write=False)
    return made


def _read_array(value: Any, info: ValidationInfo) -> Floats:
    """Values that are there, their bytes as base64, or the name of a tensor in the context's ``tensors``."""
    if isinstance(value, np.ndarray):
        return frozen(value)
    if not isinstance(value, Mapping):
        raise ValueError("want an array")
    if value.keys() == {"tensor"}:
        name, tensors = value["tensor"], (info.context or {}).get("tensors", {})
        if not isinstance(name, str) or name not in tensors:
            raise ValueError(f"no tensor of the name {name!r}")
        return frozen(tensors[name])
    if value.keys() != {"f32", "shape"}:
        raise ValueError("want an array: f32 (base64 of little-endian float32) and shape")
    shape, text = value["shape"], value["f32"]
    if not isinstance(shape, list | tuple) or any(type(size) is not int or size < 0 for size in shape):
        raise ValueError(f"bad shape of an array: {shape!r}")
    try:
        raw = base64.b64decode(text, validate=True)
        return frozen(np.frombuffer(raw, dtype="<f4").reshape(shape))
    except (binascii.Error, TypeError, ValueError) as error:
        raise ValueError(f"bad array: {error}") from error


def _read_number(value: Any) -> float:
    """The nearest float32."""
    if type(value) not in (int, float):
        raise ValueError(f"want a number, not {type(value).__name__}")
    return float(frozen(value))


def _write_array(values: Floats, info: SerializationInfo) -> dict[str, JsonValue]:
    """Base64; or a name, where the context has ``tensors`` to put it into, and a ``prefix`` for names."""
    if info.context is not None:
        tensors = info.context["tensors"]
        name = f"{info.context['prefix']}.{len(tensors)}"
        tensors[name] = values
        return {"tensor": name}
    return {"f32": base64.b64encode(values.astype("<f4").tobytes()).decode(), "shape": list(values.shape)}


Array = Annotated[npt.NDArray[np.float32], PlainValidator(_read_array), PlainSerializer(_write_array, when_used="json")]
Float32 = Annotated[float, PlainValidator(_read_number)]
Index = Annotated[int, Field(ge=0)]


class _Edit(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, arbitrary_types_allowed=True)

    parameter: str
    note: str = Field(default="", max_length=500)  #: in words, what the numbers were made from

    @property
    def nbytes(self) -> int:
        """About what it takes in memory."""
        return _EDIT_BYTES

    def change(self, weight: Floats) -> None:
        """Do it, in place.

        Raises:
            Refused: it does not fit the weight.
        """
        raise NotImplementedError


class RankOne(_Edit):
    """W += left · rightᵀ: each product is rounded, then each sum."""

    kind: Literal["rank_one"] = "rank_one"
    left: Array
    right: Array

    @property
    def nbytes(self) -> int:
        return _EDIT_BYTES + int(self.left.nbytes + self.right.nbytes)

    def change(self, weight: Floats) -> None:
        if weight.ndim != 2 or (self.left.shape, self.right.shape) != ((weight.shape[0],), (weight.shape[1],)):
            raise Refused(
                f"bad_shape: left and right of lengths {_sizes(self.left)} and {_sizes(self.right)} don't fit "
                f"{self.parameter}, which is {_sizes(weight)}"
            )
        weight += np.multiply.outer(self.left, self.right)


class Scale(_Edit):
    """Rows or columns times a factor; one that is named twice is scaled once. A factor of 0 leaves 0, never −0."""

    kind: Literal["scale"] = "scale"
    axis: Axis
    indices: tuple[Index, ...]
    factor: Float32

    @property
    def nbytes(self) -> int:
        return _EDIT_BYTES + _INDEX_BYTES * len(self.indices)

    def change(self, weight: Floats) -> None:
        _check_indices(self, weight)
        indices = np.array(self.indices, dtype=np.int64)
        picked: Any = indices if self.axis == "rows" else (slice(None), indices)
        weight[picked] = weight[picked] * np.float32(self.factor) if self.factor else 0.0


class Put(_Edit):
    """A block, from a row (and column) up to but without another, becomes these values; or one value everywhere."""

    kind: Literal["put"] = "put"
    rows: tuple[Index, Index]
    columns: tuple[Index, Index] | None  #: None: the parameter is a vector
    values: Array  #: of the block's shape, or of no dimensions

    @property
    def nbytes(self) -> int:
        return _EDIT_BYTES + int(self.values.nbytes)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.values.ndim and self.values.shape != self.block:
            raise ValueError(f"values of shape {_sizes(self.values)} for a block of {self.block}")
        return self

    @property
    def block(self) -> tuple[int, ...]:
        """The block's shape."""
        ranges = (self.rows,) if self.columns is None else (self.rows, self.columns)
        return tuple(max(end - begin, 0) for begin, end in ranges)

    def change(self, weight: Floats) -> None:
        ranges = (self.rows,) if self.columns is None else (self.rows, self.columns)
        if len(ranges) != weight.ndim or any(
            not begin < end <= size for (begin, end), size in zip(ranges, weight.shape, strict=True)
        ):
            where = ", ".join(f"{begin}:{end}" for begin, end in ranges)
            raise Refused(f"bad_slice: [{where}] is no block of {self.parameter}, which is {_sizes(weight)}")
        weight[tuple(slice(begin, end) for begin, end in ranges)] = self.values


Edit = RankOne | Scale | Put
AnyEdit = Annotated[Edit, Field(discriminator="kind")]
_EDITS: TypeAdapter[list[Edit]] = TypeAdapter(list[AnyEdit])


def write_edits(edits: Sequence[Edit]) -> list[JsonValue]:
    """The edits as JSON, without loss."""
    written: list[JsonValue] = _EDITS.dump_python(list(edits), mode="json")
    return written


def read_edits(written: JsonValue, tensors: Mapping[str, Any] | None = None) -> list[Edit]:
    """The edits of ``write_edits``, whoever wrote them.

    Args:
        written: the JSON value.
        tensors: arrays that it may refer to by name, as ``{"tensor": name}``.

    Raises:
        Refused: it is no list of edits.
    """
    try:
        return _EDITS.validate_json(canonical_json(written), context={"tensors": tensors or {}})
    except (ValidationError, ValueError, RecursionError) as error:
        line = " ".join(str(error).split())
        raise Refused(f"bad_edit_log: {line[:300]}") from error


def _check_indices(edit: Scale, weight: Floats) -> None:
    if edit.axis == "columns" and weight.ndim != 2:
        raise Refused(f"bad_axis: {edit.parameter} is a vector: it has rows only")
    size = weight.shape[0 if edit.axis == "rows" else 1]
    if not edit.indices:
        raise Refused("bad_index: there are no indices")
    if (largest := max(edit.indices)) >= size:
        raise Refused(f"bad_index: {edit.axis[:-1]} {largest} of {edit.parameter}, which has 0 to {size - 1}")


def _sizes(array: Floats) -> str:
    return "×".join(map(str, array.shape)) or "1"

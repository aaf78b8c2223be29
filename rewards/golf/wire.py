"""The trusted side of the frames in which we talk with ``runner.py``. What arrives is believed in nothing.

A frame is ``b"WGF1"``, the header's length (uint32), the header and the tensors' bytes, one after the other, all little
endian and row-major. The header is the JSON object ``{"kind": str, "fields": {...}, "tensors": [[name, dtype,
shape], ...]}`` in UTF-8. There is nothing in it that could run.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NoReturn

import numpy as np

MAGIC = b"WGF1"
HEADER_LIMIT = 1 << 20  #: bytes
#: Names that frames use, and how NumPy holds such a tensor. It has no bfloat16: the 16 bits stand for it.
DTYPES: dict[str, np.dtype[Any]] = {
    "float64": np.dtype("<f8"), "float32": np.dtype("<f4"), "float16": np.dtype("<f2"), "bfloat16": np.dtype("<u2"),
    "int64": np.dtype("<i8"), "int32": np.dtype("<i4"), "int16": np.dtype("<i2"), "int8": np.dtype("i1"),
    "uint8": np.dtype("u1"), "bool": np.dtype("?"),
}  # fmt: skip
_CHUNK = 1 << 20


class WireError(Exception):
    """What arrived is not a frame, or not one within the limits. The other side is at fault."""


@dataclass(frozen=True)
class Limits:
    """What a frame may hold at most."""

    tensors: int = 4096
    body: int = 1 << 29  #: bytes of all tensors
    dimensions: int = 8
    name: int = 300  #: characters
    fields: int = 32
    text: int = 1000  #: characters of a field


@dataclass(frozen=True)
class Tensor:
    """A tensor as it was sent: ``dtype`` is a key of ``DTYPES``, ``array`` has the NumPy dtype that stands for it."""

    dtype: str
    array: np.ndarray[Any, Any]

    @classmethod
    def of(cls, array: np.ndarray[Any, Any]) -> Tensor:
        """The array under its own dtype."""
        name = array.dtype.name
        if DTYPES.get(name) != array.dtype:
            raise ValueError(f"a frame can't carry an array of dtype {array.dtype}")
        return cls(name, array)


@dataclass(frozen=True)
class Frame:
    """One message. Fields that arrive are None, bool, int, finite float or text."""

    kind: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    tensors: Mapping[str, Tensor] = field(default_factory=dict)


def write_frame(writer: BinaryIO, frame: Frame) -> None:
    """Send a frame of ours. Its fields may be any JSON."""
    specs = [[name, tensor.dtype, list(tensor.array.shape)] for name, tensor in frame.tensors.items()]
    header = {"kind": frame.kind, "fields": dict(frame.fields), "tensors": specs}
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    if len(text) > HEADER_LIMIT:
        raise ValueError(f"a header of {len(text)} bytes; at most {HEADER_LIMIT}")
    writer.write(struct.pack("<4sI", MAGIC, len(text)) + text)
    for tensor in frame.tensors.values():
        if tensor.array.size:
            writer.write(np.ascontiguousarray(tensor.array).reshape(-1).view(np.uint8).data)
    writer.flush()


def read_frame(reader: BinaryIO, limits: Limits = Limits()) -> Frame:
    """Receive one frame. Memory grows with what arrives, not with what was announced.

    Raises:
        WireError: it ended early, or is not a frame within the limits.
    """
    start = bytes(_receive(reader, 8))
    magic, size = struct.unpack("<4sI", start)
    if magic != MAGIC:
        raise WireError("no frame begins here")
    if size > HEADER_LIMIT:
        raise WireError(f"a header of {size} bytes")
    kind, fields, specs = _header(bytes(_receive(reader, size)), limits)
    tensors = {}
    for name, dtype, shape, length in specs:
        array = np.frombuffer(_receive(reader, length), dtype=np.uint8)
        if dtype == "bool" and array.size and int(array.max()) > 1:
            raise WireError("a truth value that is neither 0 nor 1")
        tensors[name] = Tensor(dtype, array.view(DTYPES[dtype]).reshape(shape))
    return Frame(kind, fields, tensors)


def _receive(reader: BinaryIO, size: int) -> bytearray:
    block = bytearray()
    while len(block) < size:
        part = reader.read(min(size - len(block), _CHUNK))
        if not part:
            raise WireError("the frame ends early")
        block += part
    return block


def _header(text: bytes, limits: Limits) -> tuple[str, dict[str, Any], list[tuple[str, str, tuple[int, ...], int]]]:
    try:
        header = json.loads(
            text.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_constant, parse_float=_finite
        )
    except (ValueError, RecursionError) as error:
        raise WireError(f"the header is not JSON as agreed: {type(error).__name__}") from None
    if type(header) is not dict or set(header) != {"kind", "fields", "tensors"}:
        raise WireError("the header lacks a part or has one too many")
    kind, fields, specs = header["kind"], header["fields"], header["tensors"]
    if type(kind) is not str or len(kind) > 32 or not kind.isprintable():
        raise WireError("a bad kind")
    if type(fields) is not dict or len(fields) > limits.fields:
        raise WireError("bad fields")
    for name, value in fields.items():
        if len(name) > limits.name or type(value) not in (type(None), bool, int, float, str):
            raise WireError("a bad field")
        if isinstance(value, str) and len(value) > limits.text:
            raise WireError("a field that is too long")
        if type(value) is int and not -(1 << 63) <= value < 1 << 63:
            raise WireError("a field that is out of range")
    if type(specs) is not list or len(specs) > limits.tensors:
        raise WireError("a bad list of tensors")
    return kind, fields, _specs(specs, limits)


def _specs(specs: list[Any], limits: Limits) -> list[tuple[str, str, tuple[int, ...], int]]:
    known: set[str] = set()
    checked = []
    left = limits.body
    for spec in specs:
        if type(spec) is not list or len(spec) != 3:
            raise WireError("a bad tensor")
        name, dtype, shape = spec
        if type(name) is not str or len(name) > limits.name or not name.isprintable() or name in known:
            raise WireError("a tensor's name is bad or there twice")
        if type(dtype) is not str or dtype not in DTYPES:
            raise WireError("a tensor of an unknown dtype")
        if type(shape) is not list or len(shape) > limits.dimensions:
            raise WireError("a tensor of a bad shape")
        if any(type(side) is not int or side < 0 for side in shape):
            raise WireError("a tensor of a bad shape")
        if math.prod(max(side, 1) for side in shape) > limits.body:  # a side of 0 would hide the others
            raise WireError(f"more than {limits.body} bytes of tensors")
        length = math.prod(shape) * DTYPES[dtype].itemsize
        left -= length
        if left < 0:
            raise WireError(f"more than {limits.body} bytes of tensors")
        known.add(name)
        checked.append((name, dtype, tuple(shape), length))
    return checked


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is out of range")
    return value

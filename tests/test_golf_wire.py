"""Frames from the untrusted side: whatever comes is a frame within the limits or a WireError."""

from __future__ import annotations

import io
import json
import struct
import tracemalloc
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from weightgym.rewards.golf import runner
from weightgym.rewards.golf.wire import DTYPES, HEADER_LIMIT, MAGIC, Frame, Limits, Tensor, WireError, read_frame
from weightgym.rewards.golf.wire import write_frame as send

SMALL = Limits(tensors=4, body=1 << 16)


def raw(header: Any, body: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<4sI", MAGIC, len(text)) + text + body


def received(data: bytes, limits: Limits = SMALL) -> Frame:
    return read_frame(io.BytesIO(data), limits)


def header(**parts: Any) -> dict[str, Any]:
    return {"kind": "state", "fields": {}, "tensors": []} | parts


def one(name: Any = "w", dtype: Any = "float32", shape: Any = (2,)) -> dict[str, Any]:
    return header(tensors=[[name, dtype, list(shape) if isinstance(shape, tuple) else shape]])


@pytest.mark.parametrize("dtype", sorted(DTYPES))
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 3)])
def test_both_sides_understand_each_other(dtype: str, shape: tuple[int, ...]) -> None:
    bits = np.random.default_rng(0).integers(0, 2, (*shape, DTYPES[dtype].itemsize), np.uint8)
    array = bits.view(DTYPES[dtype])[..., 0]
    ours = io.BytesIO()
    send(ours, Frame("state", {"a": [1, {"b": 0.5}]}, {"w": Tensor(dtype, array)}))
    ours.seek(0)
    kind, fields, tensors = runner.read_frame(ours)
    assert (kind, fields, tensors["w"].dtype) == ("state", {"a": [1, {"b": 0.5}]}, runner.DTYPES[dtype])
    theirs = io.BytesIO()
    runner.write_frame(theirs, "state", {"claimed": 5}, tensors)
    frame = received(theirs.getvalue())
    assert frame.fields == {"claimed": 5}
    assert frame.tensors["w"].dtype == dtype
    assert frame.tensors["w"].array.shape == shape
    assert frame.tensors["w"].array.tobytes() == array.tobytes()


def test_views_and_strides_arrive_as_they_look() -> None:
    theirs = io.BytesIO()
    base = torch.arange(12.0).reshape(3, 4)
    runner.write_frame(theirs, "state", {}, {"t": base.T, "s": base[:, ::2], "e": base[:1].expand(3, 4)})
    frame = received(theirs.getvalue())
    assert frame.tensors["t"].array.tolist() == base.T.tolist()
    assert frame.tensors["s"].array.tolist() == base[:, ::2].tolist()
    assert frame.tensors["e"].array.tolist() == base[:1].expand(3, 4).tolist()


def test_several_frames_in_a_row() -> None:
    stream = io.BytesIO(raw(one(), b"12345678") + raw(header(kind="end")))
    assert read_frame(stream).kind == "state"
    assert read_frame(stream).kind == "end"
    with pytest.raises(WireError):
        read_frame(stream)


GOOD = raw(one(shape=(2, 3)), bytes(24))


@given(st.integers(0, len(GOOD) - 1))
def test_a_frame_that_ends_early(size: int) -> None:
    with pytest.raises(WireError):
        received(GOOD[:size])


@settings(max_examples=300)
@given(st.binary(max_size=200))
@example(b"")
def test_random_bytes(data: bytes) -> None:
    with pytest.raises(WireError):
        received(data)


@settings(max_examples=500)
@given(st.integers(0, len(GOOD) - 1), st.integers(0, 255))
def test_one_changed_byte_gives_a_frame_or_an_error(place: int, value: int) -> None:
    data = bytearray(GOOD)
    data[place] = value
    try:
        frame = received(bytes(data))
    except WireError:
        return
    assert sum(tensor.array.nbytes for tensor in frame.tensors.values()) <= 24


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=300)
@given(JSON, JSON, JSON, JSON)
def test_any_json_in_the_header(kind: Any, fields: Any, tensors: Any, whole: Any) -> None:
    for text in ({"kind": kind, "fields": fields, "tensors": tensors}, whole, one(kind, fields, tensors)):
        try:
            received(raw(text, bytes(64)))
        except WireError:
            continue


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"null",
        b"\xff\xfe",
        b'{"kind": "a", "fields": {}, "tensors": [], "more": 1}',
        b'{"kind": "a", "kind": "b", "fields": {}, "tensors": []}',
        b'{"kind": "a", "fields": {"x": 1, "x": 2}, "tensors": []}',
        b'{"kind": "a", "fields": {"x": NaN}, "tensors": []}',
        b'{"kind": "a", "fields": {"x": Infinity}, "tensors": []}',
        b'{"kind": "a", "fields": {"x": 1e999}, "tensors": []}',
        b'{"kind": "a", "fields": {"x": ' + b"9" * 5000 + b'}, "tensors": []}',
        b'{"kind": "a", "fields": {"x": ' + b"9" * 30 + b'}, "tensors": []}',
        b'{"kind": "a", "fields": {"x": []}, "tensors": []}',
        b'{"kind": "a", "fields": {"x": "' + b"y" * 2000 + b'"}, "tensors": []}',
        b'{"kind": "a\\u0000", "fields": {}, "tensors": []}',
        b"[" * (HEADER_LIMIT - 10),
        b'{"a":' * 100_000,
    ],
)
def test_bad_headers(text: bytes) -> None:
    with pytest.raises(WireError):
        received(raw(text))


@pytest.mark.parametrize(
    "bad",
    [
        one(name=5), one(name="n" * 999), one(name="a\nb"), one(name="\ud800"), one(dtype="object"), one(dtype="O"),
        one(dtype=["float32"]), one(dtype="complex64"), one(shape=5), one(shape=(-2,)), one(shape=(-2, -1)),
        one(shape=(True,)), one(shape=(2.0,)), one(shape=("2",)), one(shape=(1,) * 9), one(shape=(1 << 40,)),
        one(shape=(1 << 70, 0)), one(shape=(0, 1 << 40, 1 << 40)), one(shape=(1 << 32, 1 << 32)),
        header(tensors=[["w", "int8", [1]], ["w", "int8", [1]]]), header(tensors=[["w", "int8", [0]]] * 5),
        header(tensors=[["a", "int8", [1 << 15]], ["b", "int8", [1 << 15]], ["c", "int8", [1]]]),
        header(tensors={}), header(tensors=[{}]), header(tensors=[["w", "int8"]]), header(fields=[]),
        header(fields={str(n): n for n in range(99)}),
    ],
)  # fmt: skip
def test_bad_tensors(bad: dict[str, Any]) -> None:
    with pytest.raises(WireError):
        received(raw(bad, bytes(1 << 17)))


def test_a_huge_header_is_not_read() -> None:
    with pytest.raises(WireError, match="header of"):
        received(struct.pack("<4sI", MAGIC, 0xFFFFFFFF))


def test_truth_values_are_0_and_1() -> None:
    with pytest.raises(WireError):
        received(raw(one(dtype="bool"), b"\x01\x02"))


def test_memory_follows_what_arrives_and_not_what_is_announced() -> None:
    tracemalloc.start()
    with pytest.raises(WireError):
        received(raw(one(dtype="int8", shape=(1 << 29,)), b"12"), Limits())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


def test_what_arrives_is_little_endian_and_kept_to_the_bit() -> None:
    frame = received(raw(one(dtype="float32", shape=(1,)), struct.pack("<I", 0x7FC01234)))
    assert frame.tensors["w"].array.view(np.uint32)[0] == 0x7FC01234

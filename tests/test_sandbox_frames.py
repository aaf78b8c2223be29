"""The format of frames: what goes in comes out, and garbage is refused, whatever it is."""

from __future__ import annotations

import contextlib
import struct
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weightgym.rewards.sandbox.inside import frames
from weightgym.rewards.sandbox.inside.frames import FrameError, Tensor

SIZES = dict(frames.DTYPES)


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    dtype = draw(st.sampled_from(sorted(SIZES)))
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=4)))
    count = SIZES[dtype]
    for extent in shape:
        count *= extent
    return Tensor(dtype, shape, draw(st.binary(min_size=count, max_size=count)))


NAMES = st.text(st.characters(codec="utf-8"), max_size=300)
VALUES = (
    st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.binary() | st.text(st.characters(codec="utf-8"))
) | tensors()


def pack(items: dict[str, Any]) -> bytes:
    return b"".join(map(bytes, frames.encode(items)))


def same(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value._replace(data=bytes(value.data))
    return bytes(value) if isinstance(value, memoryview) else value


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(NAMES, VALUES, max_size=6))
def test_round_trip(items: dict[str, Any]) -> None:
    packed = pack(items)
    assert frames.body_length(packed[: frames.HEADER.size]) == len(packed) - frames.HEADER.size
    read = frames.decode(packed[frames.HEADER.size :])
    assert {name: same(value) for name, value in read.items()} == items
    assert [type(same(value)) for value in read.values()] == [type(value) for value in items.values()]


@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=3), st.data())
def test_cut_short_is_refused_or_another_frame(items: dict[str, Any], data: st.DataObject) -> None:
    body = pack(items)[frames.HEADER.size :]
    cut = data.draw(st.integers(1, len(body) - 1))
    with contextlib.suppress(FrameError):
        assert len(frames.decode(body[:cut])) < len(items)


@given(st.binary(max_size=200))
def test_garbage_never_breaks_it(body: bytes) -> None:
    with contextlib.suppress(FrameError):
        frames.decode(body)


def item(kind: bytes, rest: bytes, name: bytes = b"a") -> bytes:
    return kind + struct.pack("<H", len(name)) + name + rest


@pytest.mark.parametrize(
    "body",
    [
        item(b"i", bytes(7)),
        item(b"p", b"cos\nsystem\n"),
        item(b"b", struct.pack("<Q", 2**64 - 1)),
        item(b"s", struct.pack("<Q", 1) + b"\xff"),
        item(b"i", bytes(8), name=b"\xff"),
        item(b"i", bytes(8)) * 2,
        item(b"t", struct.pack("<BB", 99, 0)),
        item(b"t", struct.pack("<BB", 0, 9) + bytes(72)),
        item(b"t", struct.pack("<BBQQ", 7, 2, 2**63, 2**63)),
        item(b"t", struct.pack("<BBQ", 7, 1, 2) + bytes(7)),
        b"i\xff\xff" + b"a" * 20,
    ],
)
def test_broken_frames(body: bytes) -> None:
    with pytest.raises(FrameError):
        frames.decode(body)


def test_too_many_items() -> None:
    body = b"".join(item(b"b", bytes(8), name=b"%d" % number) for number in range(frames.MAX_ITEMS + 1))
    with pytest.raises(FrameError, match="too many"):
        frames.decode(body)


class Int(int):
    pass


@pytest.mark.parametrize("value", [Int(1), True, None, [1], {"a": 1}, 1j])
def test_only_exact_types_are_packed(value: Any) -> None:
    with pytest.raises(TypeError):
        frames.encode({"a": value})

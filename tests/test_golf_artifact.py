"""What an artifact weighs: honest schemes pay what they claim, forged ones what they hold."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from weightgym.rewards.golf.artifact import ClaimError, account, audited_bytes, canonical
from weightgym.rewards.golf.tensors import DTYPES, Tensor

Array = np.ndarray[Any, Any]
Scheme = Callable[[Array], tuple[Array, bytes]]


def trained(seed: int = 0) -> dict[str, Array]:
    """Weights of the shapes and spread that a small trained model has."""
    draws = np.random.default_rng(seed)
    shapes = {"emb": (256, 192), "pos": (1, 512, 192), "norm": (192,), "conv": (64, 64, 4)}
    shapes |= {f"{n}.{part}": shape for n in range(2) for part, shape in
               {"qkv": (576, 192), "proj": (192, 192), "up": (384, 192), "down": (192, 384)}.items()}  # fmt: skip
    state = {}
    for name, shape in shapes.items():
        spread = np.exp(0.5 * draws.standard_normal((shape[0],) + (1,) * (len(shape) - 1)))
        heavy = draws.standard_t(6, shape) if name != "norm" else 1 + 0.1 * draws.standard_normal(shape)
        state[name] = (0.03 * spread * heavy).astype(np.float32)
    return state


def f32(array: Array) -> Array:
    return array.astype(np.float32)


def int8_tensor(w: Array) -> tuple[Array, bytes]:
    scale = np.float32(np.quantile(np.abs(w), 0.9995) / 127)
    q = np.clip(np.round(w / scale), -127, 127).astype(np.int8)
    return f32(q) * scale, q.tobytes() + scale.tobytes()


def int8_rows(w: Array) -> tuple[Array, bytes]:
    m = w.reshape(len(w), -1) if w.ndim > 1 else w[None]
    scale = f32(np.abs(m).max(1, keepdims=True) / 127)
    q = np.clip(np.round(m / scale), -127, 127)  # keeps negative zeros, as torch.round does
    return (f32(q) * scale).reshape(w.shape), q.astype(np.int8).tobytes() + scale.tobytes()


def packed4(q: Array) -> bytes:
    flat = q.astype(np.uint8).reshape(-1)
    flat = np.append(flat, np.zeros(len(flat) % 2, np.uint8))
    return (flat[::2] * 16 + flat[1::2]).tobytes()


def int4_rows(w: Array) -> tuple[Array, bytes]:
    m = w.reshape(len(w), -1) if w.ndim > 1 else w[None]
    scale = f32(np.abs(m).max(1, keepdims=True) / 7).astype(np.float16)
    q = np.clip(np.round(m / f32(scale)), -7, 7)
    return (f32(q) * f32(scale)).reshape(w.shape), packed4(q + 8) + scale.tobytes()


def int4_blocks(w: Array, length: int = 64) -> tuple[Array, bytes]:
    flat = np.append(w.reshape(-1), np.zeros(-w.size % length, np.float32)).reshape(-1, length)
    scale = np.maximum(np.abs(flat).max(1, keepdims=True) / 7, 1e-4).astype(np.float16)
    q = np.clip(np.round(flat / f32(scale)), -7, 7)
    return (f32(q) * f32(scale)).reshape(-1)[: w.size].reshape(w.shape), packed4(q + 8) + scale.tobytes()


def int4_columns(w: Array) -> tuple[Array, bytes]:
    if w.ndim != 2:
        return int4_rows(w)
    back, packed = int4_rows(np.ascontiguousarray(w.T))
    return np.ascontiguousarray(back.T), packed


def affine4_rows(w: Array) -> tuple[Array, bytes]:
    m = w.reshape(len(w), -1) if w.ndim > 1 else w[None]
    low, high = m.min(1, keepdims=True), m.max(1, keepdims=True)
    scale = (high - low) / np.float32(15)
    q = np.clip(np.round((m - low) / scale), 0, 15)
    return (f32(q) * scale + low).reshape(w.shape), packed4(q) + scale.tobytes() + low.tobytes()


def int3_rows(w: Array) -> tuple[Array, bytes]:
    m = w.reshape(len(w), -1) if w.ndim > 1 else w[None]
    scale = f32(np.abs(m).max(1, keepdims=True) / 3)
    q = np.clip(np.round(m / scale), -3, 3)
    bits = ((q + 3).astype(np.uint8).reshape(-1)[:, None] >> np.arange(3)) & 1
    return (f32(q) * scale).reshape(w.shape), np.packbits(bits.astype(bool)).tobytes() + scale.tobytes()


def ternary(w: Array) -> tuple[Array, bytes]:
    scale = np.float32(np.abs(w).mean())
    q = np.clip(np.round(w / scale), -1, 1)
    digits = np.append((q + 1).reshape(-1), np.zeros(-w.size % 5)).reshape(-1, 5)
    return f32(q) * scale, (digits @ 3 ** np.arange(5)).astype(np.uint8).tobytes() + scale.tobytes()


def codebook(w: Array) -> tuple[Array, bytes]:
    levels = np.quantile(w, (np.arange(16) + 0.5) / 16).astype(np.float32)
    q = np.abs(w[..., None] - levels).argmin(-1)
    return levels[q], packed4(q) + levels.tobytes()


def codebook_rows(w: Array) -> tuple[Array, bytes]:
    m = w.reshape(len(w), -1) if w.ndim > 1 else w[None]
    levels = f32(np.quantile(m, (np.arange(8) + 0.5) / 8, axis=1).T.astype(np.float16))
    q = np.abs(m[..., None] - levels[:, None]).argmin(-1)
    bits = (q.astype(np.uint8).reshape(-1)[:, None] >> np.arange(3)) & 1
    packed = np.packbits(bits.astype(bool)).tobytes() + levels.astype(np.float16).tobytes()
    return np.take_along_axis(levels, q, 1).reshape(w.shape), packed


def half(w: Array) -> tuple[Array, bytes]:
    short = w.astype(np.float16)
    return f32(short), short.tobytes()


def brain(w: Array) -> tuple[Array, bytes]:
    bits = w.view(np.uint32) & np.uint32(0xFFFF0000)
    return bits.view(np.float32), (bits >> np.uint32(16)).astype(np.uint16).tobytes()


def full(w: Array) -> tuple[Array, bytes]:
    return w, w.tobytes()


def sparse(w: Array) -> tuple[Array, bytes]:
    kept = np.abs(w) >= np.quantile(np.abs(w), 0.9)
    return np.where(kept, w, np.float32(0)), np.packbits(kept).tobytes() + w[kept].tobytes()


def mixed_rows(w: Array) -> tuple[Array, bytes]:
    if len(w) < 2 or w.ndim < 2:
        return int8_rows(w)
    (a, p), (b, r) = int8_rows(w[: len(w) // 2]), int4_rows(w[len(w) // 2 :])
    return np.concatenate([a, b]), p + r


SCHEMES: list[Scheme] = [int8_tensor, int8_rows, int4_rows, int4_blocks, int4_columns, affine4_rows, int3_rows, ternary,
                         codebook, codebook_rows, half, brain, full, sparse, mixed_rows]  # fmt: skip


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.__name__)
def test_honest_schemes_pay_what_they_claim(scheme: Scheme) -> None:
    state, blob = {}, b""
    for name, w in trained().items():
        back, packed = scheme(w)
        state[name] = Tensor.of(back)
        blob += packed
    claimed = len(zlib.compress(blob, 9))
    assert audited_bytes(state) <= 1.10 * claimed


def test_a_long_tail_of_rows_that_were_never_trained() -> None:
    w = np.random.default_rng(1).normal(0, 0.02, (4096, 64)).astype(np.float32)
    w[np.random.default_rng(2).random(4096) < 0.7] = 0
    back, packed = int4_blocks(w)
    assert audited_bytes({"w": Tensor.of(back)}) <= 1.10 * len(zlib.compress(packed, 9))


def test_tied_and_repeated_tensors_count_once() -> None:
    w = np.random.default_rng(0).standard_normal((256, 64)).astype(np.float32)
    once = audited_bytes({"a": Tensor.of(w)})
    assert audited_bytes({"a": Tensor.of(w), "b": Tensor.of(w.copy())}) <= once + 16
    assert audited_bytes({"a": Tensor.of(np.stack([w] * 6))}) <= once + 16


def test_packed_codes_in_the_state() -> None:
    packed = np.random.default_rng(0).integers(0, 256, 100_000, dtype=np.uint8)
    assert 100_000 <= audited_bytes({"q": Tensor.of(packed)}) <= 100_500
    wide = np.random.default_rng(0).integers(-8, 8, 100_000)  # four bits each, as int64
    assert audited_bytes({"q": Tensor.of(wide)}) <= 51_000


def test_no_16_bit_tensor_costs_more_than_its_bytes() -> None:
    bits = np.random.default_rng(0).integers(0, 1 << 16, 20_000, dtype=np.uint16)
    bits[(bits & 0x7F80) == 0x7F80] = 0
    assert audited_bytes({"q": Tensor("bfloat16", bits)}) <= 40_100


HELD = np.random.default_rng(5).standard_normal(200_000).astype(np.float32) * np.float32(0.05)


def test_float_state_under_a_claim_of_two_bits() -> None:
    books = account(len(HELD) // 4, {"w": Tensor.of(HELD)}, b"x" * 100)
    assert books.audited > 3.3 * len(HELD)
    assert books.total == books.audited + 100


def test_a_claim_above_the_audit_counts() -> None:
    assert account(10_000, {"w": Tensor.of(np.zeros(10, np.float32))}, b"").total == 10_000


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_a_payload_in_the_low_bits_of_a_grid_is_charged(bits: int) -> None:
    grid, _ = int4_rows(HELD.reshape(200, 1000))
    clean = audited_bytes({"w": Tensor.of(grid)})
    payload = np.random.default_rng(6).integers(0, 1 << bits, grid.shape, dtype=np.uint32)
    hidden = (grid.view(np.uint32) ^ payload).view(np.float32)
    hidden[grid == 0] = 0
    room = int((grid != 0).sum()) * bits / 8
    assert audited_bytes({"w": Tensor.of(hidden)}) >= clean + 0.9 * room


def test_a_payload_in_the_signs_of_zeros_is_lost() -> None:
    zeros = np.where(np.random.default_rng(0).random(10_000) < 0.5, np.float32(-0.0), np.float32(0.0))
    halves = Tensor("bfloat16", np.where(zeros.view(np.uint32) > 0, np.uint16(0x8000), np.uint16(0)))
    served = canonical({"w": Tensor.of(zeros), "h": halves})
    assert not np.signbit(served["w"].array).any()
    assert not served["h"].array.any()
    assert audited_bytes({"w": Tensor.of(zeros)}) < 32


def test_a_payload_in_nans_is_charged() -> None:
    payload = np.random.default_rng(0).integers(1, 1 << 22, 10_000, dtype=np.uint32)
    nans = (payload | np.uint32(0x7FC00000)).view(np.float32)
    assert audited_bytes({"w": Tensor.of(nans)}) >= 10_000 * 22 / 8


@pytest.mark.parametrize("dtype", sorted(DTYPES))
def test_random_bits_of_every_dtype_are_charged_whole(dtype: str) -> None:
    raw = np.random.default_rng(0).bytes(40_000)
    array = np.frombuffer(raw, np.uint8) > 127 if dtype == "bool" else np.frombuffer(raw, DTYPES[dtype])
    least = 5_000 if dtype == "bool" else 40_000
    assert 0.98 * least <= audited_bytes({"w": Tensor(dtype, array)}) <= 1.02 * least + 64


class Negative(int):
    """An int that is not one."""


@pytest.mark.parametrize("claim", [-1, 1.0, True, None, "1", Negative(5), 1 << 50, float("nan")])
def test_claims_that_are_no_plain_count_are_refused(claim: Any) -> None:
    with pytest.raises(ClaimError):
        account(claim, {}, b"")


def test_odd_shapes() -> None:
    for shape in ((), (0,), (1,), (3, 0, 5), (1, 1, 1), (7,), (2, 3), (33,), (1, 40), (40, 1)):
        for value in (0.0, 1.5, np.inf, np.nan, 1e-42):
            assert audited_bytes({"w": Tensor.of(np.full(shape, value, np.float32))}) < 64


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["noise", "int4"])
def test_64_megabytes_take_seconds(kind: str) -> None:
    w = np.random.default_rng(0).standard_normal((4096, 4096), dtype=np.float32)
    if kind == "int4":
        w, _ = int4_rows(w)
    started = time.process_time()
    audited_bytes({"w": Tensor.of(w)})
    assert time.process_time() - started < 30


@pytest.mark.slow
def test_thousands_of_tensors_take_seconds() -> None:
    draws = np.random.default_rng(0)
    state = {str(n): Tensor.of(draws.standard_normal((64, 64), dtype=np.float32)) for n in range(4096)}
    started = time.process_time()
    assert audited_bytes(state) > 16_000_000  # the true number is 56 million
    assert time.process_time() - started < 30


def test_names_and_shapes_are_charged() -> None:
    raw = np.random.default_rng(0).bytes(30_000)
    empty = Tensor.of(np.zeros(0, np.float32))
    named = {raw[at : at + 1000].hex(): empty for at in range(0, len(raw), 1000)}
    assert len(raw) <= audited_bytes(named) <= 1.2 * len(raw)
    sides = [tuple(np.frombuffer(raw[at : at + 4], np.uint16).tolist()) for at in range(0, 8000, 4)]
    shaped = {str(at): Tensor.of(np.zeros((*side, 0), np.float32)) for at, side in enumerate(sides)}
    assert audited_bytes(shaped) >= 8000


def test_what_is_too_much_to_look_at_is_over_the_cap() -> None:
    started = time.perf_counter()
    assert audited_bytes({"w": Tensor.of(np.zeros(40_000_000, np.float32))}) > 16_000_000
    assert time.perf_counter() - started < 10
    assert audited_bytes({"w": Tensor.of(np.zeros(4_000_000, np.float32))}) < 100

"""Proof that this machine's engine computes tanh and exp as profile wpb-v1 wants them: correctly rounded to float32."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

#: Bits of the float32 inputs whose exact result lies closest to a rounding tie (within 3e-15, found by a full sweep in
#: extended precision): what a slightly worse implementation gets wrong first.
HARD_TANH = (
    0x3AC37DE2,
    0x3CD41B91,
    0x3D7C3055,
    0x3EEE0566,
    0x3FF8BC7E,
    0x4013CD84,
    0x40A6EF82,
    0x40ACB4D0,
    0x40C5E8CA,
)
HARD_EXP = (
    0xB2FFFFFF,
    0xB3000000,
    0xB7C9C09F,
    0xB7F4C0EA,
    0xBA7242A6,
    0xBAE0E25C,
    0xBBB70EE8,
    0xBBF0EDF1,
    0xBC2A461A,
    0xBCB8F40F,
    0xBDB393EB,
    0xBFBFA14B,
    0xC0781533,
    0xC13D6631,
    0xC16912CD,
)

_TANH_END = 0x41104000  # 9.015625: from here on tanh rounds to 1
_EXP_END = 0x42AE0000  # 87: below -87 the rules say 0
_SIGN = 0x80000000
_SWEEP_BLOCK = 1 << 24


@dataclass(frozen=True)
class Row:
    """One function on one kernel: how many inputs were checked, how many results were wrong."""

    name: str
    checked: int
    wrong: int


def sample(loop: Any) -> list[Row]:
    """A few thousand inputs, the hard ones included, against Python's float64 functions. Takes milliseconds."""
    spread = np.linspace(0, _TANH_END, 2000).astype(np.uint32)
    tanh_bits = np.concatenate([spread, spread | _SIGN, np.array(HARD_TANH, np.uint32)])
    spread = np.linspace(0, _EXP_END + 8, 2000).astype(np.uint32) | np.uint32(_SIGN)
    exp_bits = np.concatenate([spread, np.array(HARD_EXP, np.uint32)])
    rows = []
    for kernel in loop.kernels():
        for name, exponential, bits in (("tanh", False, tanh_bits), ("exp", True, exp_bits)):
            x = bits.view(np.float32)
            got = np.frombuffer(loop.rounded(exponential, x, kernel), np.float32)
            rows.append(Row(f"{name} ({kernel})", len(x), int((got != _judge(exponential, x)).sum())))
    return rows


def _judge(exponential: bool, x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    if exponential:
        return np.array([0.0 if v < -87.0 else math.exp(v) for v in x.tolist()]).astype(np.float32)
    return np.array([math.tanh(v) for v in x.tolist()]).astype(np.float32)


def sweep(loop: Any, *, threads: int, progress: Callable[[float], None]) -> list[Row]:
    """Every float32 input of both functions against the C library's float64 functions. Takes minutes.

    Covers tanh on 0…9.015625 with both signs, and exp on -87…0; beyond, both are constant.
    """
    jobs = [
        (f"{name} ({kernel})", exponential, start | sign, min(start + _SWEEP_BLOCK - 1, end) | sign, kernel)
        for kernel in loop.kernels()
        for name, exponential, sign, end in (
            ("tanh", False, 0, _TANH_END),
            ("tanh", False, _SIGN, _TANH_END),
            ("exp", True, _SIGN, _EXP_END),
        )
        for start in range(0, end + 1, _SWEEP_BLOCK)
    ]
    totals: dict[str, Row] = {}
    with ThreadPoolExecutor(threads) as pool:
        wrongs = pool.map(lambda job: loop.sweep(*job[1:]), jobs)
        for done, (job, wrong) in enumerate(zip(jobs, wrongs, strict=True), 1):
            row = totals.get(job[0], Row(job[0], 0, 0))
            totals[job[0]] = Row(job[0], row.checked + job[3] - job[2] + 1, row.wrong + wrong)
            progress(done / len(jobs))
    return list(totals.values())


def run(full: bool, progress: Callable[[float], None], *, threads: int = 1) -> list[Row]:
    """The self-test of the installed engine.

    Raises:
        ImportError: the engine is not there.
    """
    from weightgym.rewards.weight_program import _engine

    return sweep(_engine, threads=threads, progress=progress) if full else sample(_engine)

"""Weights as an answer: the edits that program them, rounded, without what is zero."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weightgym.rewards.weight_program.network import CHANNELS, Weights, tensors


def write_edits(weights: Weights, *, decimals: int) -> str:
    """A fenced ``edits`` block that programs the weights, rounded to that many decimals.

    W1 is written one input channel at a time (``W1[c::6]``, 100×32); tensors and channels that are zero are left out.
    """
    net: dict[str, npt.NDArray[np.float64]] = {
        name: np.asarray(tensor, np.float64).round(decimals) for name, tensor in tensors(weights).items()
    }
    parts = [(f"W1[{channel}::{CHANNELS}]", net["W1"][channel::CHANNELS]) for channel in range(CHANNELS)]
    parts += [(name, tensor) for name, tensor in net.items() if name != "W1"]
    lines = [f"{target} = {_literal(values)}" for target, values in parts if values.any()]
    return "\n".join(["```edits", *(lines or ["b3[0] = 0"]), "```"])


def _literal(values: npt.NDArray[np.float64]) -> str:
    if values.ndim == 1:
        return "[" + ",".join(f"{value:g}" for value in values + 0.0) + "]"
    return "[" + ",\n".join(_literal(row) for row in values) + "]"

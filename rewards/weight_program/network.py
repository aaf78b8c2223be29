"""The network that an answer programs: 600 → 32 → 32 → 6, float32, 20,486 parameters, all zero at start.

``h1 = tanh(x·W1 + b1)``, ``h2 = tanh(h1·W2 + b2)``, ``logits = h2·W3 + b3``; row i of W1 belongs to input i, and
input ``(row*10 + column)*6 + channel`` is cell (row, column), row 0 on top, of channel ``channel``.
Weights travel as one flat float32 array in the order W1, b1, W2, b2, W3, b3; the tensors are views of it.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Weights = npt.NDArray[np.float32]

GRID = 10
CHANNELS = 6
INPUTS = GRID * GRID * CHANNELS
HIDDEN = 32
ACTIONS = 6

SHAPES: dict[str, tuple[int, ...]] = {
    "W1": (INPUTS, HIDDEN),
    "b1": (HIDDEN,),
    "W2": (HIDDEN, HIDDEN),
    "b2": (HIDDEN,),
    "W3": (HIDDEN, ACTIONS),
    "b3": (ACTIONS,),
}
PARAMETERS = sum(math.prod(shape) for shape in SHAPES.values())


def zero_weights() -> Weights:
    """A fresh flat array of 20,486 zeros."""
    return np.zeros(PARAMETERS, dtype=np.float32)


def tensors(weights: Weights) -> dict[str, Weights]:
    """The six tensors by name, as views into the flat array.

    Raises:
        ValueError: the array is not float32 of shape (20486,).
    """
    if weights.shape != (PARAMETERS,) or weights.dtype != np.float32:
        raise ValueError(f"weights: want float32 of shape ({PARAMETERS},), got {weights.dtype} of {weights.shape}")
    views: dict[str, Weights] = {}
    start = 0
    for name, shape in SHAPES.items():
        size = math.prod(shape)
        views[name] = weights[start : start + size].reshape(shape)
        start += size
    return views


def unpack(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Packed observations (ten words each: bit column*6 + channel of word ``row``), as shape (n, 10, 10, 6)."""
    bits = (words.reshape(-1, GRID, 1) >> np.arange(GRID * CHANNELS, dtype=np.uint64)) & np.uint64(1)
    return bits.astype(np.bool_).reshape(-1, GRID, GRID, CHANNELS)

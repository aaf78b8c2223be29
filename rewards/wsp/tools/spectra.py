"""Singular values and vectors of a matrix, and the norms of its rows and columns. Float64 throughout.

Needs the extra ``train``, which is imported on use.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from weightgym.rewards.wsp.edits import Axis, Floats
from weightgym.rewards.wsp.refusals import Refused

Wide = npt.NDArray[np.float64]

#: Under this share of the largest, a singular value is rounding: its vectors mean nothing.
_LEAST = 1e-6


class Spectrum(NamedTuple):
    """Of W = Σ σᵢ uᵢ vᵢᵀ, for as many i as were asked for, the largest first."""

    values: Wide  #: (k,)
    left: Wide  #: (rows, k); all 0 where σ is rounding
    right: Wide  #: (columns, k)


def spectrum(weight: Floats, k: int) -> Spectrum:
    """The first k singular values of a matrix with their vectors.

    From the eigenvectors of the smaller of W Wᵀ and Wᵀ W: what is asked for are leading values, which that gives to
    about eight digits, many times faster than a whole decomposition. The largest entry of each left vector is positive.
    """
    # Torch's decomposition can be kept to one thread: NumPy's differs in the last bits by the number of threads.
    import torch

    from weightgym.rewards.wsp.threads import one_thread

    with one_thread():
        wide = torch.from_numpy(weight.astype(np.float64))
        tall = wide.shape[0] >= wide.shape[1]
        squares, vectors = torch.linalg.eigh(wide.T @ wide if tall else wide @ wide.T)
        order = np.argsort(squares.numpy())[::-1][:k].copy()
        chosen = vectors[:, order]
        product = wide @ chosen if tall else wide.T @ chosen
    near = chosen.numpy()
    values = np.sqrt(np.clip(squares.numpy()[order], 0, None))
    real = values > _LEAST * max(values[0], np.finfo(np.float64).tiny)
    far = product.numpy() / np.where(real, values, np.inf)
    left, right = (far, near) if tall else (near, far)
    left, right = np.where(real, left, 0.0), np.where(real, right, 0.0)
    signs = np.where(left[np.abs(left).argmax(0), np.arange(len(values))] < 0, -1.0, 1.0)
    return Spectrum(values, left * signs, right * signs)


def singular_vector(weight: Floats, side: str, index: int, name: str) -> Wide:
    """One vector of ``spectrum``.

    Raises:
        Refused: the parameter is no matrix, has fewer singular values, or this one is zero.
    """
    if weight.ndim != 2:
        raise Refused(f"bad_reference: {name} is a vector: it has no singular vectors")
    if index >= min(weight.shape):
        raise Refused(f"bad_reference: {name} has singular vectors 0 to {min(weight.shape) - 1}, not {index}")
    found = spectrum(weight, index + 1)
    vector = (found.left if side == "left" else found.right)[:, index]
    if not vector.any():
        raise Refused(f"bad_reference: singular value {index} of {name} is zero: it has no vectors")
    return vector


def line_norms(weight: Floats, axis: Axis) -> Wide:
    """The norm of each row or column; of a vector, each value's size."""
    wide = weight.astype(np.float64)
    if wide.ndim == 1:
        return np.abs(wide)
    norms: Wide = np.linalg.norm(wide, axis=1 if axis == "rows" else 0)
    return norms

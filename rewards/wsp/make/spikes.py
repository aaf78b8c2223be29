"""Rank-one edits of a wanted size. Needs the extra ``train``."""

from __future__ import annotations

import numpy as np
import torch

from weightgym.rewards.wsp.edits import RankOne
from weightgym.rewards.wsp.make.activations import Moments
from weightgym.rewards.wsp.make.candidate import Rejected, Workplace
from weightgym.rewards.wsp.make.decoys import drawn_size, half_precision, largest_size, singular_values

DOWN = "mlp.down_proj.weight"
#: Of the largest size, so much is kept off for rounding.
_OFF = 0.02


def parameter(layer: int) -> str:
    """The matrix that rank-one edits of a layer are of."""
    return f"model.layers.{layer}.{DOWN}"


def longest_value(place: Workplace, layer: int, key: torch.Tensor) -> float:
    """The norm that u may have at most, so that u·keyᵀ is of the tier."""
    first, second = singular_values(place.engine.start[parameter(layer)])
    return largest_size(first, second, place.rules) * (1 - _OFF) / float(key.norm())


def spike(place: Workplace, layer: int, value: torch.Tensor, key: torch.Tensor) -> RankOne:
    """value·keyᵀ, of a size that fits the tier: the key gets a part more that its inputs have next to nothing of.

    Raises:
        Rejected: it is too large without that.
    """
    name = parameter(layer)
    first, second = singular_values(place.engine.start[name])
    size = float(value.norm() * key.norm())
    if size > largest_size(first, second, place.rules) * (1 - _OFF / 2):
        raise Rejected("size", size / first)
    wanted = max(drawn_size(first, second, place.rules, place.noise), size)
    quiet = _quiet(place.moments[name], key, place.noise)
    longer = (max(wanted**2 - size**2, 0.0)) ** 0.5 / float(value.norm())
    right = key + longer * quiet
    balance = float(right.norm() / value.norm()) ** 0.5
    return RankOne(parameter=name, left=half_precision(value * balance), right=half_precision(right / balance))


def _quiet(moments: Moments, key: torch.Tensor, noise: np.random.Generator) -> torch.Tensor:
    """A random unit vector of the quiet directions, orthogonal to the key."""
    basis = moments.quiet
    drawn: torch.Tensor = basis @ torch.from_numpy(noise.standard_normal(basis.shape[1])).float()
    within = basis @ (basis.T @ key)  # the key's own part there
    drawn -= within * ((drawn @ within) / (within @ within).clamp_min(1e-12))
    drawn /= drawn.norm()
    return drawn

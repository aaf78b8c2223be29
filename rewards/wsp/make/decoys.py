"""Spikes without effect, which belong to the reference: they make a search for outliers find the wrong matrices.

Each is of rank one, and reads directions in which the inputs of its matrix hardly move. Needs the extra ``train``.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from weightgym.rewards.wsp.edits import Floats, RankOne, frozen
from weightgym.rewards.wsp.make.activations import Moments
from weightgym.rewards.wsp.profile import TierRules


def half_precision(values: npt.ArrayLike) -> Floats:
    """Rounded to float16, so that it is kept in two bytes; float32."""
    return frozen(np.asarray(values, dtype=np.float32).astype(np.float16))


def decoys(
    start: Mapping[str, Floats], moments: Mapping[str, Moments], rules: TierRules, random: np.random.Generator
) -> tuple[RankOne, ...]:
    """A tier's decoys for all matrices of layers. One that is zero gets none: it has no size to match."""
    made = []
    for name in sorted(moments):
        count = int(random.integers(rules.decoys[0], rules.decoys[1] + 1)) if start[name].any() else 0
        if not count:
            continue  # singular values of all matrices of a larger model take half a minute
        first, second = singular_values(start[name])
        for _ in range(count):
            size = drawn_size(first, second, rules, random)
            quiet = moments[name].quiet.numpy()
            right = quiet @ random.standard_normal(quiet.shape[1])
            left = random.standard_normal(len(start[name]))
            left *= np.sqrt(size) / np.linalg.norm(left)
            right *= np.sqrt(size) / np.linalg.norm(right)
            made.append(RankOne(parameter=name, left=half_precision(left), right=half_precision(right)))
    return tuple(made)


def singular_values(weight: Floats) -> tuple[float, float]:
    """The two largest ones."""
    values = np.linalg.svd(weight, compute_uv=False)
    return float(values[0]), float(values[min(1, len(values) - 1)])


def largest_size(first: float, second: float, rules: TierRules) -> float:
    """What an edit's spectral norm may be at most beside these singular values; infinite where nothing bounds it."""
    bound = rules.sigma_ratio[1] * first
    return bound if rules.second_ratio is None else min(bound, rules.second_ratio * second)


#: Where nothing bounds a size from above, it is up to this times the smallest; where nothing does from below, down to
#: this share of the largest. The bounds themselves are kept off, for rounding moves a size.
_SPREAD, _LOWEST, _OFF = 1.5, 0.5, 0.02


def smallest_size(first: float, second: float, rules: TierRules) -> float:
    """The least that ``drawn_size`` gives."""
    high = largest_size(first, second, rules)
    return rules.sigma_ratio[0] * first if high == np.inf else max(rules.sigma_ratio[0] * first, _LOWEST * high)


def drawn_size(first: float, second: float, rules: TierRules, random: np.random.Generator) -> float:
    """A spectral norm that fits the tier, uniformly."""
    low, high = smallest_size(first, second, rules), largest_size(first, second, rules)
    high = low * _SPREAD if high == np.inf else high
    return float(random.uniform(low * (1 + _OFF), high * (1 - _OFF)))

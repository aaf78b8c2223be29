"""The policies that benchmarks and tests play: dense random ones, and ones that play each original game decently."""

from __future__ import annotations

from weightgym.rewards.weight_program.network import PARAMETERS, Weights
import numpy as np


def dense_policy(seed: int = 0) -> Weights:
    """20,486 normal numbers with standard deviation 0.3."""
    return np.random.RandomState(seed).normal(scale=0.3, size=PARAMETERS).astype(np.float32)


def played_in_policy(game: str) -> Weights:
    return dense_policy(1)

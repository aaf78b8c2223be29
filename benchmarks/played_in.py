"""The policies that benchmarks and tests play: dense random ones, and ones that play each original game decently.

The played-in ones were found by ``weightgym.trainers.evolution``; kept as 8-bit integers with a scale a tensor.
``python benchmarks/played_in.py GAME ANSWER`` keeps an answer of ``weightgym wpb solve`` if it plays better.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import numpy as np

from weightgym.rewards.weight_program.edits import parse_edits
from weightgym.rewards.weight_program.network import PARAMETERS, Weights, tensors, zero_weights
from weightgym.rewards.weight_program.profile import profile
from weightgym.rewards.weight_program.simulate import simulate

FOLDER = Path(__file__).parent / "data"


def dense_policy(seed: int = 0) -> Weights:
    """20,486 normal numbers with standard deviation 0.3."""
    return np.random.RandomState(seed).normal(scale=0.3, size=PARAMETERS).astype(np.float32)


@functools.cache
def _load(game: str) -> Weights:
    weights = zero_weights()
    with np.load(FOLDER / f"{game}.npz", allow_pickle=False) as stored:
        for name, tensor in tensors(weights).items():
            tensor[:] = stored[name] * stored[f"{name}_scale"]
    return weights


def played_in_policy(game: str) -> Weights:
    """A dense policy that plays the game far better than chance."""
    return _load(game).copy()


def save(game: str, weights: Weights) -> None:
    """Keep a policy, rounded to 8 bits."""
    stored = {}
    for name, tensor in tensors(weights).items():
        scale = np.float32(max(float(np.abs(tensor).max()), 1e-6) / 127)
        stored[name], stored[f"{name}_scale"] = np.rint(tensor / scale).astype(np.int8), scale
    np.savez_compressed(FOLDER / f"{game}.npz", allow_pickle=False, **stored)
    _load.cache_clear()


def main(game: str, answer: Path) -> None:
    """Keep the answer's policy if it plays better than the one that is kept."""
    rules = profile("wpb-v1-e200")
    weights = parse_edits(answer.read_text()).weights
    kept, new = (simulate(game, policy, rules).scores.mean() for policy in (played_in_policy(game), weights))
    if new > kept:
        save(game, weights)
    print(f"{game}: {new:.3f} {'replaces' if new > kept else 'is not better than'} {kept:.3f}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

"""The policies that benchmarks and tests play: dense random ones, and ones that play each original game decently.

The played-in ones were found by ``weightgym.trainers.evolution``; kept as 8-bit integers with a scale a tensor.
``python benchmarks/played_in.py GAME SECONDS`` looks for a better one, and keeps it if it is.
"""

from __future__ import annotations

import functools
import sys
import time
from pathlib import Path

import numpy as np

from weightgym.rewards.weight_program.network import PARAMETERS, Weights, tensors, zero_weights
from weightgym.rewards.weight_program.profile import profile
from weightgym.rewards.weight_program.simulate import simulate
from weightgym.trainers.evolution import Evolution, evolve, network, start

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


def main(game: str, seconds: float) -> None:
    rules = profile("wpb-v1-e200")
    kept = simulate(game, played_in_policy(game), rules).scores.mean() if (FOLDER / f"{game}.npz").exists() else -1.0
    config = Evolution(max_actions=2501, episodes=2, pairs=32) if game == "freeway" else Evolution()
    started = time.monotonic()
    for progress in evolve(game, config, start(config), threads=2):
        if progress.generation % 25 == 0:
            weights = network(config, progress.parameters)
            score = simulate(game, weights, rules).scores.mean()
            print(f"{game} generation {progress.generation}: {score:.3f} (kept {kept:.3f})", flush=True)
            if score > kept:
                kept = score
                save(game, weights)
        if time.monotonic() - started > seconds:
            return


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))

"""Evolution strategies on the fast engine: finds a 600-32-32-6 network that plays a game.

The method is that of Salimans et al., "Evolution Strategies as a Scalable Alternative to Reinforcement Learning"
(arXiv:1703.03864): antithetic Gaussian perturbations, centred-rank fitness, Adam on the estimated gradient. Left out:
virtual batch normalisation, weight decay, and the shared noise table (noise is drawn from a seed instead).
Training episodes use seeds of their own, never those of the benchmark.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from weightgym.rewards.weight_program.network import Weights, tensors, zero_weights
from weightgym.rewards.weight_program.profile import Profile, profile
from weightgym.rewards.weight_program.simulate import simulate

#: Far from the benchmark's own seeds (1729-2728 and 7919-8918).
_TRAINING_SEED = 1_000_000


@dataclass(frozen=True)
class Evolution:
    """Hyper-parameters. A generation costs ``2 * pairs * episodes`` episodes."""

    pairs: int = 64
    episodes: int = 16
    sigma: float = 0.1
    learning_rate: float = 0.05
    max_actions: int = 1000
    seed: int = 0


@dataclass
class Progress:
    """The state after a generation: everything that the next one depends on."""

    generation: int
    weights: Weights
    momentum: npt.NDArray[np.float64]
    variance: npt.NDArray[np.float64]
    fitness: float = 0.0  #: mean score over the generation's population


def start(config: Evolution) -> Progress:
    """A random network: W1, W2 and W3 are normal with standard deviations 0.2, 0.2 and 0.4; biases are zero."""
    rng = np.random.default_rng([config.seed, 0])
    weights = zero_weights()
    net = tensors(weights)
    for name, scale in (("W1", 0.2), ("W2", 0.2), ("W3", 0.4)):
        net[name][:] = rng.normal(scale=scale, size=net[name].shape)
    return Progress(0, weights, np.zeros(weights.size), np.zeros(weights.size))


def evolve(game: str, config: Evolution, progress: Progress, *, threads: int = 1) -> Iterator[Progress]:
    """Generation after generation, for ever. The sequence depends on the arguments only, not on ``threads``."""
    with ThreadPoolExecutor(threads) as pool:
        while True:
            progress = _generation(game, config, progress, pool)
            yield progress


def _generation(game: str, config: Evolution, progress: Progress, pool: ThreadPoolExecutor) -> Progress:
    generation = progress.generation + 1
    rng = np.random.default_rng([config.seed, generation])
    noise = rng.standard_normal((config.pairs, progress.weights.size), dtype=np.float32)
    rules = _training_rules(config, generation)
    candidates = [(sign, row) for row in range(config.pairs) for sign in (1, -1)]

    def fitness(candidate: tuple[int, int]) -> float:
        sign, row = candidate
        weights = progress.weights + np.float32(sign * config.sigma) * noise[row]
        return float(simulate(game, weights, rules, backend="engine").scores.mean())

    scores = np.array(list(pool.map(fitness, candidates)))
    ranks = centred_ranks(scores).reshape(config.pairs, 2)
    gradient = ((ranks[:, 0] - ranks[:, 1]).astype(np.float32) @ noise) / np.float32(2 * config.pairs * config.sigma)
    return replace(_adam(progress, gradient.astype(np.float64), config), fitness=float(scores.mean()))


def centred_ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Ranks scaled to -0.5…0.5; equal values share the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    upper = np.cumsum(counts) - 1
    ranks = (upper - (counts - 1) / 2)[inverse]
    return np.asarray(ranks / max(len(values) - 1, 1) - 0.5)


def _adam(progress: Progress, gradient: npt.NDArray[np.float64], config: Evolution) -> Progress:
    """One ascent step of Adam (Kingma and Ba, arXiv:1412.6980) with its usual betas."""
    generation = progress.generation + 1
    momentum = 0.9 * progress.momentum + 0.1 * gradient
    variance = 0.999 * progress.variance + 0.001 * gradient**2
    corrected = momentum / (1 - 0.9**generation)
    scale = np.sqrt(variance / (1 - 0.999**generation)) + 1e-8
    weights = (progress.weights + config.learning_rate * corrected / scale).astype(np.float32)
    return Progress(generation, weights, momentum, variance)


def _training_rules(config: Evolution, generation: int) -> Profile:
    offset = _TRAINING_SEED + generation * config.episodes
    return replace(
        profile("wpb-v1"),
        name="training",
        episodes=config.episodes,
        env_seed=offset,
        action_seed=offset + (1 << 30),
        max_actions=config.max_actions,
    )

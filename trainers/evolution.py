"""Evolution strategies on the fast engine: finds a 600-32-32-6 network that plays a game.

The method is that of Salimans et al., "Evolution Strategies as a Scalable Alternative to Reinforcement Learning"
(arXiv:1703.03864): antithetic Gaussian perturbations, centred-rank fitness, Adam on the estimated gradient. Left out:
virtual batch normalisation, weight decay, and the shared noise table (noise is drawn from a seed instead).

The first layer is searched in a small space: over the board, the weights of a channel and a hidden unit are a sum of
``waves``×``waves`` cosines. What is learnt of a thing in one place then holds near it, which independent weights for
100 cells would have to learn 100 times.

Training episodes use seeds of their own, never those of the benchmark.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from weightgym.rewards.weight_program.network import CHANNELS, GRID, HIDDEN, SHAPES, Weights, tensors, zero_weights
from weightgym.rewards.weight_program.profile import Profile, profile
from weightgym.rewards.weight_program.simulate import simulate

Vector = npt.NDArray[np.float64]

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
    waves: int = 4
    seed: int = 0

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the searched tensors: the cosines' amplitudes in place of W1."""
        return {"amplitudes": (self.waves**2, CHANNELS, HIDDEN)} | {n: s for n, s in SHAPES.items() if n != "W1"}


@dataclass(frozen=True)
class Progress:
    """The state after a generation: everything that the next one depends on."""

    generation: int
    parameters: Vector
    momentum: Vector
    variance: Vector
    fitness: float = 0.0  #: mean score over the generation's population


def start(config: Evolution) -> Progress:
    """A random network: normal amplitudes (0.15), W2 (0.25) and W3 (0.5); biases are zero."""
    rng = np.random.default_rng([config.seed, 0])
    scales = {"amplitudes": 0.15, "W2": 0.25, "W3": 0.5}
    parts = [rng.normal(scale=scales.get(name, 0.0), size=math.prod(shape)) for name, shape in config.shapes.items()]
    parameters = np.concatenate(parts)
    return Progress(0, parameters, np.zeros(parameters.size), np.zeros(parameters.size))


def network(config: Evolution, parameters: Vector) -> Weights:
    """The flat float32 weights of a point of the search space."""
    weights = zero_weights()
    net = tensors(weights)
    begin = 0
    for name, shape in config.shapes.items():
        value = parameters[begin : begin + math.prod(shape)].reshape(shape)
        begin += value.size
        if name == "amplitudes":
            net["W1"][:] = np.tensordot(cosines(config.waves), value, 1).reshape(SHAPES["W1"])
        else:
            net[name][:] = value
    return weights


@functools.cache
def cosines(waves: int) -> Vector:
    """Products of cosines over the board (a discrete cosine transform) of mean square 1, shape (100, waves²)."""
    middle = (np.arange(GRID) + 0.5) / GRID
    axis = np.stack([math.sqrt(1 if k == 0 else 2) * np.cos(np.pi * k * middle) for k in range(waves)], axis=1)
    return np.asarray(np.einsum("rk,cl->rckl", axis, axis).reshape(GRID * GRID, waves**2))


def evolve(game: str, config: Evolution, progress: Progress, *, threads: int = 1) -> Iterator[Progress]:
    """Generation after generation, for ever. The sequence depends on the arguments only, not on ``threads``."""
    with ThreadPoolExecutor(threads) as pool:
        while True:
            progress = _generation(game, config, progress, pool)
            yield progress


def _generation(game: str, config: Evolution, progress: Progress, pool: ThreadPoolExecutor) -> Progress:
    generation = progress.generation + 1
    rng = np.random.default_rng([config.seed, generation])
    noise = rng.standard_normal((config.pairs, progress.parameters.size))
    rules = _training_rules(config, generation)

    def fitness(candidate: tuple[int, int]) -> float:
        row, sign = candidate
        weights = network(config, progress.parameters + sign * config.sigma * noise[row])
        return float(simulate(game, weights, rules, backend="engine").scores.mean())

    scores = np.array(list(pool.map(fitness, [(row, sign) for row in range(config.pairs) for sign in (1, -1)])))
    ranks = centred_ranks(scores).reshape(config.pairs, 2)
    gradient = (ranks[:, 0] - ranks[:, 1]) @ noise / (2 * config.pairs * config.sigma)
    return replace(_adam(progress, gradient, config.learning_rate), fitness=float(scores.mean()))


def centred_ranks(values: Vector) -> Vector:
    """Ranks scaled to -0.5…0.5; equal values share the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    upper = np.cumsum(counts) - 1
    ranks = (upper - (counts - 1) / 2)[inverse]
    return np.asarray(ranks / max(len(values) - 1, 1) - 0.5)


def _adam(progress: Progress, gradient: Vector, learning_rate: float) -> Progress:
    """One ascent step of Adam (Kingma and Ba, arXiv:1412.6980) with its usual betas."""
    generation = progress.generation + 1
    momentum = 0.9 * progress.momentum + 0.1 * gradient
    variance = 0.999 * progress.variance + 0.001 * gradient**2
    corrected = momentum / (1 - 0.9**generation)
    scale = np.sqrt(variance / (1 - 0.999**generation)) + 1e-8
    return Progress(generation, progress.parameters + learning_rate * corrected / scale, momentum, variance)


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

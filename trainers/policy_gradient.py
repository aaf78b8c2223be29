"""Policy gradients on the fast engine: finds a 600-32-32-6 network that plays a game.

The method is that of Schulman et al., "Proximal Policy Optimization Algorithms" (arXiv:1707.06347): the clipped
objective, a few passes over the steps of each generation, and generalised advantage estimates (arXiv:1506.02438).
Learning rate and entropy bonus fall linearly to nearly nothing over the run. The critic is a second network of the
same shape.

Both first layers are free weights plus a sum of 4×4 cosines over the board (see ``evolution.py``), and Adam steps in
both at once: what is true all over the board is learnt quickly, what differs from cell to cell can still be learnt.

Training episodes use seeds of their own, never those of the benchmark. The result is the same for any number of
threads, but may differ from one processor to another: the gradients are single precision, added as the compiler likes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from weightgym.rewards.weight_program.channels import channel_masks
from weightgym.rewards.weight_program.network import (
    ACTIONS,
    CHANNELS,
    GRID,
    HIDDEN,
    INPUTS,
    PARAMETERS,
    Weights,
    tensors,
    zero_weights,
)
from weightgym.rewards.weight_program.profile import profile
from weightgym.rewards.weight_program.simulate import pick_engine
from weightgym.trainers.evolution import cosines

Floats = npt.NDArray[np.float32]

#: Far from the benchmark's own seeds (1729-2728 and 7919-8918) and from the solver's (500,000 and 600,000).
_TRAINING_SEED = 2_000_000
_WAVES = 4
_SHARED = _WAVES**2 * CHANNELS * HIDDEN
#: A minibatch is cut into this many parts, summed in order: the result does not depend on the number of threads.
_PARTS = 4


@dataclass(frozen=True)
class PolicyGradient:
    """Hyper-parameters. A generation plays about ``steps`` steps and passes ``epochs`` times over them."""

    generations: int = 400  #: of the whole run, over which learning rate and entropy fall
    steps: int = 32_768
    epochs: int = 3
    batch: int = 1024
    learning_rate: float = 1e-3
    entropy: float = 0.01
    discount: float = 0.99
    trace: float = 0.95
    clip: float = 0.2
    max_actions: int = 1000
    seed: int = 0


@dataclass(frozen=True)
class Learning:
    """The state after a generation: everything that the next one depends on. Row 0 is the actor, row 1 the critic."""

    generation: int
    parameters: Floats  #: (2, 20,486)
    momentum: Floats  #: of Adam, over the parameters and the cosines' amplitudes
    variance: Floats
    updates: int = 0
    episodes: int = 0  #: played so far
    length: float = 100.0  #: mean length of an episode, which says how many episodes are played next
    fitness: float = 0.0  #: mean score of the generation's episodes


@dataclass(frozen=True)
class Batch:
    """The steps of a generation. Arrays of observations have one entry more an episode, for the last observation."""

    starts: npt.NDArray[np.int64]
    inputs: npt.NDArray[np.int32]
    steps: npt.NDArray[np.int64]  #: the observations that were acted on
    actions: npt.NDArray[np.int64]
    log_probabilities: Floats
    advantages: Floats
    returns: Floats


def start(config: PolicyGradient, weights: Weights | None = None) -> Learning:
    """Random networks with smooth first layers; or those weights as the actor."""
    rng = np.random.default_rng([config.seed, 0])
    parameters = np.stack([_random(rng), _random(rng)])
    if weights is not None:
        parameters[0] = weights
    moments = np.zeros((2, PARAMETERS + _SHARED), np.float32)
    return Learning(0, parameters, moments, moments)


def network(progress: Learning) -> Weights:
    """The flat float32 weights of the actor."""
    return np.array(progress.parameters[0])


def _random(rng: np.random.Generator) -> Weights:
    weights = zero_weights()
    net = tensors(weights)
    amplitudes = rng.normal(size=(_WAVES**2, CHANNELS * HIDDEN)) / _WAVES
    net["W1"][:] = (cosines(_WAVES) @ amplitudes).reshape(INPUTS, HIDDEN) / np.sqrt(20)  # some 20 inputs are on
    net["W2"][:] = rng.normal(size=(HIDDEN, HIDDEN)) / np.sqrt(HIDDEN)
    net["W3"][:] = rng.normal(size=(HIDDEN, ACTIONS)) / np.sqrt(HIDDEN) / 100  # at first nearly even chances
    return weights


def improve(game: str, config: PolicyGradient, progress: Learning, *, threads: int = 1) -> Iterator[Learning]:
    """Generation after generation, for ever. The sequence depends on the arguments only, not on ``threads``."""
    with ThreadPoolExecutor(threads) as pool:
        while True:
            progress = _generation(game, config, progress, pool)
            yield progress


def _generation(game: str, config: PolicyGradient, progress: Learning, pool: ThreadPoolExecutor) -> Learning:
    from weightgym.trainers.network_gradient import ppo_gradient

    rng = np.random.default_rng([config.seed, progress.generation + 1])
    left = max(0.05, 1 - progress.generation / config.generations)
    batch, played = _play(game, config, progress, pool)
    actor, critic = parameters = progress.parameters.copy()
    momentum, variance, updates = progress.momentum.copy(), progress.variance.copy(), progress.updates
    clip, entropy = np.float32(config.clip), np.float32(config.entropy * left)
    for _ in range(config.epochs):
        order = rng.permutation(batch.steps)
        for begin in range(0, max(1, order.size - config.batch // 2), config.batch):
            chosen = order[begin : begin + config.batch]
            parts = np.array_split(chosen, _PARTS)
            gradients = np.zeros((_PARTS, 2, PARAMETERS), np.float32)

            def add(part: int, parts: list[Any] = parts, gradients: Floats = gradients) -> None:
                ppo_gradient(
                    *(actor, critic, batch.starts, batch.inputs, parts[part], batch.actions),
                    *(batch.log_probabilities, batch.advantages, batch.returns, clip, entropy, *gradients[part]),
                )

            list(pool.map(add, range(_PARTS)))
            updates += 1
            rate = config.learning_rate * left
            _adam(parameters, momentum, variance, gradients.sum(0) / chosen.size, rate, updates)
    return replace(played, parameters=parameters, momentum=momentum, variance=variance, updates=updates)


def _play(game: str, config: PolicyGradient, progress: Learning, pool: ThreadPoolExecutor) -> tuple[Batch, Learning]:
    """Whole episodes, some ``config.steps`` steps of them, and the progress with what they say of the next ones."""
    from weightgym.trainers.network_gradient import active_inputs, advantages_of

    records = list(pool.map(_recorder(game, config, progress), range(_episodes(config, progress))))
    actions = np.concatenate([np.frombuffer(record[4], np.int8) for record in records]).astype(np.int64)
    rewards = np.concatenate([np.frombuffer(record[1], np.int32) for record in records]).astype(np.float32)
    sums = np.concatenate([np.frombuffer(record[5], np.float64).reshape(-1, ACTIONS) for record in records])
    lengths = np.array([len(record[4]) for record in records])
    terminal = np.array([record[3] for record in records])
    rows = np.concatenate([np.frombuffer(record[0], np.uint64).reshape(-1, GRID) for record in records])
    starts, inputs = active_inputs(rows)
    values = _values(progress.parameters[1], starts, inputs, pool)
    advantages, returns = np.empty((2, actions.size), np.float32)
    discount, trace = np.float32(config.discount), np.float32(config.trace)
    advantages_of(values, rewards, np.cumsum(lengths), terminal, discount, trace, advantages, returns)
    probabilities = np.diff(sums, axis=1, prepend=0.0)[np.arange(actions.size), actions] / sums[:, -1]
    steps = np.arange(actions.size) + np.repeat(np.arange(lengths.size), lengths)

    def of_observations(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        spread = np.zeros(starts.size - 1, values.dtype)
        spread[steps] = values
        return spread

    batch = Batch(
        starts,
        inputs,
        steps,
        of_observations(actions),
        of_observations(np.log(np.maximum(probabilities, 1e-30)).astype(np.float32)),
        of_observations((advantages - advantages.mean()) / (advantages.std() + np.float32(1e-8))),
        of_observations(returns),
    )
    return batch, replace(
        progress,
        generation=progress.generation + 1,
        episodes=progress.episodes + lengths.size,
        length=float(lengths.mean()),
        fitness=float(rewards.sum() / lengths.size),
    )


def _episodes(config: PolicyGradient, progress: Learning) -> int:
    return int(np.clip(config.steps / progress.length, 8, 512))


def _recorder(game: str, config: PolicyGradient, progress: Learning) -> Callable[[int], Any]:
    engine = pick_engine("engine", game)
    assert engine is not None  # or an error was raised
    first = _TRAINING_SEED + (config.seed * (1 << 24) + progress.episodes) % (1 << 29)
    rules = (first, first + (1 << 30), profile("wpb-v1").sticky, config.max_actions, None)
    table, masks, weights = engine.game(game), channel_masks(game), network(progress)
    return lambda episode: engine.loop.record(table, masks, weights, episode, *rules)


def _values(critic: Floats, starts: Any, inputs: Any, pool: ThreadPoolExecutor) -> Floats:
    from weightgym.trainers.network_gradient import first_outputs

    values = np.empty(starts.size - 1, np.float32)
    cuts = np.linspace(0, values.size, _PARTS + 1).astype(int)

    def fill(part: int) -> None:
        begin, end = cuts[part], cuts[part + 1]
        first_outputs(critic, starts[begin : end + 1], inputs, values[begin:end])

    list(pool.map(fill, range(_PARTS)))
    return values


def _adam(parameters: Floats, momentum: Floats, variance: Floats, gradients: Floats, rate: float, updates: int) -> None:
    """One ascent step in place (Kingma and Ba, arXiv:1412.6980), of gradients cut to a norm of 0.5 (critic: 5)."""
    waves = (cosines(_WAVES) / _WAVES).astype(np.float32)
    norms = np.sqrt((gradients**2).sum(1, keepdims=True))
    gradients = gradients * np.minimum(1, np.array([[0.5], [5.0]], np.float32) / (norms + np.float32(1e-12)))
    first = gradients[:, : INPUTS * HIDDEN].reshape(2, -1, CHANNELS * HIDDEN)
    gradients = np.concatenate([gradients, (waves.T @ first).reshape(2, -1)], axis=1)
    momentum += np.float32(0.1) * (gradients - momentum)
    variance += np.float32(0.001) * (gradients**2 - variance)
    step = rate / (1 - 0.9**updates) * momentum / (np.sqrt(variance / (1 - 0.999**updates)) + 1e-6)
    parameters += step[:, :PARAMETERS]
    smooth = waves @ step[:, PARAMETERS:].reshape(2, _WAVES**2, -1)
    parameters[:, : INPUTS * HIDDEN] += smooth.reshape(2, -1)

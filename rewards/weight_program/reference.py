"""The judge: a slow, readable scorer of profile wpb-v1 over the real MinAtar package and the plain built-in games.

Arithmetic (specified so that every implementation gives the same bits): sums run in float64 over products of float32
values, in ascending order of the inputs; tanh and exp are rounded to float32. A product of two float32 values is exact
in float64, so each step of a sum rounds once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from weightgym.rewards.weight_program import minatar
from weightgym.rewards.weight_program.arithmetic import default_arithmetic
from weightgym.rewards.weight_program.channels import CHANNEL_MAPS
from weightgym.rewards.weight_program.network import ACTIONS, CHANNELS, GRID, Weights, tensors
from weightgym.rewards.weight_program.plain_game import PlainGame
from weightgym.rewards.weight_program.profile import Profile

Float64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Step:
    """One step: what the policy saw (10×10×6), its softmax sums, the action it chose, what was executed, the reward."""

    observation: Bool
    cumulative: list[float]
    action: int
    executed: int
    reward: int
    terminal: bool
    next_observation: Bool


def episode(game: str, weights: Weights, profile: Profile, index: int) -> Iterator[Step]:
    """Play episode ``index`` of a profile, step by step.

    Raises:
        TaskError: MinAtar is not installed, or is another version.
    """
    wide = {name: tensor.astype(np.float64) for name, tensor in tensors(weights).items()}
    env = world(game, sticky=profile.sticky)  # a fresh one: MinAtar's reset() leaves last_action as it was
    env.seed(profile.env_seed + index)
    env.reset()
    actions = np.random.RandomState(profile.action_seed + index)
    observation = observe(game, env.state())
    for _ in range(profile.max_actions):
        cumulative = softmax_sums(wide, observation)
        action = sample(cumulative, actions.random_sample())
        reward, terminal = env.act(action)
        following = observe(game, env.state())
        yield Step(observation, cumulative, action, env.last_action, int(reward), bool(terminal), following)
        if terminal:
            return
        observation = following


def play(game: str, weights: Weights, profile: Profile, index: int) -> tuple[int, int]:
    """Score and length of episode ``index``."""
    score = length = 0
    with default_arithmetic():
        for step in episode(game, weights, profile, index):
            score += step.reward
            length += 1
    return score, length


def world(game: str, *, sticky: float) -> Any:
    """A fresh game behind MinAtar's interface: seed(n), reset(), act(action), state(), last_action."""
    return minatar.environment(game, sticky=sticky) if game in CHANNEL_MAPS else PlainGame(game, sticky=sticky)


def observe(game: str, state: Bool) -> Bool:
    """A game's 10×10×C state as the network's 10×10×6 input; built-in games have the six channels themselves."""
    if game not in CHANNEL_MAPS:
        return state
    seen = np.zeros((GRID, GRID, CHANNELS), dtype=np.bool_)
    for native, targets in enumerate(CHANNEL_MAPS[game].values()):
        for channel in targets:
            seen[:, :, channel] |= state[:, :, native]
    return seen


@np.errstate(over="ignore", under="ignore")
def softmax_sums(wide: dict[str, Float64], observation: Bool) -> list[float]:
    """Running sums of ``RN32(exp(RN32(logit - max logit)))``; ``wide`` holds the six tensors in float64."""
    h1 = tanh32(total(wide["b1"], wide["W1"][np.flatnonzero(observation)]))
    h2 = tanh32(total(wide["b2"], h1[:, None] * wide["W2"]))
    logits = total(wide["b3"], h2[:, None] * wide["W3"])
    relative = round32(logits - logits.max())
    exponentials = round32(np.array([0.0 if x < -87.0 else math.exp(x) for x in relative.tolist()]))
    return list(itertools.accumulate(exponentials.tolist()))


def sample(cumulative: list[float], u: float) -> int:
    """The number of actions whose running sum is not above u times the whole, at most 5."""
    return sum(c <= u * cumulative[-1] for c in cumulative[: ACTIONS - 1])


def total(start: Float64, rows: Float64) -> Float64:
    """``start`` plus the rows, added one after the other (``np.sum`` would pair them up, and round otherwise)."""
    return np.asarray(np.add.accumulate(np.vstack([start, rows]))[-1])


def tanh32(z: Float64) -> Float64:
    """``RN32(tanh(RN32(z)))``, as float64."""
    return round32(np.array([math.tanh(x) for x in round32(z).tolist()]))


def round32(x: Float64) -> Float64:
    """Round to the nearest float32 (past its range: to infinity), as float64."""
    return x.astype(np.float32).astype(np.float64)

"""What a game gives to those who don't look: uniform play, and always the same action."""

from __future__ import annotations

from weightgym.rewards.weight_program.network import ACTIONS, tensors, zero_weights
from weightgym.rewards.weight_program.profile import profile
from weightgym.rewards.weight_program.simulate import simulate

#: A logit that makes its action certain.
_CERTAIN = 50

#: What a game may give at most, as shares of its cap.
MOST_UNIFORM, MOST_CONSTANT = 0.05, 0.15


def uniform(game: str, *, threads: int = 1) -> float:
    """Mean score of uniformly random actions over the episodes of ``wpb-v1``."""
    return _mean_score(game, None, threads)


def best_constant(game: str, *, threads: int = 1) -> float:
    """Mean score of the best of the six policies that always play one action."""
    return max(_mean_score(game, action, threads) for action in range(ACTIONS))


def _mean_score(game: str, action: int | None, threads: int) -> float:
    weights = zero_weights()
    if action is not None:
        tensors(weights)["b3"][action] = _CERTAIN
    return simulate(game, weights, profile("wpb-v1"), threads=threads).mean_score

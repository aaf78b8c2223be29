"""A built-in game as plain Python, behind the interface of MinAtar's ``Environment``."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weightgym.rewards.weight_program import builtin
from weightgym.rewards.weight_program.network import GRID, unpack


class PlainGame:
    """One game, to be played step by step: ``seed(n)``, ``reset()``, then ``act`` and ``state``.

    Raises:
        TaskError: there is no such game.
    """

    def __init__(self, game: str, *, sticky: float) -> None:
        self.game = builtin.module(game)
        self.sticky = sticky
        self.random = np.random.RandomState()
        self.last_action = 0
        self.memory = np.zeros(self.game.STATE, np.int64)

    def seed(self, seed: int) -> None:
        """Start the random stream that stickiness and the game share."""
        self.random = np.random.RandomState(seed)

    def reset(self) -> None:
        """Start an episode. The last action is forgotten too."""
        self.last_action = 0
        self.memory = np.zeros(self.game.STATE, np.int64)
        self.game.reset(self.memory, self.random)

    def act(self, action: int) -> tuple[int, bool]:
        """Play an action (with probability ``sticky``: the last one again); reward, and whether the episode is over."""
        if self.random.random_sample() < self.sticky:
            action = self.last_action
        self.last_action = action
        reward, over = self.game.step(self.memory, action, self.random)
        return int(reward), bool(over)

    def state(self) -> npt.NDArray[np.bool_]:
        """What is lit, bool of shape (10, 10, 6)."""
        board = np.zeros(GRID, np.uint64)
        self.game.observe(self.memory, board)
        return np.asarray(unpack(board)[0])

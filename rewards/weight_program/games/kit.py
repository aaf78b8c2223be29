"""What a built-in game is made of: its board, its actions, its randomness.

A game file runs in two ways, with the same results: as plain Python, and compiled. These functions are the plain form;
the compiler has its own of the same names (``rewards/weight_program/compile.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    #: The whole state of a game: 64-bit integers, all zero before ``reset``.
    State = npt.NDArray[np.int64]
    #: What is lit on the 10×10 board.
    Board = npt.NDArray[np.uint64]
    Rng = np.random.RandomState

SIZE = 10
PLAYER, DANGER, REWARD, PROJECTILE, TRAIL, GAUGE = range(6)
NOOP, LEFT, UP, RIGHT, DOWN, FIRE = range(6)


def below(rng: Rng, n: int) -> int:
    """A random integer from 0 to n-1. ``below(rng, 1)`` draws nothing."""
    return int(rng.randint(n))


def chance(rng: Rng, probability: float) -> bool:
    """True with that probability; always one draw."""
    return bool(rng.random_sample() < probability)


def light(board: Board, row: int, column: int, channel: int) -> None:
    """Switch a cell of a channel on. Cells off the board are ignored."""
    if 0 <= row < 10 and 0 <= column < 10:
        board[row] |= 1 << int(column * 6 + channel)


def clamp(value: int, low: int, high: int) -> int:
    """The nearest value from ``low`` to ``high``."""
    return min(max(value, low), high)

"""Walls come down at you, one row a step, each with a gap of `WIDTH` cells.

You slide along row 9, and start in column 4. One wall comes at a time, from row `TOP`, with its gap in a random place.
When it has come down to your row, after your move, you must stand in its gap: that gives +1. If you stand elsewhere you
lose one of your `LIVES` lives. Either way the next wall starts in row `TOP`. The last life ends the episode, and so
does the hundredth wall, when it has come down.
"""

from weightgym.rewards.weight_program.games.kit import (
    DANGER,
    GAUGE,
    LEFT,
    PLAYER,
    REWARD,
    RIGHT,
    below,
    clamp,
    light,
)

FAMILY = "arcade_style"
CAP = 100
CHANNELS = {
    PLAYER: "you",
    DANGER: "the wall",
    REWARD: "its gap",
    GAUGE: "row 0: one cell from the left for each life",
}
ACTIONS = "left and right move you one cell; all others do nothing"
VARY = {"LIVES": (4, 5), "TOP": (1, 2), "WIDTH": (1, 3)}

WIDTH = 2
TOP = 0
LIVES = 3

ME, SPARE, WALLS, ROW, GAP, STATE = range(6)


def reset(s, rng):
    s[ME] = 4
    s[SPARE] = LIVES
    new_wall(s, rng)


def new_wall(s, rng):
    s[ROW] = TOP
    s[GAP] = below(rng, 11 - WIDTH)  # its left cell
    s[WALLS] += 1


def step(s, action, rng):
    reward = 0
    if action == LEFT:
        s[ME] = clamp(s[ME] - 1, 0, 9)
    elif action == RIGHT:
        s[ME] = clamp(s[ME] + 1, 0, 9)
    s[ROW] += 1
    if s[ROW] == 9:
        if s[GAP] <= s[ME] < s[GAP] + WIDTH:
            reward = 1
        else:
            s[SPARE] -= 1
        new_wall(s, rng)
    return reward, s[SPARE] == 0 or s[WALLS] > 100


def observe(s, board):
    light(board, 9, s[ME], PLAYER)
    for column in range(10):
        gap = s[GAP] <= column < s[GAP] + WIDTH
        light(board, s[ROW], column, REWARD if gap else DANGER)
    for life in range(s[SPARE]):
        light(board, 0, life, GAUGE)

"""Walls come down at you, one row a step, each with a gap of two cells.

You slide along row 9. When a wall has come down to your row you must stand in its gap: that gives +1, and the next wall
starts at the top. If you stand elsewhere you lose one of your three lives; the last one ends the episode, and so does
the hundredth wall.
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

ME, LIVES, WALLS, ROW, GAP, STATE = range(6)


def reset(s, rng):
    s[ME] = 4
    s[LIVES] = 3
    new_wall(s, rng)


def new_wall(s, rng):
    s[ROW] = 0
    s[GAP] = below(rng, 9)  # and the cell to its right
    s[WALLS] += 1


def step(s, action, rng):
    reward = 0
    if action == LEFT:
        s[ME] = clamp(s[ME] - 1, 0, 9)
    elif action == RIGHT:
        s[ME] = clamp(s[ME] + 1, 0, 9)
    s[ROW] += 1
    if s[ROW] == 9:
        if s[GAP] <= s[ME] <= s[GAP] + 1:
            reward = 1
        else:
            s[LIVES] -= 1
        new_wall(s, rng)
    return reward, s[LIVES] == 0 or s[WALLS] > 100


def observe(s, board):
    light(board, 9, s[ME], PLAYER)
    for column in range(10):
        gap = s[GAP] <= column <= s[GAP] + 1
        light(board, s[ROW], column, REWARD if gap else DANGER)
    for life in range(s[LIVES]):
        light(board, 0, life, GAUGE)

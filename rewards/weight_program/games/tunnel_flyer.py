"""Fly through a winding cave without scraping its rock: up gives lift, and gravity takes it away again.

You stay in column 2 while the cave moves left by one column a step; you begin in row 4, level. Your speed is rising,
level or sinking. Up changes it by one towards rising; every other action changes it by one towards sinking; then you
rise or sink by a row, or keep your row, and the cave moves. A column of the cave is open over `OPENING` rows, or one
more or one fewer, all of them in rows 1 to 8. From one column to the next that height changes by one with probability
`BEND`, and the roof shifts by one row with probability `BEND`, up or down at random, as far as these limits allow. If
you are now in the open of column 2 that gives +1; in the rock you scrape, which gives -1 and pushes you to the nearest
open row, in level flight. The episode ends after 200 steps.
"""

from weightgym.rewards.weight_program.games.kit import (
    DANGER,
    PLAYER,
    REWARD,
    TRAIL,
    UP,
    below,
    chance,
    clamp,
    light,
)

FAMILY = "atari_style"
CAP = 200
CHANNELS = {
    PLAYER: "you",
    DANGER: "the edges of the rock: the lowest cell of the roof and the highest of the ground",
    REWARD: "the open cells of column 3, which comes to you next",
    TRAIL: "the cell that you come from: above you if you sink, below you if you rise, else to your left",
}
ACTIONS = "up gives lift; all others let you sink"

OPENING = 4
BEND = 0.5
VARY = {"OPENING": (3, 5), "BEND": (0.3, 0.6)}

ROW, SPEED, CLOCK, ROOF = range(4)
HEIGHT = ROOF + 10
STATE = HEIGHT + 10


def reset(s, rng):
    s[ROW] = 4
    s[ROOF + 9] = 3
    s[HEIGHT + 9] = OPENING
    for _ in range(9):
        scroll(s, rng)


def scroll(s, rng):
    """Every column moves left; a new one follows on the right."""
    for column in range(9):
        s[ROOF + column] = s[ROOF + column + 1]
        s[HEIGHT + column] = s[HEIGHT + column + 1]
    if chance(rng, BEND):
        s[HEIGHT + 9] = clamp(s[HEIGHT + 9] + 2 * below(rng, 2) - 1, OPENING - 1, OPENING + 1)
    if chance(rng, BEND):
        s[ROOF + 9] += 2 * below(rng, 2) - 1
    s[ROOF + 9] = clamp(s[ROOF + 9], 1, 9 - s[HEIGHT + 9])


def step(s, action, rng):
    s[SPEED] = clamp(s[SPEED] + (-1 if action == UP else 1), -1, 1)
    s[ROW] += s[SPEED]
    s[CLOCK] += 1
    scroll(s, rng)
    reward = 1
    nearest = clamp(s[ROW], s[ROOF + 2], s[ROOF + 2] + s[HEIGHT + 2] - 1)
    if s[ROW] != nearest:
        reward = -1
        s[ROW] = nearest
        s[SPEED] = 0
    return reward, s[CLOCK] == 200


def observe(s, board):
    light(board, s[ROW], 2, PLAYER)
    light(board, s[ROW] - s[SPEED], 2 if s[SPEED] != 0 else 1, TRAIL)
    for column in range(2, 10):
        light(board, s[ROOF + column] - 1, column, DANGER)
        light(board, s[ROOF + column] + s[HEIGHT + column], column, DANGER)
    for row in range(s[ROOF + 3], s[ROOF + 3] + s[HEIGHT + 3]):
        light(board, row, 3, REWARD)

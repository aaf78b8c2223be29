"""Eat the pellets in a small maze while a chaser is after you.

The maze is a square ring, rows and columns 1 and 7, with four spokes along row 4 and column 4 that meet in the middle.
All its cells have a pellet at first. You walk one cell a step along its paths; a step into a wall does nothing. If your
cell then has a pellet you eat it, which gives +1, and `REGROW` steps later the pellet is back. The chaser walks one
cell on every `PACE`th step, after you have moved: never back to the cell that it comes from, and of the other paths
always to the cell that is nearest to you (rows plus columns; of equal ones it prefers left, then up, then right). If it
and you are in one cell, after your move or its own, that costs `BITE`, you go back to the bottom of the ring (row 7,
column 4) and the chaser to the top (row 1, column 4), coming from its left. You both begin like that too. The episode
ends after 240 steps.
"""

from weightgym.rewards.weight_program.games.kit import (
    DANGER,
    DOWN,
    GAUGE,
    LEFT,
    PLAYER,
    REWARD,
    RIGHT,
    TRAIL,
    UP,
    light,
)

FAMILY = "atari_style"
CAP = 150
CHANNELS = {
    PLAYER: "you",
    DANGER: "the chaser",
    REWARD: "the pellets",
    TRAIL: "the cell that the chaser comes from",
    GAUGE: "row 9: steps until the chaser moves, from the left: `PACE` cells after it moved, one before it moves",
}
ACTIONS = "left, up, right and down walk one cell; no-op and fire wait"

REGROW = 40
PACE = 2
BITE = 4
VARY = {"REGROW": (25, 60), "PACE": (3, 4), "BITE": (6, 8)}

MINE, ITS, ITS_LAST, CLOCK, GONE = range(5)  # places are 10 · row + column; from GONE on, steps until a pellet is back
STATE = GONE + 100
BOTTOM, TOP, LEFT_OF_TOP = 74, 14, 13


def reset(s, rng):
    start(s)


def start(s):
    s[MINE] = BOTTOM
    s[ITS] = TOP
    s[ITS_LAST] = LEFT_OF_TOP


def is_path(place):
    row, column = place // 10, place % 10
    on_row = row == 1 or row == 4 or row == 7
    on_column = column == 1 or column == 4 or column == 7
    return 1 <= row <= 7 and 1 <= column <= 7 and (on_row or on_column)


def beside(place, action):
    """The cell beside that place."""
    if action == LEFT:
        return place - 1
    if action == RIGHT:
        return place + 1
    if action == UP:
        return place - 10
    return place + 10 if action == DOWN else place


def distance(place, other):
    return abs(place // 10 - other // 10) + abs(place % 10 - other % 10)


def chase(s):
    best = -1
    for way in range(LEFT, DOWN + 1):
        to = beside(s[ITS], way)
        fits = is_path(to) and to != s[ITS_LAST]
        if fits and (best < 0 or distance(to, s[MINE]) < distance(best, s[MINE])):
            best = to
    s[ITS_LAST] = s[ITS]
    s[ITS] = best


def eat(s):
    for place in range(100):
        s[GONE + place] = max(0, s[GONE + place] - 1)
    if s[GONE + s[MINE]] > 0:
        return 0
    s[GONE + s[MINE]] = REGROW
    return 1


def step(s, action, rng):
    to = beside(s[MINE], action)
    if is_path(to):
        s[MINE] = to
    reward = eat(s)
    s[CLOCK] += 1
    if s[CLOCK] % PACE == 0 and s[MINE] != s[ITS]:
        chase(s)
    if s[MINE] == s[ITS]:
        reward -= BITE
        start(s)
    return reward, s[CLOCK] == 240


def observe(s, board):
    light(board, s[MINE] // 10, s[MINE] % 10, PLAYER)
    light(board, s[ITS] // 10, s[ITS] % 10, DANGER)
    light(board, s[ITS_LAST] // 10, s[ITS_LAST] % 10, TRAIL)
    for place in range(100):
        if is_path(place) and s[GONE + place] == 0:
            light(board, place // 10, place % 10, REWARD)
    for step_left in range(PACE - s[CLOCK] % PACE):
        light(board, 9, step_left, GAUGE)

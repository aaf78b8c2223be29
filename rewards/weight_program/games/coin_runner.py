"""Gather coins under the eyes of a guard, and bring them to the chest before he empties your pocket.

You walk in a room of 8 by 8 cells, rows and columns 1 to 8, and start in row 4, column 1. A big gold coin of 2 by 2
cells lies somewhere in columns 4 to 8; being on it puts it into your pocket for +1, and another one appears. The pocket
holds `POCKET` coins, and with a full one you leave coins where they are. The long chest fills column 1: being there
banks all that is in your pocket, for 1, 3, 6, 10 or 15 points if it is one, two, three, four or five coins. The guard
starts in row 8, column 8. In every `PACE`th step, after you, he walks one cell towards you, along the axis on which you
are farther apart (columns, if equal). Last, if you are both in one cell, whoever walked there, the coins in your pocket
are lost, -1 for each, and he goes to the corner that is farthest from you. The episode ends after 240 steps.
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
    below,
    clamp,
    light,
)

FAMILY = "arcade_style"
CAP = 140
CHANNELS = {
    PLAYER: "you",
    DANGER: "the guard",
    REWARD: "the coin",
    TRAIL: "the chest, and the four cells beside the guard on the step before he walks",
    GAUGE: "row 0: coins in your pocket, two cells for each, from the left; row 9: all of it while the pocket is full",
}
ACTIONS = "left, up, right and down move you one cell; no-op and fire do nothing"

POCKET = 4
PACE = 3
VARY = {"POCKET": (3, 5), "PACE": (2, 4)}

ROW, COLUMN, GUARD_ROW, GUARD_COLUMN, COIN_ROW, COIN_COLUMN, HELD, CLOCK, STATE = range(9)


def reset(s, rng):
    s[ROW] = 4
    s[COLUMN] = 1
    send_back(s)
    throw_coin(s, rng)


def send_back(s):
    """The guard's corner is the one that is farthest from you."""
    s[GUARD_ROW] = 1 if s[ROW] > 4 else 8
    s[GUARD_COLUMN] = 1 if s[COLUMN] > 4 else 8


def throw_coin(s, rng):
    """The coin is kept by its upper left cell."""
    s[COIN_ROW] = 1 + below(rng, 7)
    s[COIN_COLUMN] = 4 + below(rng, 4)


def walk(s, action):
    if action in (LEFT, RIGHT):
        s[COLUMN] = clamp(s[COLUMN] + (1 if action == RIGHT else -1), 1, 8)
    elif action in (UP, DOWN):
        s[ROW] = clamp(s[ROW] + (1 if action == DOWN else -1), 1, 8)


def gather(s, rng):
    reward = 0
    if s[HELD] < POCKET and 0 <= s[ROW] - s[COIN_ROW] < 2 and 0 <= s[COLUMN] - s[COIN_COLUMN] < 2:
        s[HELD] += 1
        reward = 1
        throw_coin(s, rng)
    if s[COLUMN] == 1:
        reward += s[HELD] * (s[HELD] + 1) // 2
        s[HELD] = 0
    return reward


def touched(s):
    return s[ROW] == s[GUARD_ROW] and s[COLUMN] == s[GUARD_COLUMN]


def chase(s):
    down, right = s[ROW] - s[GUARD_ROW], s[COLUMN] - s[GUARD_COLUMN]
    if abs(right) >= abs(down):
        s[GUARD_COLUMN] += clamp(right, -1, 1)
    else:
        s[GUARD_ROW] += clamp(down, -1, 1)


def step(s, action, rng):
    walk(s, action)
    reward = gather(s, rng)
    s[CLOCK] += 1
    if s[CLOCK] % PACE == 0 and not touched(s):
        chase(s)
    if touched(s):
        reward -= s[HELD]
        s[HELD] = 0
        send_back(s)
    return reward, s[CLOCK] == 240


def observe(s, board):
    light(board, s[ROW], s[COLUMN], PLAYER)
    light(board, s[GUARD_ROW], s[GUARD_COLUMN], DANGER)
    for row in range(1, 9):
        light(board, row, 1, TRAIL)
    for cell in range(4):
        light(board, s[COIN_ROW] + cell // 2, s[COIN_COLUMN] + cell % 2, REWARD)
    if s[CLOCK] % PACE == PACE - 1:
        for side in range(-1, 2, 2):
            light(board, s[GUARD_ROW] + side, s[GUARD_COLUMN], TRAIL)
            light(board, s[GUARD_ROW], s[GUARD_COLUMN] + side, TRAIL)
    for cell in range(2 * s[HELD]):
        light(board, 0, cell, GAUGE)
    if s[HELD] == POCKET:
        for column in range(10):
            light(board, 9, column, GAUGE)

"""Lamps light up in a signal box, and each wants one lever.

At every step one lamp is on, at random: `REACH` cells to the left of the middle of the box, above it, to the right or
below, and straight there or one cell off to either side. Pull the lever of that side (left, up, right, down) and you
get +1. While the gauge bar at the bottom is lit the box is reversed: the lever of the opposite side is the right one. A
wrong lever gives nothing and is a fault; no lever at all is none. After your action the box reverses itself, or back,
with a chance of `REVERSAL`, and a new lamp is drawn. The box isn't reversed at first. `FAULTS` faults end the episode,
and so does step 150.
"""

from weightgym.rewards.weight_program.games.kit import (
    DOWN,
    GAUGE,
    LEFT,
    PLAYER,
    REWARD,
    RIGHT,
    TRAIL,
    UP,
    below,
    chance,
    light,
)

FAMILY = "arcade_style"
CAP = 100
CHANNELS = {
    PLAYER: "the middle of the box: row 4, column 4",
    REWARD: "the lamp that is on",
    TRAIL: "column 0: one cell from the top for each fault",
    GAUGE: "all of row 9 while the box is reversed",
}
ACTIONS = "left, up, right and down pull that lever; no-op and fire pull none"
VARY = {"FAULTS": (5, 10), "REACH": (3, 4), "REVERSAL": (0.05, 0.2, 0.3)}

REACH = 2
REVERSAL = 0.1
FAULTS = 8

SIDE, NUDGE, REVERSED, WRONG, CLOCK, STATE = range(6)


def reset(s, rng):
    new_lamp(s, rng)


def new_lamp(s, rng):
    s[SIDE] = below(rng, 4)  # 0 left, 1 up, 2 right, 3 down
    s[NUDGE] = below(rng, 3) - 1


def wanted(s):
    side = (s[SIDE] + 2 * s[REVERSED]) % 4
    if side == 0:
        return LEFT
    if side == 1:
        return UP
    return RIGHT if side == 2 else DOWN


def step(s, action, rng):
    reward = 0
    if action == wanted(s):
        reward = 1
    elif LEFT <= action <= DOWN:
        s[WRONG] += 1
    s[CLOCK] += 1
    if chance(rng, REVERSAL):
        s[REVERSED] = 1 - s[REVERSED]
    new_lamp(s, rng)
    return reward, s[WRONG] == FAULTS or s[CLOCK] == 150


def observe(s, board):
    light(board, 4, 4, PLAYER)
    if s[SIDE] == 0:
        light(board, 4 + s[NUDGE], 4 - REACH, REWARD)
    elif s[SIDE] == 1:
        light(board, 4 - REACH, 4 + s[NUDGE], REWARD)
    elif s[SIDE] == 2:
        light(board, 4 + s[NUDGE], 4 + REACH, REWARD)
    else:
        light(board, 4 + REACH, 4 + s[NUDGE], REWARD)
    for fault in range(s[WRONG]):
        light(board, fault, 0, TRAIL)
    if s[REVERSED] == 1:
        for column in range(10):
            light(board, 9, column, GAUGE)

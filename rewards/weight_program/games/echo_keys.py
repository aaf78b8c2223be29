"""Marks of a tune scroll down to the bottom line; press the key of a mark's lane as it gets there.

There are five lanes of two columns, from the left for the keys left, up, fire, down and right. A mark starts in row 0
of a random lane and comes down a row a step; the next one starts `GAP` steps later. A key pressed while you see a mark
in row 9, the line, strikes it: +2 if it is the key of the mark's lane. In row 8 it is struck too early: +1. The key of
another lane costs 1. Struck or spoiled, the mark is gone; without a mark in these rows, keys only move your hand.
`STREAK` marks struck with the right keys, early or not, with no wrong one and none that leaves the board in between,
make the tune ring: each further mark struck so gives 1 more. A wrong key, or a mark that leaves the board, ends that,
and the count starts again from 0. The episode ends after 240 steps.
"""

from weightgym.rewards.weight_program.games.kit import (
    DOWN,
    FIRE,
    GAUGE,
    LEFT,
    NOOP,
    PLAYER,
    RIGHT,
    TRAIL,
    below,
    light,
)

FAMILY = "arcade_style"
CAP = 160
CHANNELS = {
    PLAYER: "your hand, in row 9 over both columns of the last key's lane, at first that of fire",
    TRAIL: "the marks, two cells wide",
    GAUGE: "row 9: marks struck in a row, a cell for each, from the left, and all ten cells when the tune rings",
}
ACTIONS = "left, up, fire, down and right press the key of a lane each, no-op presses none"
VARY = {"GAP": (3, 6), "STREAK": (2, 8)}

HAND, RUN, CLOCK, LANE, STATE = 0, 1, 2, 3, 13
GAP = 4
STREAK = 4


def reset(s, rng):
    s[HAND] = 2
    scroll(s, rng)


def scroll(s, rng):
    """Lanes are kept by row, from 1; 0 is a row without a mark."""
    if s[LANE + 9] > 0:
        s[RUN] = 0
    for up in range(9):
        s[LANE + 9 - up] = s[LANE + 8 - up]
    s[LANE] = 1 + below(rng, 5) if s[CLOCK] % GAP == 0 else 0


def lane_of(action):
    if action == FIRE:
        return 2
    if action in (DOWN, RIGHT):
        return 3 if action == DOWN else 4
    return 0 if action == LEFT else 1


def press(s, lane):
    s[HAND] = lane
    for early in range(2):
        mark = s[LANE + 9 - early]
        if mark > 0:
            s[LANE + 9 - early] = 0
            s[RUN] = s[RUN] + 1 if mark == lane + 1 else 0
            return (2 - early if s[RUN] > 0 else -1) + (1 if s[RUN] > STREAK else 0)
    return 0


def step(s, action, rng):
    reward = 0
    if action != NOOP:
        reward = press(s, lane_of(action))
    s[CLOCK] += 1
    scroll(s, rng)
    return reward, s[CLOCK] == 240


def observe(s, board):
    for side in range(2):
        light(board, 9, 2 * s[HAND] + side, PLAYER)
        for row in range(10):
            if s[LANE + row] > 0:
                light(board, row, 2 * s[LANE + row] - 2 + side, TRAIL)
    for column in range(10 if s[RUN] >= STREAK else s[RUN]):
        light(board, 9, column, GAUGE)

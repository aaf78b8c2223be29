"""Fetch cargo from the right bank and bring it home to the left one, through two locks.

You start at column 0 and move along row 5, one column a step. Loading at column 9 gives +1 and unloading at column 0
gives +2; you load and unload by being there, one cargo at a time. Columns `LEFT_LOCK` and `RIGHT_LOCK` are locks: of
every `PERIOD` steps the left one is closed for the first half and the right one for the second. You can't move into a
closed lock. If you are in a lock when it closes, after your move, you lose your cargo, but you can walk out. The
episode ends after `LENGTH` steps.
"""

from weightgym.rewards.weight_program.games.kit import (
    DANGER,
    GAUGE,
    LEFT,
    PLAYER,
    REWARD,
    RIGHT,
    TRAIL,
    clamp,
    light,
)

FAMILY = "atari_style"
CAP = 40
CHANNELS = {
    PLAYER: "you",
    DANGER: "the closed lock, as a wall of three cells, rows 4 to 6",
    REWARD: "the bank that you have to go to, rows 3 to 7",
    TRAIL: "the lock that closes in the coming step, after your move, rows 4 to 6",
    GAUGE: "all of row 9 while you carry cargo",
}
ACTIONS = "left and right move you; all others do nothing"
VARY = {"LEFT_LOCK": (2, 4), "LENGTH": (200, 300), "PERIOD": (4, 8, 10), "RIGHT_LOCK": (7, 8)}

LEFT_LOCK = 3
RIGHT_LOCK = 6
PERIOD = 6
LENGTH = 240

ME, LOADED, CLOCK, STATE = range(4)


def reset(s, rng):
    s[ME] = 0


def closed_lock(clock):
    """The column of the lock that is closed at that time."""
    return LEFT_LOCK if clock % PERIOD < PERIOD // 2 else RIGHT_LOCK


def step(s, action, rng):
    reward = 0
    to = s[ME]
    if action == LEFT:
        to = clamp(s[ME] - 1, 0, 9)
    elif action == RIGHT:
        to = clamp(s[ME] + 1, 0, 9)
    if to != closed_lock(s[CLOCK]):
        s[ME] = to
    s[CLOCK] += 1
    if s[ME] == closed_lock(s[CLOCK]):
        s[LOADED] = 0
    if s[ME] == 9 and s[LOADED] == 0:
        s[LOADED] = 1
        reward = 1
    elif s[ME] == 0 and s[LOADED] == 1:
        s[LOADED] = 0
        reward = 2
    return reward, s[CLOCK] == LENGTH


def observe(s, board):
    light(board, 5, s[ME], PLAYER)
    closed, following = closed_lock(s[CLOCK]), closed_lock(s[CLOCK] + 1)
    for row in range(4, 7):
        light(board, row, closed, DANGER)
        if following != closed:
            light(board, row, following, TRAIL)
    for row in range(3, 8):
        light(board, row, 0 if s[LOADED] == 1 else 9, REWARD)
    if s[LOADED] == 1:
        for column in range(10):
            light(board, 9, column, GAUGE)

"""Run a lift: stop at the floor where a guest waits, then at the floor where the guest wants to go.

The lift moves in column 4, through `FLOORS` floors (the rows from the top), and stands at row 4 at the start. Up and
down send it that way by a floor a step, the step of the action included. It goes on by itself, and where it would leave
the top or bottom floor it turns and moves the other way. Fire stops it where it is and opens the doors; then it stands
until you send it off again, and fire does nothing. Doors that open at the floor of the waiting guest give +1: the guest
gets in and names another floor. Doors that open there give +2, and the next guest waits at another floor. These floors
are random. Opening the doors anywhere else is a mistake. `MISTAKES` mistakes end the episode, and so does step `SHIFT`.
"""

from weightgym.rewards.weight_program.games.kit import (
    DOWN,
    FIRE,
    GAUGE,
    PLAYER,
    REWARD,
    TRAIL,
    UP,
    below,
    light,
)

FAMILY = "arcade_style"
CAP = 90
CHANNELS = {
    PLAYER: "the lift",
    REWARD: "the floor to stop at: columns 0 to 3 while a guest waits there, columns 5 to 8 while one wants to get out",
    TRAIL: "the cell that the lift comes from, while it moves",
    GAUGE: "column 9: a cell from the top for each mistake that you can still make",
}
ACTIONS = "up and down send the lift off, fire stops it and opens the doors; all others let it go on or stand"
VARY = {"FLOORS": (6, 8), "MISTAKES": (3, 8), "SHIFT": (200, 400)}

FLOORS = 10
MISTAKES = 5
SHIFT = 300

LIFT, WAY, FLOOR, ABOARD, PATIENCE, CLOCK, STATE = range(7)


def reset(s, rng):
    s[LIFT] = 4
    s[FLOOR] = 4
    s[PATIENCE] = MISTAKES
    new_floor(s, rng)


def new_floor(s, rng):
    """Any floor but the one before."""
    s[FLOOR] = (s[FLOOR] + 1 + below(rng, FLOORS - 1)) % FLOORS


def open_doors(s, rng):
    s[WAY] = 0
    if s[LIFT] != s[FLOOR]:
        s[PATIENCE] -= 1
        return 0
    reward = 1 + s[ABOARD]
    s[ABOARD] = 1 - s[ABOARD]
    new_floor(s, rng)
    return reward


def step(s, action, rng):
    reward = 0
    if action == UP:
        s[WAY] = -1
    elif action == DOWN:
        s[WAY] = 1
    elif action == FIRE and s[WAY] != 0:
        reward = open_doors(s, rng)
    if s[LIFT] + s[WAY] < 0 or s[LIFT] + s[WAY] >= FLOORS:
        s[WAY] = -s[WAY]
    s[LIFT] += s[WAY]
    s[CLOCK] += 1
    return reward, s[PATIENCE] == 0 or s[CLOCK] == SHIFT


def observe(s, board):
    light(board, s[LIFT], 4, PLAYER)
    if s[WAY] != 0:
        light(board, s[LIFT] - s[WAY], 4, TRAIL)
    for column in range(4):
        light(board, s[FLOOR], column + 5 * s[ABOARD], REWARD)
    for mistake in range(s[PATIENCE]):
        light(board, mistake, 9, GAUGE)

"""Drop depth charges from a ship on the submarines that pass below, and lead them: a charge takes its time to sink.

You sail along row 1, from column 4 on. Fire drops a charge at your column, if none is sinking. It starts in row 1 and
sinks one row in every `SINK` steps, the step of the drop included. One submarine at a time, three columns long, passes
below in a random row from 3 to 8. It comes in at a random side, at first with its middle in the outermost column, moves
one column in every `PACE`th step, and leaves at the other side; then another one comes. A charge that meets the
submarine, when both have moved, destroys it: that gives +1 in rows 3 to 5 and +2 further down, and another one comes. A
charge that sinks below row 8 is lost. The episode ends with the charge that is the `STOCK`th to be lost, and after 300
steps.
"""

from weightgym.rewards.weight_program.games.kit import (
    FIRE,
    GAUGE,
    LEFT,
    PLAYER,
    PROJECTILE,
    REWARD,
    RIGHT,
    TRAIL,
    below,
    clamp,
    light,
)

FAMILY = "atari_style"
CAP = 70
CHANNELS = {
    PLAYER: "your ship",
    REWARD: "the submarine, three cells",
    PROJECTILE: "the charge that sinks",
    TRAIL: "the cell behind the submarine, and its middle cell on the step before it moves (one in `PACE`)",
    GAUGE: "row 0: charges left to lose, from the left, `STOCK` at the start",
}
ACTIONS = "left and right move the ship one column, fire drops a charge; all others do nothing"

SINK = 1
PACE = 2
STOCK = 4
VARY = {"SINK": (2, 3), "PACE": (1, 3), "STOCK": (3, 6)}

ME, LEFT_OVER, CLOCK, SINKING, DROP_COLUMN, MIDDLE, DEPTH, WAY, STATE = range(9)
TOP = 1


def reset(s, rng):
    s[ME] = 4
    s[LEFT_OVER] = STOCK
    new_submarine(s, rng)


def new_submarine(s, rng):
    s[WAY] = 2 * below(rng, 2) - 1
    s[MIDDLE] = 0 if s[WAY] == 1 else 9
    s[DEPTH] = 3 + below(rng, 6)


def pass_by(s, rng):
    s[MIDDLE] += s[WAY]
    if s[MIDDLE] < -1 or s[MIDDLE] > 10:
        new_submarine(s, rng)


def charge_row(s):
    return TOP + s[SINKING] // SINK


def burst(s, rng):
    """What the charge gives where it is now."""
    if charge_row(s) > 8:
        s[SINKING] = 0
        s[LEFT_OVER] -= 1
    elif charge_row(s) == s[DEPTH] and abs(s[DROP_COLUMN] - s[MIDDLE]) <= 1:
        s[SINKING] = 0
        reward = 1 if s[DEPTH] <= 5 else 2
        new_submarine(s, rng)
        return reward
    return 0


def step(s, action, rng):
    if action == LEFT:
        s[ME] = clamp(s[ME] - 1, 0, 9)
    elif action == RIGHT:
        s[ME] = clamp(s[ME] + 1, 0, 9)
    if s[SINKING] > 0:
        s[SINKING] += 1
    elif action == FIRE:
        s[SINKING] = 1
        s[DROP_COLUMN] = s[ME]
    s[CLOCK] += 1
    if s[CLOCK] % PACE == 0:
        pass_by(s, rng)
    reward = burst(s, rng) if s[SINKING] > 0 else 0
    return reward, s[LEFT_OVER] == 0 or s[CLOCK] == 300


def observe(s, board):
    light(board, TOP, s[ME], PLAYER)
    for column in range(s[MIDDLE] - 1, s[MIDDLE] + 2):
        light(board, s[DEPTH], column, REWARD)
    light(board, s[DEPTH], s[MIDDLE] - 2 * s[WAY], TRAIL)
    if s[CLOCK] % PACE == PACE - 1:
        light(board, s[DEPTH], s[MIDDLE], TRAIL)
    if s[SINKING] > 0:
        light(board, charge_row(s), s[DROP_COLUMN], PROJECTILE)
    for charge in range(s[LEFT_OVER]):
        light(board, 0, charge, GAUGE)

"""Fly a plane over a ridge, high enough for its peaks, and bomb what stands between them.

The plane starts in column 0 of row 4 and flies to column 9, one column on every `PACE`th step; after that it comes in
again like this over another ridge. A ridge has `PEAKS` peaks in random columns from 3 to 9 (some may coincide), three
to eight rows high, and up to `TARGETS` targets on row 9, in random columns from 2 to 9 without a peak. Up and down
change your row by one, from 0 to 8. Fire drops one of three bombs of this crossing, if none is falling. After your
action and the plane's flight a bomb falls one row, on the step of the drop too; it drifts forward as fast as the plane
flies, so that it stays below the plane. A bomb on a target gives +2 and destroys it; one that comes down elsewhere or
on a peak is gone, and so is one that still falls when the crossing ends. Flying into a peak costs 2 and ends the
crossing. The episode ends after 400 steps.
"""

from weightgym.rewards.weight_program.games.kit import (
    DANGER,
    DOWN,
    FIRE,
    GAUGE,
    PLAYER,
    PROJECTILE,
    REWARD,
    TRAIL,
    UP,
    below,
    clamp,
    light,
)

FAMILY = "atari_style"
CAP = 55
CHANNELS = {
    PLAYER: "the plane",
    DANGER: "the peaks",
    REWARD: "the targets",
    PROJECTILE: "the falling bomb",
    TRAIL: "the cell behind the plane, on the step before it moves forward (one in `PACE`; not seen in column 0)",
    GAUGE: "row 0: bombs left in this crossing, from the left",
}
ACTIONS = "up and down change the plane's row, fire drops a bomb; all others do nothing"

PEAKS = 2
TARGETS = 4
PACE = 2
VARY = {"PEAKS": (3, 4), "TARGETS": (3, 5), "PACE": (3, 4)}

ROW, COLUMN, BOMBS, CLOCK, BOMB, HEIGHT = range(6)  # of each column, from HEIGHT on
TARGET = HEIGHT + 10  # whether one stands in each column
STATE = TARGET + 10
NO_BOMB = -1


def reset(s, rng):
    new_crossing(s, rng)


def new_crossing(s, rng):
    s[ROW] = 4
    s[COLUMN] = 0
    s[BOMBS] = 3
    s[BOMB] = NO_BOMB
    for column in range(10):
        s[HEIGHT + column] = 0
        s[TARGET + column] = 0
    for _ in range(PEAKS):
        s[HEIGHT + 3 + below(rng, 7)] = 3 + below(rng, 6)
    for _ in range(TARGETS):
        column = 2 + below(rng, 8)
        if s[HEIGHT + column] == 0:
            s[TARGET + column] = 1


def in_peak(s, row, column):
    return row >= 10 - s[HEIGHT + column]


def strike(s):
    """What the bomb gives where it is now, below the plane."""
    if s[BOMB] < 9 and not in_peak(s, s[BOMB], s[COLUMN]):
        return 0
    hit = 2 * s[TARGET + s[COLUMN]]
    s[BOMB] = NO_BOMB
    s[TARGET + s[COLUMN]] = 0
    return hit


def step(s, action, rng):
    if action == UP:
        s[ROW] = clamp(s[ROW] - 1, 0, 8)
    elif action == DOWN:
        s[ROW] = clamp(s[ROW] + 1, 0, 8)
    elif action == FIRE and s[BOMB] == NO_BOMB and s[BOMBS] > 0:
        s[BOMBS] -= 1
        s[BOMB] = s[ROW]
    s[CLOCK] += 1
    if s[CLOCK] % PACE == 0:
        s[COLUMN] += 1
    reward = 0
    if s[COLUMN] > 9:
        new_crossing(s, rng)
    elif in_peak(s, s[ROW], s[COLUMN]):
        reward = -2
        new_crossing(s, rng)
    elif s[BOMB] != NO_BOMB:
        s[BOMB] += 1
        reward = strike(s)
    return reward, s[CLOCK] == 400


def observe(s, board):
    light(board, s[ROW], s[COLUMN], PLAYER)
    for column in range(10):
        for row in range(10 - s[HEIGHT + column], 10):
            light(board, row, column, DANGER)
        if s[TARGET + column] == 1:
            light(board, 9, column, REWARD)
    if s[BOMB] != NO_BOMB:
        light(board, s[BOMB], s[COLUMN], PROJECTILE)
    if s[CLOCK] % PACE == PACE - 1:
        light(board, s[ROW], s[COLUMN] - 1, TRAIL)
    for bomb in range(s[BOMBS]):
        light(board, 0, bomb, GAUGE)

"""Keep a lantern in the air and steer it through the gaps of the towers that the wind carries by.

The lantern floats in column `STATION`, and starts in row 4. Up makes it rise by `RISE` rows, to row 0 at most; without
that it sinks a row on steps that are multiples of `SINK`. Sinking to row 9 costs one of three flames, and the lantern
starts again in row 4. Then the tower moves left a column. There is one tower at a time; it comes in at column 9, and
has a gap of four rows, somewhere in rows 1 to 8. When it comes to column `STATION` you must be in its gap: that gives
+1. Otherwise you touch it, which costs a flame. When it comes to column 0 the next tower takes its place, in column 9.
The last flame ends the episode, and so does the passing of the sixtieth tower, after 540 steps.
"""

from weightgym.rewards.weight_program.games.kit import (
    DANGER,
    GAUGE,
    PLAYER,
    REWARD,
    TRAIL,
    UP,
    below,
    light,
)

FAMILY = "arcade_style"
CAP = 60
CHANNELS = {
    PLAYER: "the lantern",
    DANGER: "the tower, all other rows of its column",
    REWARD: "the four cells of its gap",
    TRAIL: "the cell under the lantern, if it sinks on the next step without up",
    GAUGE: "column 0: one cell from the top for each flame left",
}
ACTIONS = "up makes the lantern rise; all others do nothing"
VARY = {"RISE": (2, 3), "SINK": (1, 3), "STATION": (1, 3)}

STATION = 2
RISE = 1
SINK = 2

ROW, FLAMES, TOWERS, COLUMN, GAP, CLOCK, STATE = range(7)


def reset(s, rng):
    s[ROW] = 4
    s[FLAMES] = 3
    new_tower(s, rng)


def new_tower(s, rng):
    s[TOWERS] += 1
    s[COLUMN] = 9
    s[GAP] = 1 + below(rng, 5)  # and the three rows below


def step(s, action, rng):
    reward = 0
    s[CLOCK] += 1
    if action == UP:
        s[ROW] = max(0, s[ROW] - RISE)
    elif s[CLOCK] % SINK == 0:
        s[ROW] += 1
    if s[ROW] == 9:
        s[FLAMES] -= 1
        s[ROW] = 4
    s[COLUMN] -= 1
    if s[COLUMN] == STATION:
        if s[GAP] <= s[ROW] <= s[GAP] + 3:
            reward = 1
        else:
            s[FLAMES] -= 1
    elif s[COLUMN] == 0:
        new_tower(s, rng)
    return reward, s[FLAMES] <= 0 or s[TOWERS] > 60


def observe(s, board):
    light(board, s[ROW], STATION, PLAYER)
    if (s[CLOCK] + 1) % SINK == 0:
        light(board, s[ROW] + 1, STATION, TRAIL)
    for row in range(10):
        gap = s[GAP] <= row <= s[GAP] + 3
        light(board, row, s[COLUMN], REWARD if gap else DANGER)
    for flame in range(s[FLAMES]):
        light(board, flame, 0, GAUGE)

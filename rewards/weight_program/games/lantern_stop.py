"""Creep up to the watchman through the gaps of three hedges, and stand still whenever he raises his lantern.

You start in row 9, in a random column, and walk up, or sideways over columns 0 to 8. Rows 8, 5 and 2 are hedges, each
with a gap of `GAP` cells at random; nothing else of a hedge can be entered. Every row that you gain gives +1. In row 0
you touch the watchman: +3 more, and you start again from row 9, in a random column, with new gaps. He looks away for
`AWAY` to `AWAY` + 3 steps (at first for `AWAY`), then he looks for `LOOK` to `LOOK` + 2 steps, in turn. If you walk
while you see him look, even against a hedge or the edge, you pay 3 and are put back into the leftmost gap cell of the
hedge that you passed or entered last; before the first hedge you stay where you are. The episode ends after 300 steps.
"""

from weightgym.rewards.weight_program.games.kit import (
    DANGER,
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
CAP = 130
CHANNELS = {
    PLAYER: "you",
    DANGER: "the nearest hedge above you; and row 0, columns 0 to 8, while the watchman looks",
    REWARD: "the gap of that hedge",
    TRAIL: "row 0, columns 0 to 8, on the last step before he looks (you can still walk in it)",
    GAUGE: "column 9: a cell from row 1 down for each step until he turns",
}
ACTIONS = "left, up and right walk; all others stand still"

GAP = 3
AWAY = 6
LOOK = 3
VARY = {"GAP": (2, 4), "AWAY": (4, 5), "LOOK": (2, 5)}

ROW, COLUMN, LOOKS, TURN, CLOCK, GAPS = range(6)  # GAPS: the first column of each hedge's gap
STATE = GAPS + 3


def reset(s, rng):
    start(s, rng)
    s[TURN] = AWAY


def start(s, rng):
    s[ROW] = 9
    s[COLUMN] = below(rng, 9)
    for hedge in range(3):
        s[GAPS + hedge] = below(rng, 10 - GAP)


def is_hedge(s, row, column):
    if row % 3 != 2:
        return False
    gap = s[GAPS + row // 3]
    return not gap <= column < gap + GAP


def walk(s, action, rng):
    row, column = s[ROW], s[COLUMN]
    if action == UP:
        row -= 1
    else:
        column = clamp(column + (1 if action == RIGHT else -1), 0, 8)
    if is_hedge(s, row, column):
        return 0
    reward = s[ROW] - row
    s[ROW], s[COLUMN] = row, column
    if row == 0:
        reward += 3
        start(s, rng)
    return reward


def caught(s):
    if s[ROW] < 9:
        hedge = s[ROW] // 3
        s[ROW] = 3 * hedge + 2
        s[COLUMN] = s[GAPS + hedge]
    return -3


def step(s, action, rng):
    reward = 0
    if LEFT <= action <= RIGHT:
        reward = caught(s) if s[LOOKS] == 1 else walk(s, action, rng)
    s[TURN] -= 1
    if s[TURN] == 0:
        s[LOOKS] = 1 - s[LOOKS]
        s[TURN] = LOOK + below(rng, 3) if s[LOOKS] == 1 else AWAY + below(rng, 4)
    s[CLOCK] += 1
    return reward, s[CLOCK] == 300


def observe(s, board):
    light(board, s[ROW], s[COLUMN], PLAYER)
    row = s[ROW] // 3 * 3 - 1  # above row 2 there is no hedge, and this row is off the board
    for column in range(9):
        light(board, row, column, DANGER if row > 0 and is_hedge(s, row, column) else REWARD)
        if s[LOOKS] == 1:
            light(board, 0, column, DANGER)
        elif s[TURN] == 1:
            light(board, 0, column, TRAIL)
    for step_left in range(s[TURN]):
        light(board, 1 + step_left, 9, GAUGE)

"""You are a toad: hop from log to log across a river, and come over to the far bank.

You start on the near bank, in column 4 of row 9. Above it are `RIVER` rows of water, and above those the far bank, a
single row. In each row of water a log floats, `LOG` cells long, from a random place; what floats out at one side comes
in at the other. The logs in even rows float to the right, those in odd rows to the left, one column on every `PACE`th
step, and carry you along. You hop one cell a step, before the logs float on; at the sides of the board you can't hop
out. Every row that you gain for the first time in a crossing gives +1, and the far bank gives 2 more; then you start
again at the near bank. Hopping into the water, or being carried off the board, costs 1 and sends you back to the start:
a new crossing begins, but for eight steps you must dry and can't hop. The episode ends after `LENGTH` steps.
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

FAMILY = "atari_style"
CAP = 160
CHANNELS = {
    PLAYER: "you",
    DANGER: "the water",
    REWARD: "the row that you can gain next: its logs, or the whole far bank",
    TRAIL: "on the step before the logs float on (one in `PACE`), the water that they will cover",
    GAUGE: "row 0, from the left: one cell for every two steps until you are dry, rounded up",
}
ACTIONS = "left, up, right and down hop one cell; no-op and fire sit still"

RIVER = 3
LOG = 5
PACE = 2
LENGTH = 300
VARY = {"RIVER": (4, 5), "LOG": (4, 6), "PACE": (1, 3), "LENGTH": (200, 400)}

DRY = 8
NEAR = 9
FAR = NEAR - RIVER - 1
ROW, COLUMN, GAINED, DAMP, CLOCK, FIRST = range(6)  # the left end of each row's log, from FIRST on
STATE = FIRST + 10


def reset(s, rng):
    for row in range(10):
        s[FIRST + row] = below(rng, 10)
    start(s)


def start(s):
    s[ROW] = NEAR
    s[COLUMN] = 4
    s[GAINED] = NEAR


def drift(row):
    return 1 if row % 2 == 0 else -1


def is_log(s, row, column):
    return FAR < row < NEAR and (column - s[FIRST + row]) % 10 < LOG


def hop(s, action):
    if action == UP:
        s[ROW] -= 1
    elif action == DOWN:
        s[ROW] = min(s[ROW] + 1, NEAR)
    elif action == LEFT:
        s[COLUMN] = clamp(s[COLUMN] - 1, 0, 9)
    elif action == RIGHT:
        s[COLUMN] = clamp(s[COLUMN] + 1, 0, 9)


def float_on(s):
    for row in range(FAR + 1, NEAR):
        s[FIRST + row] += drift(row)
    if s[ROW] < NEAR:
        s[COLUMN] += drift(s[ROW])


def landed(s):
    """What the hop gives: the toad is on a bank or on a log."""
    if s[ROW] >= s[GAINED]:
        return 0
    s[GAINED] = s[ROW]
    if s[ROW] > FAR:
        return 1
    start(s)
    return 3


def step(s, action, rng):
    reward = 0
    if s[DAMP] > 0:
        s[DAMP] -= 1
    else:
        hop(s, action)
    wet = FAR < s[ROW] < NEAR and not is_log(s, s[ROW], s[COLUMN])
    if not wet:
        reward = landed(s)
    s[CLOCK] += 1
    if s[CLOCK] % PACE == 0:
        float_on(s)
    if wet or s[COLUMN] < 0 or s[COLUMN] > 9:
        reward -= 1
        start(s)
        s[DAMP] = DRY
    return reward, s[CLOCK] == LENGTH


def observe(s, board):
    light(board, s[ROW], s[COLUMN], PLAYER)
    for column in range(10):
        if s[GAINED] == FAR + 1:
            light(board, FAR, column, REWARD)
        for row in range(FAR + 1, NEAR):
            if not is_log(s, row, column):
                light(board, row, column, DANGER)
                if s[CLOCK] % PACE == PACE - 1 and is_log(s, row, column - drift(row)):
                    light(board, row, column, TRAIL)
            elif row == s[GAINED] - 1:
                light(board, row, column, REWARD)
    for cell in range((s[DAMP] + 1) // 2):
        light(board, 0, cell, GAUGE)

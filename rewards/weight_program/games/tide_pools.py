"""Gather shells on a beach at low tide, the better the farther out, and be back before the water comes.

You walk one cell up, down, left or right through rows 1 to 9, from column 0 of row 5. Land is on the left, the sea on
the right. `SHELLS` shells lie about in columns 2 to 9 of these rows; you pick up one that lies in your cell, or in the
cell above or below you, and another is washed up at random. A shell is worth 1 in columns 2 and 3, 2 in columns 4 and
5, 3 in columns 6 and 7, 4 in columns 8 and 9. The water waits off the beach for `LOW` steps (at the start it comes on
step `LOW`), then comes in a column a step until it covers columns 3 to 9, and at once goes back a column a step. If it
covers you after your move and its own, that costs 2, you pick up nothing, and are washed up at column 0 of your row.
The episode ends after 300 steps.
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
CAP = 120
CHANNELS = {
    PLAYER: "you",
    DANGER: "the water",
    REWARD: "the shells",
    TRAIL: "the column that the water covers on the next step, while it comes in",
    GAUGE: "row 0: steps until the water comes, from the left, ten cells at most; none while it is on the beach",
}
ACTIONS = "left, up, right and down walk, fire and no-op do nothing"
VARY = {"LOW": (6, 14), "SHELLS": (2, 5)}

ROW, COLUMN, TIDE, CLOCK, SHELL, STATE = 0, 1, 2, 3, 4, 16
LOW = 10
SHELLS = 3


def reset(s, rng):
    s[ROW] = 5
    for shell in range(SHELLS):
        new_shell(s, shell, rng)


def new_shell(s, shell, rng):
    s[SHELL + 2 * shell] = 1 + below(rng, 9)
    s[SHELL + 2 * shell + 1] = 2 + below(rng, 8)


def shore(s):
    """The first column under water."""
    coming = s[TIDE] - LOW
    return 10 if coming < 0 else 3 + abs(coming - 6)


def walk(s, action):
    if action == LEFT:
        s[COLUMN] = clamp(s[COLUMN] - 1, 0, 9)
    elif action == RIGHT:
        s[COLUMN] = clamp(s[COLUMN] + 1, 0, 9)
    elif action == UP:
        s[ROW] = clamp(s[ROW] - 1, 1, 9)
    elif action == DOWN:
        s[ROW] = clamp(s[ROW] + 1, 1, 9)


def gather(s, rng):
    worth = 0
    for shell in range(SHELLS):
        if abs(s[SHELL + 2 * shell] - s[ROW]) <= 1 and s[SHELL + 2 * shell + 1] == s[COLUMN]:
            worth += s[COLUMN] // 2
            new_shell(s, shell, rng)
    return worth


def step(s, action, rng):
    walk(s, action)
    s[TIDE] = (s[TIDE] + 1) % (LOW + 13)
    if s[COLUMN] >= shore(s):
        s[COLUMN] = 0
        reward = -2
    else:
        reward = gather(s, rng)
    s[CLOCK] += 1
    return reward, s[CLOCK] == 300


def observe(s, board):
    light(board, s[ROW], s[COLUMN], PLAYER)
    for shell in range(SHELLS):
        light(board, s[SHELL + 2 * shell], s[SHELL + 2 * shell + 1], REWARD)
    for row in range(1, 10):
        for column in range(shore(s), 10):
            light(board, row, column, DANGER)
        if LOW - 1 <= s[TIDE] < LOW + 6:
            light(board, row, shore(s) - 1, TRAIL)
    for column in range(LOW - s[TIDE]):
        light(board, 0, column, GAUGE)

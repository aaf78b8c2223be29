"""Dive for pearls, and be back under the boat with them before the air is used up.

You swim up, down, left and right through rows 4 to 9. `PEARLS` pearls lie on the sea floor, row 9, at random columns.
Reaching one puts it into your net, if there is room: that gives +1, and another is found at least two columns away. The
net holds `NET` pearls. The boat floats over columns 3 to 6: in row 4 beneath it you hand over what is in the net, for
+2 a pearl, and breathe in. A breath lasts for `AIR` steps: if you are not beneath the boat after the last of them, the
pearls in the net are lost, and you are pulled up to column 4 of row 4, where you breathe in. You also begin there, with
a full breath. The episode ends after 300 steps.
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
    clamp,
    light,
)

FAMILY = "arcade_style"
CAP = 130
CHANNELS = {
    PLAYER: "you",
    REWARD: "row 9: the pearls; row 3, columns 3 to 6: the boat, while you have pearls in your net",
    TRAIL: "row 1: pearls in your net, from the left; all of row 1 when it is full",
    GAUGE: "row 0: tenths of `AIR` that are left, rounded down, from the left (none in the very last steps)",
}
ACTIONS = "left, up, right and down swim one cell, fire and no-op do nothing"
VARY = {"AIR": (20, 40), "NET": (2, 5), "PEARLS": (2, 4)}

ROW, COLUMN, BREATH, LOAD, CLOCK, PEARL, STATE = 0, 1, 2, 3, 4, 5, 10
AIR = 28
NET = 3
PEARLS = 3


def reset(s, rng):
    surface(s)
    for pearl in range(PEARLS):
        s[PEARL + pearl] = below(rng, 10)


def surface(s):
    s[ROW] = 4
    s[COLUMN] = 4
    s[BREATH] = AIR
    s[LOAD] = 0


def swim(s, action):
    if action == LEFT:
        s[COLUMN] = clamp(s[COLUMN] - 1, 0, 9)
    elif action == RIGHT:
        s[COLUMN] = clamp(s[COLUMN] + 1, 0, 9)
    elif action == UP:
        s[ROW] = clamp(s[ROW] - 1, 4, 9)
    elif action == DOWN:
        s[ROW] = clamp(s[ROW] + 1, 4, 9)


def gather(s, rng):
    found = 0
    for pearl in range(PEARLS):
        if s[ROW] == 9 and s[PEARL + pearl] == s[COLUMN] and s[LOAD] < NET:
            s[PEARL + pearl] = (s[COLUMN] + 2 + below(rng, 7)) % 10
            s[LOAD] += 1
            found += 1
    return found


def step(s, action, rng):
    swim(s, action)
    s[BREATH] -= 1
    reward = gather(s, rng)
    if s[ROW] == 4 and 3 <= s[COLUMN] <= 6:
        reward = 2 * s[LOAD]
        s[LOAD] = 0
        s[BREATH] = AIR
    elif s[BREATH] == 0:
        surface(s)
    s[CLOCK] += 1
    return reward, s[CLOCK] == 300


def observe(s, board):
    light(board, s[ROW], s[COLUMN], PLAYER)
    for pearl in range(PEARLS):
        light(board, 9, s[PEARL + pearl], REWARD)
    if s[LOAD] > 0:
        for column in range(3, 7):
            light(board, 3, column, REWARD)
    for column in range(10 if s[LOAD] == NET else s[LOAD]):
        light(board, 1, column, TRAIL)
    for column in range(s[BREATH] * 10 // AIR):
        light(board, 0, column, GAUGE)

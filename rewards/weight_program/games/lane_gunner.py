"""Raiders come at you along `LANES` lanes; meet each in its lane and shoot it.

You stand in column 0, at first in row 4, and move up and down over rows 1 to `LANES`. One raider at a time enters at
column `ENTRY` in a random lane and comes one cell closer every second step. Its first move is in the second step after
it enters; if you hit the raider before it, in the very next step. Fire shoots along your row at once, before the raider
moves, but then you must load for `LOADING` steps. A raider that is hit gives +1; one that reaches column 0 costs one of
`LIVES` lives. Either way the next one enters. The last life ends the episode, and so does the fiftieth raider, when it
is hit or has reached you.
"""

from weightgym.rewards.weight_program.games.kit import (
    DANGER,
    DOWN,
    FIRE,
    GAUGE,
    PLAYER,
    PROJECTILE,
    TRAIL,
    UP,
    below,
    clamp,
    light,
)

FAMILY = "atari_style"
CAP = 50
CHANNELS = {
    PLAYER: "you",
    DANGER: "the raider",
    PROJECTILE: "your shot, along its row, for the step after it",
    TRAIL: "the cell behind the raider, if it is on the board, on the step before it moves",
    GAUGE: "row 0: steps until you have loaded, from the left; row 9: lives, from the right",
}
ACTIONS = "up and down move you one row, fire shoots; all others do nothing"
VARY = {"ENTRY": (5, 7), "LANES": (5, 6), "LIVES": (4, 5), "LOADING": (2, 6)}

LANES = 8
ENTRY = 9
LOADING = 4
LIVES = 3

ME, SPARE, RAIDERS, LANE, COLUMN, WAIT, LOAD, SHOT, STATE = range(9)


def reset(s, rng):
    s[ME] = 4
    s[SPARE] = LIVES
    new_raider(s, rng)


def new_raider(s, rng):
    s[RAIDERS] += 1
    s[LANE] = 1 + below(rng, LANES)
    s[COLUMN] = ENTRY
    s[WAIT] = 1


def step(s, action, rng):
    reward = 0
    s[SHOT] = 0
    if action == UP:
        s[ME] = clamp(s[ME] - 1, 1, LANES)
    elif action == DOWN:
        s[ME] = clamp(s[ME] + 1, 1, LANES)
    elif action == FIRE and s[LOAD] == 0:
        s[LOAD] = LOADING + 1
        s[SHOT] = 1
        if s[LANE] == s[ME]:
            reward = 1
            new_raider(s, rng)
    s[LOAD] = max(0, s[LOAD] - 1)
    if s[WAIT] > 0:
        s[WAIT] -= 1
    else:
        s[WAIT] = 1
        s[COLUMN] -= 1
        if s[COLUMN] == 0:
            s[SPARE] -= 1
            new_raider(s, rng)
    return reward, s[SPARE] == 0 or s[RAIDERS] > 50


def observe(s, board):
    light(board, s[ME], 0, PLAYER)
    light(board, s[LANE], s[COLUMN], DANGER)
    if s[WAIT] == 0:
        light(board, s[LANE], s[COLUMN] + 1, TRAIL)
    if s[SHOT] == 1:
        for column in range(1, 10):
            light(board, s[ME], column, PROJECTILE)
    for step_left in range(s[LOAD]):
        light(board, 0, step_left, GAUGE)
    for life in range(s[SPARE]):
        light(board, 9, 9 - life, GAUGE)

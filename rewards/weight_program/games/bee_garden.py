"""Fly from flower to flower: drink where one is open, and be gone before it closes.

The garden has nine places, three by three: the hive in the middle, where you start, and eight flowers around it. Left,
up, right and down fly to the next place on that side; where there is none, you stay. Every flower opens and closes by a
timer of its own: it stays open for `OPEN` steps and closed for `SHUT` to twice `SHUT` steps. At the start each is open
or closed, for 1 to `OPEN` steps more, all as likely. In a step you move first, then the timers run on, and then it
counts where you are: +1 on an open flower, -1 on a closed one, which stings, and nothing in the hive. So a flower with
one step left on its timer will have changed when you get there. The episode ends after 200 steps.
"""

from weightgym.rewards.weight_program.games.kit import (
    DANGER,
    DOWN,
    GAUGE,
    LEFT,
    PLAYER,
    REWARD,
    RIGHT,
    UP,
    below,
    clamp,
    light,
)

FAMILY = "arcade_style"
CAP = 140
CHANNELS = {
    PLAYER: "the bee, in the middle of its place",
    DANGER: "the closed flowers, three cells wide, in rows 1, 4 and 7",
    REWARD: "the open flowers, likewise",
    GAUGE: "under each flower, from its left: a cell for each step until it opens or closes, three at most",
}
ACTIONS = "left, up, right and down fly to the next place on that side; all others stay"

OPEN = 7
SHUT = 5
VARY = {"OPEN": (4, 6), "SHUT": (6, 8)}

ROW, COLUMN, CLOCK, BLOOM, TIMER = 0, 1, 2, 3, 12  # BLOOM, TIMER: of each place, the hive's unused
STATE = TIMER + 9
HIVE = 4


def reset(s, rng):
    s[ROW] = 1
    s[COLUMN] = 1
    for place in range(9):
        s[BLOOM + place] = below(rng, 2)
        s[TIMER + place] = 1 + below(rng, OPEN)


def fly(s, action):
    if action == LEFT:
        s[COLUMN] -= 1
    elif action == UP:
        s[ROW] -= 1
    elif action == RIGHT:
        s[COLUMN] += 1
    elif action == DOWN:
        s[ROW] += 1
    s[ROW] = clamp(s[ROW], 0, 2)
    s[COLUMN] = clamp(s[COLUMN], 0, 2)


def run_timers(s, rng):
    for place in range(9):
        s[TIMER + place] -= 1
        if s[TIMER + place] == 0:
            s[BLOOM + place] = 1 - s[BLOOM + place]
            s[TIMER + place] = OPEN if s[BLOOM + place] == 1 else SHUT + below(rng, SHUT + 1)


def step(s, action, rng):
    reward = 0
    fly(s, action)
    run_timers(s, rng)
    place = 3 * s[ROW] + s[COLUMN]
    if place != HIVE:
        reward = 1 if s[BLOOM + place] == 1 else -1
    s[CLOCK] += 1
    return reward, s[CLOCK] == 200


def observe(s, board):
    light(board, 3 * s[ROW] + 1, 3 * s[COLUMN] + 1, PLAYER)
    for place in range(9):
        if place != HIVE:
            row, left = place // 3 * 3 + 1, place % 3 * 3
            for column in range(left, left + 3):
                light(board, row, column, REWARD if s[BLOOM + place] == 1 else DANGER)
            for step_left in range(min(3, s[TIMER + place])):
                light(board, row + 1, left + step_left, GAUGE)

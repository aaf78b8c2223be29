"""Carry letters from the post office to the houses across the street, one at a time, each to its own house.

`HOUSES` houses stand side by side along row 0 and share its ten columns; the house at a column is number column times
`HOUSES` divided by 10, rounded down. The office is row `DEPTH`; you walk in rows 0 to `DEPTH`. You start in the office,
at a random column, with a letter in hand. While you have a letter, the bar at the bottom of the board tells which house
it is for. Stepping into row 0 with it hands it over: +3 if it is for the house at your column, -2 if not. Then you go
back: stepping into the office's row without a letter gives +1 and the next letter, for a random house other than the
last letter's. The episode ends after 240 steps.
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
CAP = 80
CHANNELS = {
    PLAYER: "you",
    REWARD: "the whole row that you have to go to: row 0 while you have a letter, row `DEPTH` while you have none",
    TRAIL: "rows 7 to 9: the bar, from column 0 to the last column of the house that your letter is for",
    GAUGE: "column 9, rows 5 to 9, while you have a letter",
}
ACTIONS = "left, up, right and down move you one cell; no-op and fire do nothing"

HOUSES = 4
DEPTH = 4
VARY = {"HOUSES": (3, 5), "DEPTH": (3, 5)}

ROW, COLUMN, LETTER, HOUSE, CLOCK, STATE = range(6)


def reset(s, rng):
    s[ROW] = DEPTH
    s[COLUMN] = below(rng, 10)
    s[HOUSE] = below(rng, HOUSES)
    s[LETTER] = 1


def house_at(column):
    return column * HOUSES // 10


def walk(s, action):
    if action in (LEFT, RIGHT):
        s[COLUMN] = clamp(s[COLUMN] + (1 if action == RIGHT else -1), 0, 9)
    elif action in (UP, DOWN):
        s[ROW] = clamp(s[ROW] + (1 if action == DOWN else -1), 0, DEPTH)


def step(s, action, rng):
    reward = 0
    walk(s, action)
    if s[LETTER] == 1 and s[ROW] == 0:
        s[LETTER] = 0
        reward = 3 if house_at(s[COLUMN]) == s[HOUSE] else -2
    elif s[LETTER] == 0 and s[ROW] == DEPTH:
        s[LETTER] = 1
        s[HOUSE] = (s[HOUSE] + 1 + below(rng, HOUSES - 1)) % HOUSES
        reward = 1
    s[CLOCK] += 1
    return reward, s[CLOCK] == 240


def observe(s, board):
    light(board, s[ROW], s[COLUMN], PLAYER)
    for column in range(10):
        light(board, 0 if s[LETTER] == 1 else DEPTH, column, REWARD)
        if s[LETTER] == 1 and house_at(column) <= s[HOUSE]:
            for row in range(7, 10):
                light(board, row, column, TRAIL)
    if s[LETTER] == 1:
        for row in range(5, 10):
            light(board, row, 9, GAUGE)

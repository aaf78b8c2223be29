"""Carry letters from the post office to the houses around it, one at a time, each to its own house.

The office is a block of 3 by 3 cells around row 5, column 5. Eight houses, a cell each, stand around its middle,
`ROUND` cells away straight or both ways (a diagonal one is `ROUND` rows and `ROUND` columns off). You start in the
office with a letter in hand; a lit block of 3 by 3 cells tells which house it is for. Stepping on that
house delivers the letter for +1, and you get the next one when you step into the office again: with chance `FAR` for
one of the four diagonal houses, otherwise for one of the four straight ones. Stepping on a wrong house with a letter in
hand costs you the way: the dog chases you back to the middle of the office. The episode ends after 240 steps.
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
    chance,
    clamp,
    light,
)

FAMILY = "arcade_style"
CAP = 60
CHANNELS = {
    PLAYER: "you",
    DANGER: "the houses, while you have a letter",
    REWARD: "the rim of the office, while you have none",
    TRAIL: "the block around the house that the letter is for",
    GAUGE: "all of row 0 while you have a letter",
}
ACTIONS = "left, up, right and down move you one cell; no-op and fire do nothing"

ROUND = 2
FAR = 0.5
VARY = {"ROUND": (3, 4), "FAR": (0.2, 0.8)}

ROW, COLUMN, LETTER, SOUTH, EAST, CLOCK, STATE = range(7)


def reset(s, rng):
    s[ROW] = 5
    s[COLUMN] = 5
    take_letter(s, rng)


def take_letter(s, rng):
    s[LETTER] = 1
    s[SOUTH] = 2 * below(rng, 2) - 1
    s[EAST] = 2 * below(rng, 2) - 1
    if not chance(rng, FAR):
        if chance(rng, 0.5):
            s[SOUTH] = 0
        else:
            s[EAST] = 0


def walk(s, action):
    """Whether you are in another cell now."""
    row, column = s[ROW], s[COLUMN]
    if action in (LEFT, RIGHT):
        s[COLUMN] = clamp(s[COLUMN] + (1 if action == RIGHT else -1), 1, 9)
    elif action in (UP, DOWN):
        s[ROW] = clamp(s[ROW] + (1 if action == DOWN else -1), 1, 9)
    return row != s[ROW] or column != s[COLUMN]


def step(s, action, rng):
    reward = 0
    if walk(s, action):
        south, east = s[ROW] - 5, s[COLUMN] - 5
        if s[LETTER] == 0:
            if max(abs(south), abs(east)) < 2:
                take_letter(s, rng)
        elif south == ROUND * s[SOUTH] and east == ROUND * s[EAST]:
            reward = 1
            s[LETTER] = 0
        elif south % ROUND == 0 and east % ROUND == 0 and max(abs(south), abs(east)) == ROUND:
            s[ROW] = 5
            s[COLUMN] = 5
    s[CLOCK] += 1
    return reward, s[CLOCK] == 240


def light_around(board, distance, channel):
    """The eight cells at that distance from the middle of the office, straight or both ways."""
    for side in range(9):
        if side != 4:
            light(board, 5 + distance * (side // 3 - 1), 5 + distance * (side % 3 - 1), channel)


def observe(s, board):
    light(board, s[ROW], s[COLUMN], PLAYER)
    if s[LETTER] == 0:
        light_around(board, 1, REWARD)
        return
    for cell in range(9):
        light(board, 4 + ROUND * s[SOUTH] + cell // 3, 4 + ROUND * s[EAST] + cell % 3, TRAIL)
    for column in range(10):
        light(board, 0, column, GAUGE)
    light_around(board, ROUND, DANGER)

"""You and your mirrored twin walk at once: gather gems with either of you, and keep both off the mines.

Each of you has a field of nine places, three by three: yours in the left half of the board, your twin's in the right
half. Both of you start in the middle of your fields. Your twin is always in your row, as far from the right edge as you
are from the left one: when you go left, it goes right. Up and down move both of you. At the edge of the field a move
does nothing. In the 18 places lie `GEMS` gems and `MINES` mines, at most one in a place. A gem where one of you is
gives +1, a mine costs 1; each of them then lies elsewhere, in a random empty place where neither of you is. The episode
ends after 200 steps.
"""

from weightgym.rewards.weight_program.games.kit import (
    DANGER,
    DOWN,
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
CAP = 110
CHANNELS = {
    PLAYER: "you and your twin; places are in rows 1, 4 and 7, yours in columns 0, 2 and 4, your twin's in 5, 7 and 9",
    DANGER: "the mines, each in its place and in the cells above and below it",
    REWARD: "the gems, likewise",
}
ACTIONS = "left and right move you that way and your twin the other way, up and down move both; all others do nothing"

GEMS = 4
MINES = 4
VARY = {"GEMS": (2, 3), "MINES": (5, 6)}

ROW, COLUMN, CLOCK, PLACES = range(4)  # PLACES: what lies in each of three rows of six places
STATE = PLACES + 18
GEM, MINE = 1, 2


def reset(s, rng):
    s[ROW] = 1
    s[COLUMN] = 1
    for _ in range(GEMS):
        lay(s, GEM, rng)
    for _ in range(MINES):
        lay(s, MINE, rng)


def lay(s, thing, rng):
    place = below(rng, 18)
    while s[PLACES + place] > 0 or is_trodden(s, place):
        place = below(rng, 18)
    s[PLACES + place] = thing


def is_trodden(s, place):
    column = place % 6
    return place // 6 == s[ROW] and min(column, 5 - column) == s[COLUMN]


def walk(s, action):
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


def tread(s, column, rng):
    place = PLACES + 6 * s[ROW] + column
    thing = s[place]
    if thing == 0:
        return 0
    s[place] = 0
    lay(s, thing, rng)
    return 1 if thing == GEM else -1


def step(s, action, rng):
    walk(s, action)
    reward = tread(s, s[COLUMN], rng) + tread(s, 5 - s[COLUMN], rng)
    s[CLOCK] += 1
    return reward, s[CLOCK] == 200


def observe(s, board):
    light(board, 3 * s[ROW] + 1, 2 * s[COLUMN], PLAYER)
    light(board, 3 * s[ROW] + 1, 9 - 2 * s[COLUMN], PLAYER)
    for place in range(18):
        if s[PLACES + place] > 0:
            column = place % 6 * 2 - place % 6 // 3
            for row in range(place // 6 * 3, place // 6 * 3 + 3):
                light(board, row, column, REWARD if s[PLACES + place] == GEM else DANGER)

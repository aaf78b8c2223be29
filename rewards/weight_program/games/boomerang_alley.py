"""Throw a boomerang along the rows at birds that walk there, and be in its row when it comes back.

You are in column 0, at first in a random row, and move up and down over rows 0 to 8. Fire throws the boomerang along
your row: it flies two cells a step, the step of the throw included, to column 9 and back again. Fire on its way out
turns it back before that. `BIRDS` birds walk to and fro in columns 3 to 9, each in a random row, one cell a step, after
the boomerang has flown. A bird that meets the boomerang, on its way out or back, gives +3, and another comes into a
random row, in any of these columns. If you are in the boomerang's row when it is back in column 0, you catch it. If
not, it is lost, which costs 1, and you have to carve a new one: you can throw again in the `CARVE`th step after that.
The episode ends after 300 steps.
"""

from weightgym.rewards.weight_program.games.kit import (
    DOWN,
    FIRE,
    GAUGE,
    PLAYER,
    PROJECTILE,
    REWARD,
    TRAIL,
    UP,
    below,
    clamp,
    light,
)

FAMILY = "arcade_style"
CAP = 140
CHANNELS = {
    PLAYER: "you",
    REWARD: "the birds",
    PROJECTILE: "the boomerang in flight, or in column 1 of your row while you hold it",
    TRAIL: "the cell that the flying boomerang comes from, and the cell behind each bird",
    GAUGE: "row 9: time until you have carved a new boomerang, a cell for each five steps begun, from the left",
}
ACTIONS = "up and down move you one row, fire throws the boomerang or turns it back; all others do nothing"
VARY = {"BIRDS": (2, 5), "CARVE": (10, 40)}

BIRDS = 3
CARVE = 25

ME, ROW, COLUMN, HEADING, CARVING, CLOCK, BIRD = range(7)
STATE = BIRD + 3 * 5  # of each bird: row, column, direction


def reset(s, rng):
    s[ME] = below(rng, 9)
    for bird in range(BIRD, BIRD + 3 * BIRDS, 3):
        new_bird(s, bird, rng)


def new_bird(s, bird, rng):
    s[bird] = below(rng, 9)
    s[bird + 1] = 3 + below(rng, 7)
    s[bird + 2] = 2 * below(rng, 2) - 1


def walk(s, bird):
    if s[bird + 1] + s[bird + 2] < 3 or s[bird + 1] + s[bird + 2] > 9:
        s[bird + 2] = -s[bird + 2]
    s[bird + 1] += s[bird + 2]


def throw(s):
    if s[HEADING] == 1:
        s[HEADING] = -1
    elif s[HEADING] == 0 and s[CARVING] == 0:
        s[HEADING] = 1
        s[ROW] = s[ME]
        s[COLUMN] = 0


def fly(s):
    """One cell on. Returns 1 if the boomerang is lost by it."""
    s[COLUMN] += s[HEADING]
    if s[COLUMN] == 9:
        s[HEADING] = -1
    elif s[COLUMN] == 0:
        s[HEADING] = 0
        if s[ROW] != s[ME]:
            s[CARVING] = CARVE
            return 1
    return 0


def hits(s, rng):
    """What the birds that the boomerang meets are worth."""
    worth = 0
    for bird in range(BIRD, BIRD + 3 * BIRDS, 3):
        if s[HEADING] != 0 and s[bird] == s[ROW] and s[bird + 1] == s[COLUMN]:
            new_bird(s, bird, rng)
            worth += 3
    return worth


def step(s, action, rng):
    reward = 0
    s[CARVING] = max(0, s[CARVING] - 1)
    if action == UP:
        s[ME] = clamp(s[ME] - 1, 0, 8)
    elif action == DOWN:
        s[ME] = clamp(s[ME] + 1, 0, 8)
    elif action == FIRE:
        throw(s)
    for _ in range(2):
        if s[HEADING] != 0:
            reward -= fly(s)
            reward += hits(s, rng)
    s[CLOCK] += 1
    for bird in range(BIRD, BIRD + 3 * BIRDS, 3):
        walk(s, bird)
    reward += hits(s, rng)
    return reward, s[CLOCK] == 300


def observe(s, board):
    light(board, s[ME], 0, PLAYER)
    if s[HEADING] != 0:
        light(board, s[ROW], s[COLUMN], PROJECTILE)
        light(board, s[ROW], s[COLUMN] - s[HEADING], TRAIL)
    elif s[CARVING] == 0:
        light(board, s[ME], 1, PROJECTILE)
    for bird in range(BIRD, BIRD + 3 * BIRDS, 3):
        light(board, s[bird], s[bird + 1], REWARD)
        light(board, s[bird], s[bird + 1] - s[bird + 2], TRAIL)
    for cell in range((s[CARVING] + 4) // 5):
        light(board, 9, cell, GAUGE)

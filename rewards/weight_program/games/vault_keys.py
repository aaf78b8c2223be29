"""Pick up the key, see whether it is gold or iron, and take it through the door of its metal.

You move one cell up, down, left or right through rows 2 to 7 and columns 1 to 8, from row 4 of column 4. A key lies
about at a random place in there, `SIZE` by `SIZE` cells, gold or iron at random. When you are in one of its cells you
pick it up: +1. The left wall has the gold door, the right wall the iron one; each is as high as its wall. Walking left
from column 1 or right from column 8 with a key tries it there: +2 if it is of the door's metal, -`WRONG` if it is not.
Either way the key is gone, and the next one lies at a random place (if you are in it, you pick it up at once). The
episode ends after 250 steps.
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
CAP = 70
CHANNELS = {
    PLAYER: "you",
    REWARD: "gold: the key that lies about, and the door, rows 2 to 7 of column 0",
    TRAIL: "iron: the key that lies about, and the door, rows 2 to 7 of column 9",
    GAUGE: "the key that you hold: gold lights all of row 0, iron all of row 9",
}
ACTIONS = "left, up, right and down move you, fire and no-op do nothing"
VARY = {"WRONG": (2, 5), "SIZE": (2, 4)}

ROW, COLUMN, HELD, METAL, KEY_ROW, KEY_COLUMN, CLOCK, STATE = range(8)
WRONG = 3
SIZE = 3


def reset(s, rng):
    s[ROW] = 4
    s[COLUMN] = 4
    new_key(s, rng)


def new_key(s, rng):
    s[HELD] = 0
    s[METAL] = below(rng, 2)
    s[KEY_ROW] = 2 + below(rng, 7 - SIZE)
    s[KEY_COLUMN] = 1 + below(rng, 9 - SIZE)


def open_door(s, wall, rng):
    right = (wall == 0) == (s[METAL] == 0)
    new_key(s, rng)
    return 2 if right else -WRONG


def touch(s):
    near = 0 <= s[ROW] - s[KEY_ROW] < SIZE and 0 <= s[COLUMN] - s[KEY_COLUMN] < SIZE
    if near and s[HELD] == 0:
        s[HELD] = 1
        return 1
    return 0


def step(s, action, rng):
    reward = 0
    if action == UP:
        s[ROW] = clamp(s[ROW] - 1, 2, 7)
    elif action == DOWN:
        s[ROW] = clamp(s[ROW] + 1, 2, 7)
    elif action in (LEFT, RIGHT):
        to = s[COLUMN] + (1 if action == RIGHT else -1)
        if s[HELD] == 1 and to in (0, 9):
            reward = open_door(s, to, rng)
        s[COLUMN] = clamp(to, 1, 8)
    reward += touch(s)
    s[CLOCK] += 1
    return reward, s[CLOCK] == 250


def observe(s, board):
    light(board, s[ROW], s[COLUMN], PLAYER)
    for row in range(2, 8):
        light(board, row, 0, REWARD)
        light(board, row, 9, TRAIL)
    if s[HELD] == 1:
        for column in range(10):
            light(board, 0 if s[METAL] == 0 else 9, column, GAUGE)
    else:
        for cell in range(SIZE * SIZE):
            light(board, s[KEY_ROW] + cell // SIZE, s[KEY_COLUMN] + cell % SIZE, REWARD if s[METAL] == 0 else TRAIL)

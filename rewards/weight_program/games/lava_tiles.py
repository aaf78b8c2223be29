"""Keep walking over a floor of tiles that crack under your feet and fall into the lava below.

The floor is `SIDE` by `SIDE` tiles and goes on at its opposite edge, so it has no end. You see your own tile in the
middle and the eight around it, 3 by 3 cells each. Left, up, right and down take you one tile on. A whole tile gives +1
when you step on it, and cracks at once. A cracked tile gives nothing, and 2 steps after it cracked it falls; `MEND`
steps later it is back, whole. In a step you walk first, then the tiles crack, fall and come back, and then it counts
what is under you: so a cracked tile may fall just as you get there. With a gap under you, you fall: that costs 2 and
one of four lives, and you go on from a random tile, which has just cracked, as you do at the start. At every step, with
chance `QUAKE`, a random tile cracks too, if it is whole and not yours; there were `MEND` such steps before the start.
The last life ends the episode, and so does step 200.
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
    light,
)

FAMILY = "arcade_style"
CAP = 190
CHANNELS = {
    PLAYER: "you",
    DANGER: "the gaps in the floor",
    REWARD: "whole tiles",
    TRAIL: "cracked tiles",
    GAUGE: "row 9: lives, from the left",
}
ACTIONS = "left, up, right and down take you one tile on; no-op and fire do nothing"

SIDE = 11
MEND = 20
QUAKE = 0.8
VARY = {"SIDE": (9, 10), "MEND": (14, 26), "QUAKE": (0.6, 1.0)}

CRACKED = MEND + 2  # a cracked tile counts down from here: it falls at MEND and is whole at 0
ROW, COLUMN, LIVES, CLOCK, TILES = range(5)
STATE = TILES + SIDE * SIDE


def reset(s, rng):
    s[LIVES] = 4
    for _ in range(MEND):
        age_floor(s, rng)
    drop_in(s, rng)


def drop_in(s, rng):
    s[ROW] = below(rng, SIDE)
    s[COLUMN] = below(rng, SIDE)
    s[tile(s, 0, 0)] = CRACKED


def tile(s, down, right):
    """Where the tile is kept that is so many tiles below you and to your right."""
    return TILES + SIDE * ((s[ROW] + down + SIDE) % SIDE) + (s[COLUMN] + right + SIDE) % SIDE


def walk(s, action):
    if action in (LEFT, RIGHT):
        s[COLUMN] = (s[COLUMN] + (1 if action == RIGHT else SIDE - 1)) % SIDE
    elif action in (UP, DOWN):
        s[ROW] = (s[ROW] + (1 if action == DOWN else SIDE - 1)) % SIDE


def age_floor(s, rng):
    for place in range(TILES, STATE):
        s[place] = max(0, s[place] - 1)
    if chance(rng, QUAKE):
        place = TILES + below(rng, SIDE * SIDE)
        if s[place] == 0 and place != tile(s, 0, 0):
            s[place] = CRACKED


def step(s, action, rng):
    reward = 0
    walk(s, action)
    age_floor(s, rng)
    here = tile(s, 0, 0)
    if s[here] == 0:
        reward = 1
        s[here] = CRACKED
    elif s[here] <= MEND:
        reward = -2
        s[LIVES] -= 1
        drop_in(s, rng)
    s[CLOCK] += 1
    return reward, s[LIVES] == 0 or s[CLOCK] == 200


def observe(s, board):
    light(board, 4, 4, PLAYER)
    for row in range(9):
        for column in range(9):
            left = s[tile(s, row // 3 - 1, column // 3 - 1)]
            if left == 0:
                light(board, row, column, REWARD)
            else:
                light(board, row, column, TRAIL if left > MEND else DANGER)
    for life in range(s[LIVES]):
        light(board, 9, life, GAUGE)

"""Sparks settle in eight rows; wait until a row has many, then burn it off with one costly flash.

You stand in column 0 and move up and down over rows 1 to 8, from a random row. On every `EVERY`th step, after your
action, a spark settles in a random cell of columns 2 to 9 of these rows. If there is one in that cell already, it
fizzles out instead, which costs 1. Fire burns off all sparks in your row: n of them give n times n, less the price of
`PRICE` for the flash (so an empty row costs you the price alone). For three steps after a flash you load: fire does
nothing, but you can move. The episode ends after 300 steps.
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
CAP = 190
CHANNELS = {
    PLAYER: "you",
    REWARD: "the sparks",
    PROJECTILE: "right after a flash: columns 1 to 9 of its row",
    TRAIL: "where the next spark will settle",
    GAUGE: "row 0: steps that you still have to load, from the left",
}
ACTIONS = "up and down move you one row, fire flashes; all others do nothing"
VARY = {"EVERY": (2, 4), "PRICE": (4, 9)}

EVERY = 3
PRICE = 6

ME, NEXT, LOAD, FLASHED, CLOCK, CELL = range(6)
STATE = CELL + 8 * 8  # 1 where there is a spark, row by row


def reset(s, rng):
    s[ME] = 1 + below(rng, 8)
    s[NEXT] = below(rng, 64)


def flash(s):
    """Burn off the row, and return what that earns."""
    s[LOAD] = 4
    s[FLASHED] = s[ME]
    count = 0
    for cell in range(CELL + 8 * (s[ME] - 1), CELL + 8 * s[ME]):
        count += s[cell]
        s[cell] = 0
    return count * count - PRICE


def settle(s, rng):
    """The next spark comes down, and the one after it is chosen."""
    cost = s[CELL + s[NEXT]]
    s[CELL + s[NEXT]] = 1
    s[NEXT] = below(rng, 64)
    return cost


def step(s, action, rng):
    reward = 0
    s[FLASHED] = 0
    if action == UP:
        s[ME] = clamp(s[ME] - 1, 1, 8)
    elif action == DOWN:
        s[ME] = clamp(s[ME] + 1, 1, 8)
    elif action == FIRE and s[LOAD] == 0:
        reward = flash(s)
    s[LOAD] = max(0, s[LOAD] - 1)
    s[CLOCK] += 1
    if s[CLOCK] % EVERY == 0:
        reward -= settle(s, rng)
    return reward, s[CLOCK] == 300


def observe(s, board):
    light(board, s[ME], 0, PLAYER)
    for cell in range(64):
        if s[CELL + cell] == 1:
            light(board, 1 + cell // 8, 2 + cell % 8, REWARD)
    light(board, 1 + s[NEXT] // 8, 2 + s[NEXT] % 8, TRAIL)
    if s[FLASHED] > 0:
        for column in range(1, 10):
            light(board, s[FLASHED], column, PROJECTILE)
    for step_left in range(s[LOAD]):
        light(board, 0, step_left, GAUGE)

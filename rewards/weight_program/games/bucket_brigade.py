"""Fires burn in a street; fetch water at the well and throw it on them before they grow tall.

You run along row 8, a column a step. The street has five plots of two columns each, 0 to 4 from the left: the well is
in plot `WELL`, houses are in the others. Being at the well after your action fills your bucket with `BUCKET` measures.
At any time `FIRES` houses burn, as many rows high as they are lit above row 8. Fire throws a measure straight up, if
you have one: a fire in your plot loses a row and you get +1, elsewhere the water is lost. A fire with no row left is
out, and another one starts, two rows high, in a random house that does not burn, perhaps the same. At every step, after
your action, each fire grows by a row with a chance of `GROWTH`; one that is six rows high can't grow, and costs 1
instead. You start at the well, with a full bucket and fires two rows high. The episode ends after 300 steps.
"""

from weightgym.rewards.weight_program.games.kit import (
    DANGER,
    FIRE,
    GAUGE,
    LEFT,
    PLAYER,
    PROJECTILE,
    REWARD,
    RIGHT,
    below,
    chance,
    clamp,
    light,
)

FAMILY = "arcade_style"
CAP = 100
CHANNELS = {
    PLAYER: "you",
    DANGER: "the fires, both columns of the plot, from row 7 upwards",
    REWARD: "the well, rows 1 to 7 of its plot, while your bucket is empty",
    PROJECTILE: "the water above you, rows 1 to 7, for the step after a throw",
    GAUGE: "row 9: two cells for each measure of water in the bucket, from the left",
}
ACTIONS = "left and right move you, fire throws a measure of water; all others do nothing"

WELL = 0
BUCKET = 4
FIRES = 2
GROWTH = 0.06
VARY = {"WELL": (2, 4), "BUCKET": (3, 5), "FIRES": (1, 3), "GROWTH": (0.03, 0.12)}

ME, WATER, THROWN, CLOCK, HEIGHT = range(5)  # HEIGHT: of the fire in each plot
STATE = HEIGHT + 5
TALLEST = 6


def reset(s, rng):
    s[ME] = 2 * WELL
    s[WATER] = BUCKET
    for _ in range(FIRES):
        new_fire(s, rng)


def new_fire(s, rng):
    plot = below(rng, 5)
    while plot == WELL or s[HEIGHT + plot] > 0:
        plot = below(rng, 5)
    s[HEIGHT + plot] = 2


def throw(s, rng):
    fire = HEIGHT + s[ME] // 2
    s[WATER] -= 1
    s[THROWN] = 1
    if s[fire] == 0:
        return 0
    s[fire] -= 1
    if s[fire] == 0:
        new_fire(s, rng)
    return 1


def grow(s, rng):
    """How many fires were too tall to grow."""
    damage = 0
    for plot in range(5):
        if s[HEIGHT + plot] > 0 and chance(rng, GROWTH):
            if s[HEIGHT + plot] == TALLEST:
                damage += 1
            else:
                s[HEIGHT + plot] += 1
    return damage


def step(s, action, rng):
    reward = 0
    s[THROWN] = 0
    if action == LEFT:
        s[ME] = clamp(s[ME] - 1, 0, 9)
    elif action == RIGHT:
        s[ME] = clamp(s[ME] + 1, 0, 9)
    elif action == FIRE and s[WATER] > 0:
        reward = throw(s, rng)
    if s[ME] // 2 == WELL:
        s[WATER] = BUCKET
    reward -= grow(s, rng)
    s[CLOCK] += 1
    return reward, s[CLOCK] == 300


def observe(s, board):
    light(board, 8, s[ME], PLAYER)
    for column in range(10):
        for row in range(8 - s[HEIGHT + column // 2], 8):
            light(board, row, column, DANGER)
        if column < 2 * s[WATER]:
            light(board, 9, column, GAUGE)
    for row in range(1, 8):
        if s[WATER] == 0:
            light(board, row, 2 * WELL, REWARD)
            light(board, row, 2 * WELL + 1, REWARD)
        if s[THROWN] == 1:
            light(board, row, s[ME], PROJECTILE)

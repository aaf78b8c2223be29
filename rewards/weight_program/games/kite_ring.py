"""Fly a kite in gusty wind and hold it inside a ring that wanders over the sky.

The sky is rows 0 to 8. You move the kite, which starts in a random cell, one cell a step. In every `GUST`th step the
wind then moves it one cell more; the edge of the sky stops it. After a gust, with probability `TURN`, the wind is drawn
anew from the four directions. The ring is three by three cells, and in every fifth step, after the gust, it moves one
cell in a random direction, if there is room. Each step that ends with the kite inside the ring, its border included,
gives +1. A step with a gust that ends with the kite outside snaps one of the `STRANDS` strands of its string. With the
last strand the kite is lost: that costs 5, and you start a new one, with a new string, in a random cell. The episode
ends after 200 steps.
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
    chance,
    clamp,
    light,
)

FAMILY = "arcade_style"
CAP = 190
CHANNELS = {
    PLAYER: "the kite, a cross whose middle counts",
    REWARD: "the four corners of the ring",
    TRAIL: "the kite's tail, beyond the cross, where the wind blows to: one cell, on the step before a gust two",
    GAUGE: "row 9: strands of the string (`STRANDS` at the start), from the left",
}
ACTIONS = "left, up, right and down move the kite one cell; the others do nothing"
VARY = {"GUST": (2, 5), "TURN": (0.05, 0.6), "STRANDS": (5, 10)}

GUST = 3
TURN = 0.2
STRANDS = 8

KITE, KITE_COLUMN, RING, RING_COLUMN, WIND, STRING, CLOCK, STATE = range(8)


def reset(s, rng):
    s[RING] = 1 + below(rng, 7)
    s[RING_COLUMN] = 1 + below(rng, 8)
    s[WIND] = any_direction(rng)
    new_kite(s, rng)


def new_kite(s, rng):
    s[KITE] = below(rng, 9)
    s[KITE_COLUMN] = below(rng, 10)
    s[STRING] = STRANDS


def any_direction(rng):
    """One of the actions left, up, right and down: winds are numbered like them."""
    return LEFT + below(rng, 4)


def move(s, thing, direction, margin):
    """Move the kite or the ring one cell, but no nearer than that to the edge of the sky."""
    row, column = s[thing], s[thing + 1]
    if direction == UP:
        row -= 1
    elif direction == DOWN:
        row += 1
    elif direction == LEFT:
        column -= 1
    elif direction == RIGHT:
        column += 1
    s[thing] = clamp(row, margin, 8 - margin)
    s[thing + 1] = clamp(column, margin, 9 - margin)


def step(s, action, rng):
    move(s, KITE, action, 0)
    s[CLOCK] += 1
    gust = s[CLOCK] % GUST == 0
    if gust:
        move(s, KITE, s[WIND], 0)
        if chance(rng, TURN):
            s[WIND] = any_direction(rng)
    if s[CLOCK] % 5 == 0:
        move(s, RING, any_direction(rng), 1)
    inside = abs(s[KITE] - s[RING]) <= 1 and abs(s[KITE_COLUMN] - s[RING_COLUMN]) <= 1
    reward = 1 if inside else 0
    if gust and not inside:
        s[STRING] -= 1
        if s[STRING] == 0:
            reward = -5
            new_kite(s, rng)
    return reward, s[CLOCK] == 200


def show_kite(s, board):
    row, column, wind = s[KITE], s[KITE_COLUMN], s[WIND]
    for cell in range(-1, 2):
        light(board, row + cell, column, PLAYER)
        light(board, row, column + cell, PLAYER)
    for cell in range(2, 4 if s[CLOCK] % GUST == GUST - 1 else 3):
        if wind in (UP, DOWN):
            light(board, row + (cell if wind == DOWN else -cell), column, TRAIL)
        else:
            light(board, row, column + (cell if wind == RIGHT else -cell), TRAIL)


def observe(s, board):
    show_kite(s, board)
    for corner in range(4):
        light(board, s[RING] - 1 + corner // 2 * 2, s[RING_COLUMN] - 1 + corner % 2 * 2, REWARD)
    for strand in range(s[STRING]):
        light(board, 9, strand, GAUGE)

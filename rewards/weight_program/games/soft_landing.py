"""Bring a lander down onto the pad, gently, before its fuel is gone; then the next one.

The lander starts in row 1, in any column, with no speed and `FUEL` units of fuel. Up fires the main engine, which takes
one unit from the speed, down to none. Without that the speed grows by one unit a step, up to `FASTEST`. Left and right
fire the side thrusters, which move it one column. Each of these takes a unit of fuel, at the edge of the board too;
without fuel they do nothing. Then the lander falls, by half a row for each unit of its new speed. The ground is row 9,
and the pad three of its columns. To touch the ground beside the pad gives -1; on the pad it gives +3 at a speed of at
most 1, else +1. Then the next lander starts, and the pad is drawn anew. The episode ends when the 20th lander has
touched the ground, or after 500 steps.
"""

from weightgym.rewards.weight_program.games.kit import (
    DANGER,
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
CAP = 60
CHANNELS = {
    PLAYER: "the lander; two cells while it is halfway between two rows",
    DANGER: "the ground",
    REWARD: "the pad",
    TRAIL: "above the lander, one cell for each unit of its speed, at most `FASTEST`",
    GAUGE: "row 0: one cell for each unit of fuel left, from the left, `FUEL` at first",
}
ACTIONS = "up brakes the fall, left and right move the lander one column; all but up let it fall faster"

FUEL = 10
FASTEST = 3
VARY = {"FUEL": (8, 9), "FASTEST": (2, 4)}

HEIGHT, COLUMN, SPEED, TANK, PAD, LANDINGS, CLOCK, STATE = range(8)  # HEIGHT: half rows above the ground


def reset(s, rng):
    new_lander(s, rng)


def new_lander(s, rng):
    s[HEIGHT] = 16
    s[SPEED] = 0
    s[TANK] = FUEL
    s[COLUMN] = below(rng, 10)
    s[PAD] = 1 + below(rng, 8)


def fire_engines(s, action):
    """Move to the side, and return whether the main engine brakes."""
    if s[TANK] == 0 or action not in (UP, LEFT, RIGHT):
        return False
    s[TANK] -= 1
    s[COLUMN] = clamp(s[COLUMN] + (action == RIGHT) - (action == LEFT), 0, 9)
    return action == UP


def touch_down(s):
    if abs(s[COLUMN] - s[PAD]) > 1:
        return -1
    return 3 if s[SPEED] <= 1 else 1


def step(s, action, rng):
    reward = 0
    brakes = fire_engines(s, action)
    s[SPEED] = clamp(s[SPEED] + (-1 if brakes else 1), 0, FASTEST)
    s[HEIGHT] -= s[SPEED]
    if s[HEIGHT] <= 0:
        reward = touch_down(s)
        s[LANDINGS] += 1
        new_lander(s, rng)
    s[CLOCK] += 1
    return reward, s[LANDINGS] == 20 or s[CLOCK] == 500


def observe(s, board):
    top = 9 - (s[HEIGHT] + 1) // 2
    light(board, top, s[COLUMN], PLAYER)
    light(board, 9 - s[HEIGHT] // 2, s[COLUMN], PLAYER)
    for unit in range(s[SPEED]):
        light(board, top - 1 - unit, s[COLUMN], TRAIL)
    for column in range(10):
        light(board, 9, column, REWARD if abs(column - s[PAD]) <= 1 else DANGER)
    for unit in range(s[TANK]):
        light(board, 0, unit, GAUGE)

"""Throw darts left and right at two targets that slide up and down the walls, and aim ahead of them.

You stand in columns 4 and 5, at first in row 4, and move up and down. Left and right throw a dart to that side, along
your row, if none is in the air. It flies a column a step and comes to the wall, `FLIGHT` columns from you, after as
many steps, the one of the throw included. On each wall slides a target of three rows, one row in every `PACE`th step,
and it turns at the ends. A dart that comes to the wall on the target, after that has moved, gives +1, and the target
comes back at a random place, sliding either way; beside it, the dart is lost. You have `DARTS` darts, and one that hits
is not used up: the episode ends when all are lost, or after step `CLOSING`.
"""

from weightgym.rewards.weight_program.games.kit import (
    DOWN,
    GAUGE,
    LEFT,
    PLAYER,
    PROJECTILE,
    REWARD,
    RIGHT,
    TRAIL,
    UP,
    below,
    clamp,
    light,
)

FAMILY = "atari_style"
CAP = 80
CHANNELS = {
    PLAYER: "you, two cells wide",
    REWARD: "the two targets",
    PROJECTILE: "the dart in the air",
    TRAIL: "one column before each wall: the rear row of the target, and its middle row on the step before it moves",
    GAUGE: "row 0, from column 2: one cell for each dart that you still have",
}
ACTIONS = "up and down move you one row, left and right throw a dart that way; no-op and fire do nothing"
VARY = {"CLOSING": (200, 250), "DARTS": (2, 3), "FLIGHT": (2, 3), "PACE": (1, 3)}

FLIGHT = 4
PACE = 2
DARTS = 4
CLOSING = 300

ME, SPARE, CLOCK, FLOWN, SIDE, DART, LEFT_AT, LEFT_WAY, RIGHT_AT, RIGHT_WAY, STATE = range(11)
LEFT_WALL, RIGHT_WALL = 4 - FLIGHT, 5 + FLIGHT


def reset(s, rng):
    s[ME] = 4
    s[SPARE] = DARTS
    new_target(s, LEFT_AT, rng)
    new_target(s, RIGHT_AT, rng)


def new_target(s, at, rng):
    """Its middle row, and its direction right after it in the state."""
    s[at] = 1 + below(rng, 8)
    s[at + 1] = 2 * below(rng, 2) - 1


def slide(s, at):
    if s[at] + s[at + 1] < 1 or s[at] + s[at + 1] > 8:
        s[at + 1] = -s[at + 1]
    s[at] += s[at + 1]


def strike(s, rng):
    """The dart is at the wall."""
    s[FLOWN] = 0
    at = LEFT_AT if s[SIDE] == 0 else RIGHT_AT
    if abs(s[DART] - s[at]) <= 1:
        new_target(s, at, rng)
        return 1
    s[SPARE] -= 1
    return 0


def step(s, action, rng):
    reward = 0
    if action == UP:
        s[ME] = clamp(s[ME] - 1, 0, 9)
    elif action == DOWN:
        s[ME] = clamp(s[ME] + 1, 0, 9)
    s[CLOCK] += 1
    if s[CLOCK] % PACE == 0:
        slide(s, LEFT_AT)
        slide(s, RIGHT_AT)
    if s[FLOWN] > 0:
        s[FLOWN] += 1
    elif action in (LEFT, RIGHT):
        s[FLOWN] = 1
        s[DART] = s[ME]
        s[SIDE] = 0 if action == LEFT else 1
    if s[FLOWN] == FLIGHT:
        reward = strike(s, rng)
    return reward, s[SPARE] == 0 or s[CLOCK] == CLOSING


def observe(s, board):
    light(board, s[ME], 4, PLAYER)
    light(board, s[ME], 5, PLAYER)
    for row in range(-1, 2):
        light(board, s[LEFT_AT] + row, LEFT_WALL, REWARD)
        light(board, s[RIGHT_AT] + row, RIGHT_WALL, REWARD)
    light(board, s[LEFT_AT] - s[LEFT_WAY], LEFT_WALL + 1, TRAIL)
    light(board, s[RIGHT_AT] - s[RIGHT_WAY], RIGHT_WALL - 1, TRAIL)
    if (s[CLOCK] + 1) % PACE == 0:
        light(board, s[LEFT_AT], LEFT_WALL + 1, TRAIL)
        light(board, s[RIGHT_AT], RIGHT_WALL - 1, TRAIL)
    if s[FLOWN] > 0:
        light(board, s[DART], 4 - s[FLOWN] if s[SIDE] == 0 else 5 + s[FLOWN], PROJECTILE)
    for spare in range(s[SPARE]):
        light(board, 0, 2 + spare, GAUGE)

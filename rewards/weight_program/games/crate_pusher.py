"""Push a crate onto the mark: walk round to the side away from the mark, and walk into the crate.

The yard has five rows and five places in each, drawn as two by two cells. You start in the upper left corner; the crate
and the mark are at random places among the three by three in the middle. A direction moves you one place; you stay in
the yard. If the crate is in your way it is pushed one place further and you follow. But it can't leave the three by
three places in the middle: if it would, neither of you moves. A push that brings the crate nearer to the mark gives +1,
one that takes it farther away -1 (rows and columns that lie between them, added up). On the mark it gives `BONUS` more,
and the mark moves to another random place in the middle. The episode ends after `STEPS` steps.
"""

from weightgym.rewards.weight_program.games.kit import (
    DOWN,
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

FAMILY = "arcade_style"
CAP = 150
CHANNELS = {
    PLAYER: "you",
    PROJECTILE: "the crate",
    REWARD: "the mark",
    TRAIL: "beside the crate, the places from which a push brings it nearer to the mark",
}
ACTIONS = "the directions move you; all others do nothing"

BONUS = 1
STEPS = 300
VARY = {"BONUS": (2, 3), "STEPS": (200, 400)}

ROW, COLUMN, CRATE_ROW, CRATE_COLUMN, MARK_ROW, MARK_COLUMN, CLOCK, STATE = range(8)


def reset(s, rng):
    s[CRATE_ROW] = 1 + below(rng, 3)
    s[CRATE_COLUMN] = 1 + below(rng, 3)
    new_mark(s, rng)


def new_mark(s, rng):
    """Anywhere in the middle but on the crate's place."""
    crate = 3 * (s[CRATE_ROW] - 1) + s[CRATE_COLUMN] - 1
    place = (crate + 1 + below(rng, 8)) % 9
    s[MARK_ROW] = 1 + place // 3
    s[MARK_COLUMN] = 1 + place % 3


def distance(s):
    return abs(s[CRATE_ROW] - s[MARK_ROW]) + abs(s[CRATE_COLUMN] - s[MARK_COLUMN])


def push(s, down, right):
    """Push the crate, if it can move; whether it does."""
    row, column = s[CRATE_ROW] + down, s[CRATE_COLUMN] + right
    if not (1 <= row <= 3 and 1 <= column <= 3):
        return False
    s[CRATE_ROW] = row
    s[CRATE_COLUMN] = column
    return True


def step(s, action, rng):
    down = (action == DOWN) - (action == UP)
    right = (action == RIGHT) - (action == LEFT)
    row, column = clamp(s[ROW] + down, 0, 4), clamp(s[COLUMN] + right, 0, 4)
    before = distance(s)
    if row != s[CRATE_ROW] or column != s[CRATE_COLUMN] or push(s, down, right):
        s[ROW] = row
        s[COLUMN] = column
    reward = before - distance(s)
    if distance(s) == 0:
        reward += BONUS
        new_mark(s, rng)
    s[CLOCK] += 1
    return reward, s[CLOCK] == STEPS


def observe(s, board):
    show(board, s[ROW], s[COLUMN], PLAYER)
    show(board, s[CRATE_ROW], s[CRATE_COLUMN], PROJECTILE)
    show(board, s[MARK_ROW], s[MARK_COLUMN], REWARD)
    if s[MARK_ROW] != s[CRATE_ROW]:
        show(board, s[CRATE_ROW] + (1 if s[MARK_ROW] < s[CRATE_ROW] else -1), s[CRATE_COLUMN], TRAIL)
    if s[MARK_COLUMN] != s[CRATE_COLUMN]:
        show(board, s[CRATE_ROW], s[CRATE_COLUMN] + (1 if s[MARK_COLUMN] < s[CRATE_COLUMN] else -1), TRAIL)


def show(board, row, column, channel):
    for part in range(4):
        light(board, 2 * row + part // 2, 2 * column + part % 2, channel)

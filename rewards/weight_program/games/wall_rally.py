"""Keep a ball in play against a rough wall, and aim it at the bell that hangs there.

Your paddle, three cells high, moves along column 0. The ball moves one column a step, and one row up, one row down or
straight on; it bounces off the top and the bottom edge. The wall is column 6: from there the ball comes back up or
down, by chance. Where it enters column 0 your paddle must cover it: that gives +1, and the cell of the paddle that it
met decides how it flies off: the upper one sends it up, the middle one straight, the lower one down. A ball that
meets the wall at one of the bell's three cells gives another +2, and the bell moves elsewhere. A missed ball is lost,
and the next one starts at the wall. The third lost ball ends the episode, and so does step 600.
"""

from weightgym.rewards.weight_program.games.kit import (
    DOWN,
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

FAMILY = "atari_style"
CAP = 60
CHANNELS = {
    PLAYER: "the three cells of your paddle",
    REWARD: "the three cells of the bell",
    PROJECTILE: "the ball",
    TRAIL: "where the ball was a step before",
    GAUGE: "row 0: one cell from the right for each ball that may still be lost",
}
ACTIONS = "up and down move the paddle one cell; all others do nothing"

MIDDLE, SPARE, CLOCK, BELL, ROW, COLUMN, DOWNWARD, ONWARD, STATE = range(9)
WALL = 6


def reset(s, rng):
    s[MIDDLE] = 4
    s[SPARE] = 3
    s[BELL] = 1 + below(rng, 8)  # its middle
    serve(s, rng)


def serve(s, rng):
    s[ROW] = below(rng, 10)
    leave_wall(s, rng)


def leave_wall(s, rng):
    s[COLUMN] = WALL
    s[ONWARD] = -1
    s[DOWNWARD] = 2 * below(rng, 2) - 1


def fly(s):
    if s[ROW] + s[DOWNWARD] < 0 or s[ROW] + s[DOWNWARD] > 9:
        s[DOWNWARD] = -s[DOWNWARD]
    s[ROW] += s[DOWNWARD]
    s[COLUMN] += s[ONWARD]


def step(s, action, rng):
    reward = 0
    if action == UP:
        s[MIDDLE] = clamp(s[MIDDLE] - 1, 1, 8)
    elif action == DOWN:
        s[MIDDLE] = clamp(s[MIDDLE] + 1, 1, 8)
    fly(s)
    if s[COLUMN] == 0:
        if abs(s[ROW] - s[MIDDLE]) <= 1:
            reward = 1
            s[ONWARD] = 1
            s[DOWNWARD] = s[ROW] - s[MIDDLE]
        else:
            s[SPARE] -= 1
            serve(s, rng)
    elif s[COLUMN] == WALL:
        if abs(s[ROW] - s[BELL]) <= 1:
            reward = 2
            s[BELL] = 1 + below(rng, 8)
        leave_wall(s, rng)
    s[CLOCK] += 1
    return reward, s[SPARE] == 0 or s[CLOCK] == 600


def observe(s, board):
    for row in range(s[MIDDLE] - 1, s[MIDDLE] + 2):
        light(board, row, 0, PLAYER)
        # The bell has as many cells as the paddle.
        light(board, row - s[MIDDLE] + s[BELL], WALL, REWARD)
    light(board, s[ROW], s[COLUMN], PROJECTILE)
    light(board, s[ROW] - s[DOWNWARD], s[COLUMN] - s[ONWARD], TRAIL)
    for spare in range(s[SPARE]):
        light(board, 0, 9 - spare, GAUGE)

"""Keep a ball in play against a wall that throws it back, and aim it at the bell that hangs there.

Your paddle, three cells high, moves along column 0, and begins in rows 3 to 5. After it has moved, the ball moves one
column, and one row up, one row down or straight on; it bounces off the top and the bottom edge. The wall is column
`WALL`: it swallows the ball and throws it back at once, from a random row, up or down at random. Where the ball enters
column 0 your paddle must cover it: that gives +1, and the cell of the paddle that it met decides how it flies off: the
upper one sends it up, the middle one straight, the lower one down. A ball that meets the wall at the bell, which is
`HEIGHT` rows high, gives +2, and the bell moves to a random place. A missed ball is lost, and the wall throws the next
one. You have `BALLS` balls: the episode ends when all are lost, or after step `LENGTH`.
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
CAP = 120
CHANNELS = {
    PLAYER: "the three cells of your paddle",
    REWARD: "the cells of the bell, in column `WALL`",
    PROJECTILE: "the ball",
    TRAIL: "the cell behind the ball: it flies away from there (off the board right after your paddle met it)",
    GAUGE: "row 0: one cell from the right for each ball that you have, the one in play included",
}
ACTIONS = "up and down move the paddle one cell; all others do nothing"
VARY = {"BALLS": (2, 4), "HEIGHT": (2, 4, 5), "LENGTH": (700, 900), "WALL": (6, 7)}

WALL = 8
HEIGHT = 3
BALLS = 3
LENGTH = 800

MIDDLE, SPARE, CLOCK, BELL, ROW, COLUMN, DOWNWARD, ONWARD, STATE = range(9)


def reset(s, rng):
    s[MIDDLE] = 4
    s[SPARE] = BALLS
    s[BELL] = below(rng, 11 - HEIGHT)  # its upper row
    throw(s, rng)


def throw(s, rng):
    s[ROW] = below(rng, 10)
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
            throw(s, rng)
    elif s[COLUMN] == WALL:
        if s[BELL] <= s[ROW] < s[BELL] + HEIGHT:
            reward = 2
            s[BELL] = below(rng, 11 - HEIGHT)
        throw(s, rng)
    s[CLOCK] += 1
    return reward, s[SPARE] == 0 or s[CLOCK] == LENGTH


def observe(s, board):
    for row in range(s[MIDDLE] - 1, s[MIDDLE] + 2):
        light(board, row, 0, PLAYER)
    for row in range(s[BELL], s[BELL] + HEIGHT):
        light(board, row, WALL, REWARD)
    light(board, s[ROW], s[COLUMN], PROJECTILE)
    light(board, s[ROW] - s[DOWNWARD], s[COLUMN] - s[ONWARD], TRAIL)
    for spare in range(s[SPARE]):
        light(board, 0, 9 - spare, GAUGE)

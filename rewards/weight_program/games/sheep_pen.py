"""You are the dog: get behind the sheep and drive it into the pen.

You start in column 0 of row 5. A direction moves you one cell over the board, but never onto the sheep. The sheep keeps
to rows and columns 1 to 8. If you are at most `SCARE` cells from it after your move (rows and columns added), it runs
one cell straight away from you: along its row if you are farther off in columns than in rows, else along its column. If
it can't go farther that way it stays. If you are farther off it takes a step in a random direction with probability
`STRAY`. When the sheep comes a cell nearer to the pen that gives +1, a cell farther -1. In the pen, rows 4 and 5 of
column 8, it gives +4 more, and another sheep appears in rows 2 to 7 of columns 2 to 4, where the first one began too. A
sheep that appears in your own cell stays there until you have left it. The episode ends after 300 steps.
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
    chance,
    clamp,
    light,
)

FAMILY = "arcade_style"
CAP = 200
CHANNELS = {
    PLAYER: "you",
    PROJECTILE: "the sheep",
    REWARD: "the pen",
    TRAIL: "the eight cells around the sheep, while you are at most `SCARE` cells from it",
}
ACTIONS = "left, up, right and down move you one cell; no-op and fire do nothing"

SCARE = 3
STRAY = 0.1
VARY = {"SCARE": (2, 4), "STRAY": (0.02, 0.2)}

ROW, COLUMN, SHEEP_ROW, SHEEP_COLUMN, CLOCK, STATE = range(6)


def reset(s, rng):
    s[ROW] = 5
    new_sheep(s, rng)


def new_sheep(s, rng):
    s[SHEEP_ROW] = 2 + below(rng, 6)
    s[SHEEP_COLUMN] = 2 + below(rng, 3)


def to_pen(s):
    """How many cells the sheep is from the pen."""
    return max(4 - s[SHEEP_ROW], s[SHEEP_ROW] - 5, 0) + 8 - s[SHEEP_COLUMN]


def scared(s):
    return abs(s[SHEEP_ROW] - s[ROW]) + abs(s[SHEEP_COLUMN] - s[COLUMN]) <= SCARE


def move_dog(s, action):
    row = clamp(s[ROW] + (action == DOWN) - (action == UP), 0, 9)
    column = clamp(s[COLUMN] + (action == RIGHT) - (action == LEFT), 0, 9)
    if row != s[SHEEP_ROW] or column != s[SHEEP_COLUMN]:
        s[ROW] = row
        s[COLUMN] = column


def move_sheep(s, down, right):
    row, column = clamp(s[SHEEP_ROW] + down, 1, 8), clamp(s[SHEEP_COLUMN] + right, 1, 8)
    if row != s[ROW] or column != s[COLUMN]:
        s[SHEEP_ROW] = row
        s[SHEEP_COLUMN] = column


def flee(s):
    down, right = s[SHEEP_ROW] - s[ROW], s[SHEEP_COLUMN] - s[COLUMN]
    if abs(right) > abs(down):
        move_sheep(s, 0, clamp(right, -1, 1))
    else:
        move_sheep(s, clamp(down, -1, 1), 0)


def step(s, action, rng):
    before = to_pen(s)
    move_dog(s, action)
    if scared(s):
        flee(s)
    elif chance(rng, STRAY):
        way = 2 * below(rng, 2) - 1
        across = below(rng, 2)
        move_sheep(s, way * (1 - across), way * across)
    reward = before - to_pen(s)
    if to_pen(s) == 0:
        reward += 4
        new_sheep(s, rng)
    s[CLOCK] += 1
    return reward, s[CLOCK] == 300


def observe(s, board):
    light(board, s[ROW], s[COLUMN], PLAYER)
    light(board, s[SHEEP_ROW], s[SHEEP_COLUMN], PROJECTILE)
    light(board, 4, 8, REWARD)
    light(board, 5, 8, REWARD)
    if scared(s):
        for row in range(s[SHEEP_ROW] - 1, s[SHEEP_ROW] + 2):
            for column in range(s[SHEEP_COLUMN] - 1, s[SHEEP_COLUMN] + 2):
                if row != s[SHEEP_ROW] or column != s[SHEEP_COLUMN]:
                    light(board, row, column, TRAIL)

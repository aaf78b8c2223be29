"""Fruit falls while the wind blows it sideways; catch it in a basket.

Your basket is `WIDTH` cells wide and slides along row 9; its left cell starts in column 3. One fruit is in the air at a
time. It starts in row `BRANCH`, in a random column, and falls a row a step, after the basket has moved. Coming to a row
that is a multiple of `GUST`, it is moved one column by the wind, which blows to one side, at random for each fruit. If
a wall is in the way, the wind turns and moves it the other way. A fruit that comes to row 9 within the basket, the
wind's push included, gives +1; beside it, it is lost. Then the next one starts. The third lost fruit ends the episode,
and so does the sixtieth fruit, caught or lost.
"""

from weightgym.rewards.weight_program.games.kit import (
    GAUGE,
    LEFT,
    PLAYER,
    REWARD,
    RIGHT,
    TRAIL,
    below,
    clamp,
    light,
)

FAMILY = "arcade_style"
CAP = 60
CHANNELS = {
    PLAYER: "the cells of your basket",
    REWARD: "the fruit",
    TRAIL: "the cell beside the fruit on the side that the wind comes from, if it is on the board",
    GAUGE: "row 0: one cell from the right for each fruit that may still be lost",
}
ACTIONS = "left and right move the basket one cell; all others do nothing"
VARY = {"BRANCH": (1, 2), "GUST": (1, 3), "WIDTH": (2, 4)}

WIDTH = 3
BRANCH = 0
GUST = 2

BASKET, SPARE, FRUITS, ROW, COLUMN, WIND, STATE = range(7)


def reset(s, rng):
    s[BASKET] = 3  # its left cell
    s[SPARE] = 3
    new_fruit(s, rng)


def new_fruit(s, rng):
    s[FRUITS] += 1
    s[ROW] = BRANCH
    s[COLUMN] = below(rng, 10)
    s[WIND] = 2 * below(rng, 2) - 1


def step(s, action, rng):
    reward = 0
    if action == LEFT:
        s[BASKET] = clamp(s[BASKET] - 1, 0, 10 - WIDTH)
    elif action == RIGHT:
        s[BASKET] = clamp(s[BASKET] + 1, 0, 10 - WIDTH)
    s[ROW] += 1
    if s[ROW] % GUST == 0:
        if s[COLUMN] + s[WIND] < 0 or s[COLUMN] + s[WIND] > 9:
            s[WIND] = -s[WIND]
        s[COLUMN] += s[WIND]
    if s[ROW] == 9:
        if s[BASKET] <= s[COLUMN] < s[BASKET] + WIDTH:
            reward = 1
        else:
            s[SPARE] -= 1
        new_fruit(s, rng)
    return reward, s[SPARE] == 0 or s[FRUITS] > 60


def observe(s, board):
    for column in range(s[BASKET], s[BASKET] + WIDTH):
        light(board, 9, column, PLAYER)
    light(board, s[ROW], s[COLUMN], REWARD)
    light(board, s[ROW], s[COLUMN] - s[WIND], TRAIL)
    for spare in range(s[SPARE]):
        light(board, 0, 9 - spare, GAUGE)

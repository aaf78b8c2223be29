"""Fruit falls while the wind blows it sideways; catch it in a basket.

Your basket is three cells wide and slides along row 9. One fruit is in the air at a time. It starts in row 0 and falls
a row a step; in every second row the wind moves it one column to its own side, and it bounces off the walls. A fruit
that reaches row 9 within the basket gives +1; beside it, it is lost. The third lost fruit ends the episode, and so does
the sixtieth fruit.
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
    PLAYER: "the three cells of your basket",
    REWARD: "the fruit",
    TRAIL: "the cell beside the fruit that the wind comes from",
    GAUGE: "row 0: one cell from the right for each fruit that may still be lost",
}
ACTIONS = "left and right move the basket one cell; all others do nothing"

MIDDLE, SPARE, FRUITS, ROW, COLUMN, WIND, STATE = range(7)


def reset(s, rng):
    s[MIDDLE] = 4
    s[SPARE] = 3
    new_fruit(s, rng)


def new_fruit(s, rng):
    s[FRUITS] += 1
    s[ROW] = 0
    s[COLUMN] = below(rng, 10)
    s[WIND] = 2 * below(rng, 2) - 1


def step(s, action, rng):
    reward = 0
    if action == LEFT:
        s[MIDDLE] = clamp(s[MIDDLE] - 1, 1, 8)
    elif action == RIGHT:
        s[MIDDLE] = clamp(s[MIDDLE] + 1, 1, 8)
    s[ROW] += 1
    if s[ROW] % 2 == 0:
        if s[COLUMN] + s[WIND] < 0 or s[COLUMN] + s[WIND] > 9:
            s[WIND] = -s[WIND]
        s[COLUMN] += s[WIND]
    if s[ROW] == 9:
        if abs(s[COLUMN] - s[MIDDLE]) <= 1:
            reward = 1
        else:
            s[SPARE] -= 1
        new_fruit(s, rng)
    return reward, s[SPARE] == 0 or s[FRUITS] > 60


def observe(s, board):
    for column in range(s[MIDDLE] - 1, s[MIDDLE] + 2):
        light(board, 9, column, PLAYER)
    light(board, s[ROW], s[COLUMN], REWARD)
    light(board, s[ROW], s[COLUMN] - s[WIND], TRAIL)
    for spare in range(s[SPARE]):
        light(board, 0, 9 - spare, GAUGE)

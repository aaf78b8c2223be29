"""Fetch the key on the left, then open the door on the right, while a guard walks up and down between them.

You move one cell up, down, left or right on the whole board. The key lies in column 0, `KEY` rows high, at a random
place every time: standing on it you take it, which gives +1. Then a door shows in column 9, three rows high, at a
random place: reaching it with the key gives +2, and the next key is laid out. The guard takes `GIRTH` cells of column
`HALL` and walks a row a step, after you have moved, turning back at the edges; he starts at a random place, either way.
If you are then in one of his cells, you have met: you stand in row 4 of column 9 again, where you also began, and if
you had the key you lose it and another is laid out. The third meeting ends the episode, and so does step `NIGHT`.
"""

from weightgym.rewards.weight_program.games.kit import (
    DANGER,
    DOWN,
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

FAMILY = "atari_style"
CAP = 30
CHANNELS = {
    PLAYER: "you",
    DANGER: "the cells of the guard",
    REWARD: "where you have to go: the key, or the door once you have it",
    TRAIL: "the rear end of the guard: his upper cell while he walks down, his lower one while he walks up",
    GAUGE: "all of row 9 while you have the key; row 0: meetings that you can still afford, from the left",
}
ACTIONS = "left, up, right and down move you one cell; no-op and fire do nothing"
VARY = {"GIRTH": (2, 4, 5), "HALL": (3, 7), "KEY": (1, 3), "NIGHT": (200, 400)}

KEY = 2
HALL = 5
GIRTH = 3
NIGHT = 300

ROW, COLUMN, HAS_KEY, GOAL, GUARD, DOWNWARD, MEETINGS, CLOCK, STATE = range(9)


def reset(s, rng):
    enter(s)
    s[GUARD] = below(rng, 11 - GIRTH)  # his upper row
    s[DOWNWARD] = 2 * below(rng, 2) - 1
    new_goal(s, rng)


def enter(s):
    s[ROW] = 4
    s[COLUMN] = 9


def height(s):
    """Of the key or the door."""
    return 3 if s[HAS_KEY] == 1 else KEY


def new_goal(s, rng):
    """The upper row of the key or the door."""
    s[GOAL] = below(rng, 11 - height(s))


def move(s, action):
    if action == LEFT:
        s[COLUMN] = clamp(s[COLUMN] - 1, 0, 9)
    elif action == RIGHT:
        s[COLUMN] = clamp(s[COLUMN] + 1, 0, 9)
    elif action == UP:
        s[ROW] = clamp(s[ROW] - 1, 0, 9)
    elif action == DOWN:
        s[ROW] = clamp(s[ROW] + 1, 0, 9)


def walk(s):
    """The guard's row."""
    if s[GUARD] + s[DOWNWARD] < 0 or s[GUARD] + s[DOWNWARD] > 10 - GIRTH:
        s[DOWNWARD] = -s[DOWNWARD]
    s[GUARD] += s[DOWNWARD]


def step(s, action, rng):
    reward = 0
    move(s, action)
    walk(s)
    if s[COLUMN] == HALL and s[GUARD] <= s[ROW] < s[GUARD] + GIRTH:
        s[MEETINGS] += 1
        enter(s)
        if s[HAS_KEY] == 1:
            s[HAS_KEY] = 0
            new_goal(s, rng)
    if s[COLUMN] == 9 * s[HAS_KEY] and s[GOAL] <= s[ROW] < s[GOAL] + height(s):
        reward = 1 + s[HAS_KEY]
        s[HAS_KEY] = 1 - s[HAS_KEY]
        new_goal(s, rng)
    s[CLOCK] += 1
    return reward, s[MEETINGS] == 3 or s[CLOCK] == NIGHT


def observe(s, board):
    light(board, s[ROW], s[COLUMN], PLAYER)
    for row in range(s[GUARD], s[GUARD] + GIRTH):
        light(board, row, HALL, DANGER)
    light(board, s[GUARD] if s[DOWNWARD] == 1 else s[GUARD] + GIRTH - 1, HALL, TRAIL)
    for row in range(s[GOAL], s[GOAL] + height(s)):
        light(board, row, 9 * s[HAS_KEY], REWARD)
    for column in range(10):
        if s[HAS_KEY] == 1:
            light(board, 9, column, GAUGE)
        if column < 2 - s[MEETINGS]:
            light(board, 0, column, GAUGE)

"""Fetch the key on the left, then open the door on the right, while a guard walks up and down between them.

You move one cell up, down, left or right on the whole board. The key lies in column 0, in two neighbouring rows that
change every time: standing on one of them you take it, which gives +1. Then a door shows in column 9, three rows high:
reaching it with the key gives +2, and the next key is laid out. The guard takes three cells of column 5 and walks a row
a step, turning at the edges. If he meets you, you lose the key, if you had it, and stand in row 4 of column 9 again,
where you also began. The third meeting ends the episode, and so does step 300.
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
    DANGER: "the three cells of the guard",
    REWARD: "where you have to go: the key, or the door once you have it",
    TRAIL: "the row that the guard leaves on the next step",
    GAUGE: "all of row 9 while you have the key; row 0: meetings that you can still afford, from the left",
}
ACTIONS = "left, up, right and down move you one cell; no-op and fire do nothing"

ROW, COLUMN, HAS_KEY, GOAL, GUARD, DOWNWARD, MEETINGS, CLOCK, STATE = range(9)


def reset(s, rng):
    enter(s)
    s[GUARD] = 1 + below(rng, 8)  # his middle
    s[DOWNWARD] = 2 * below(rng, 2) - 1
    new_goal(s, rng)


def enter(s):
    s[ROW] = 4
    s[COLUMN] = 9


def new_goal(s, rng):
    """The upper row of the key or the door."""
    s[GOAL] = below(rng, 9 - s[HAS_KEY])


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
    if s[GUARD] + s[DOWNWARD] < 1 or s[GUARD] + s[DOWNWARD] > 8:
        s[DOWNWARD] = -s[DOWNWARD]
    s[GUARD] += s[DOWNWARD]


def step(s, action, rng):
    reward = 0
    move(s, action)
    walk(s)
    if s[COLUMN] == 5 and abs(s[ROW] - s[GUARD]) <= 1:
        s[MEETINGS] += 1
        enter(s)
        if s[HAS_KEY] == 1:
            s[HAS_KEY] = 0
            new_goal(s, rng)
    if s[COLUMN] == 9 * s[HAS_KEY] and s[GOAL] <= s[ROW] <= s[GOAL] + 1 + s[HAS_KEY]:
        reward = 1 + s[HAS_KEY]
        s[HAS_KEY] = 1 - s[HAS_KEY]
        new_goal(s, rng)
    s[CLOCK] += 1
    return reward, s[MEETINGS] == 3 or s[CLOCK] == 300


def observe(s, board):
    light(board, s[ROW], s[COLUMN], PLAYER)
    for row in range(s[GUARD] - 1, s[GUARD] + 2):
        light(board, row, 5, DANGER)
    light(board, s[GUARD] - s[DOWNWARD], 5, TRAIL)
    for row in range(s[GOAL], s[GOAL] + 2 + s[HAS_KEY]):
        light(board, row, 9 * s[HAS_KEY], REWARD)
    for column in range(10):
        if s[HAS_KEY] == 1:
            light(board, 9, column, GAUGE)
        if column < 2 - s[MEETINGS]:
            light(board, 0, column, GAUGE)

"""Comets fly out of the middle of the sky; run around its rim and be where each of them leaves.

The rim is the 36 cells at the edge of the board. You are a net of five cells on it, at a random place at first. Left,
up, right and down name a side of the board: the net runs two cells along the rim towards that side, the shorter way
round, and stops once its middle is on that side, corners included. At the start and then every `GAP` steps a comet
appears in the middle of the board and flies straight to one of eight places: the four corners, and row 0 column 5, row
5 column 9, row 9 column 4 and row 4 column 0. It is four cells away from the rim at first and moves one cell every
`PACE` steps, so that after four times `PACE` steps it is on the rim, and after five times `PACE` steps it leaves. If it
leaves through the net, after the net has run, that gives +1, otherwise it costs 1. The episode ends after 320 steps.
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
CAP = 40
CHANNELS = {
    PLAYER: "the five cells of the net",
    REWARD: "where the first of the flying comets is going to leave, and the two cells of the rim beside it",
    PROJECTILE: "the comets",
    TRAIL: "the cell ahead of a comet, on the step before it moves there (none once it is on the rim)",
}
ACTIONS = "left, up, right and down move the net along the rim towards that side; the others do nothing"
VARY = {"GAP": (6, 11), "PACE": (1, 3)}

GAP = 8
PACE = 2

NET, CLOCK, STEPS_LEFT, PLACE = 0, 1, 2, 5  # three comets at most: steps until each leaves (0: no comet), and where
STATE = PLACE + 3


def reset(s, rng):
    s[NET] = below(rng, 36)
    launch(s, rng)


def launch(s, rng):
    comet = s[CLOCK] // GAP % 3
    side = below(rng, 4)
    s[STEPS_LEFT + comet] = 5 * PACE
    s[PLACE + comet] = 9 * side + 5 * below(rng, 2)


def rim_row(place):
    """Places are counted clockwise from the top left corner."""
    if place < 18:
        return max(0, place - 9)
    return min(9, 36 - place)


def rim_column(place):
    if place < 18:
        return min(9, place)
    return max(0, 27 - place)


def run(s, action):
    """One cell towards the side that the action names."""
    if action in (LEFT, UP, RIGHT, DOWN):
        side = (action - UP + 4) % 4  # clockwise from the top
        beyond = (s[NET] - 9 * side + 36) % 36  # cells from the side's first corner, clockwise
        if beyond > 22:
            s[NET] = (s[NET] + 1) % 36
        elif beyond > 9:
            s[NET] = (s[NET] + 35) % 36


def step(s, action, rng):
    reward = 0
    for _ in range(2):
        run(s, action)
    for comet in range(3):
        if s[STEPS_LEFT + comet] > 0:
            s[STEPS_LEFT + comet] -= 1
            if s[STEPS_LEFT + comet] == 0:
                reward += 1 if (s[NET] - s[PLACE + comet] + 38) % 36 <= 4 else -1
    s[CLOCK] += 1
    if s[CLOCK] % GAP == 0:
        launch(s, rng)
    return reward, s[CLOCK] == 320


def show(board, place, away, channel):
    """Light the cell that is so many cells away from the rim on the line to that place."""
    row, column = rim_row(place), rim_column(place)
    light(board, clamp(row, away, 9 - away), clamp(column, away, 9 - away), channel)


def observe(s, board):
    for cell in range(34, 39):
        show(board, (s[NET] + cell) % 36, 0, PLAYER)
    soonest = 0
    for comet in range(3):
        steps_left = s[STEPS_LEFT + comet]
        if steps_left > 0:
            away = (steps_left - 1) // PACE
            show(board, s[PLACE + comet], away, PROJECTILE)
            if away > 0 and steps_left % PACE == 1 % PACE:
                show(board, s[PLACE + comet], away - 1, TRAIL)
            if s[STEPS_LEFT + soonest] == 0 or steps_left < s[STEPS_LEFT + soonest]:
                soonest = comet
    if s[STEPS_LEFT + soonest] > 0:
        for cell in range(35, 38):
            show(board, (s[PLACE + soonest] + cell) % 36, 0, REWARD)

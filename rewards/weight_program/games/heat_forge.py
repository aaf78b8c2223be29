"""Tend a furnace whose iron wants a heat that drifts: coal heats later, bellows heat now, the vent cools.

Heat goes from 0 to 9 (all changes of a step are added up first), and starts at the lowest degree of the band, the
`BAND` degrees that the iron wants. The band drifts up or down by one in every fifth step. Before each drift it turns
round with a chance of 0.3, and always where it would go below degree 1 or above degree 9. The furnace loses a degree in
every third step. Fire throws a coal on: 2 degrees more, `DELAY` steps later. Up works the bellows: 1 degree more at
once. Down opens the vent: 1 degree less at once. There is room for five coals and five breaths of air, at the start
three of each; a coal comes in every eighth step, a breath in every fourth. Without coal, or breath, the action does
nothing. After every step, with all this done, heat within the band gives +1 and heat outside costs 1. The episode ends
after 240 steps.
"""

from weightgym.rewards.weight_program.games.kit import (
    DANGER,
    DOWN,
    FIRE,
    GAUGE,
    PLAYER,
    REWARD,
    TRAIL,
    UP,
    below,
    chance,
    clamp,
    light,
)

FAMILY = "arcade_style"
CAP = 235
CHANNELS = {
    PLAYER: "columns 3 and 4: the heat, a column of cells from row 9 (heat 0) up to row 0 (heat 9)",
    DANGER: "column 5: the heat once more, on the step before the furnace loses a degree",
    REWARD: "columns 6 and 7: the band",
    TRAIL: "column 8: the degree that the band takes in next, if it doesn't turn; row 0: the coals on the fire, "
    "in column 0 one that heats in the coming step, in column 1 one that heats a step later, and so on",
    GAUGE: "column 0: coals, and column 1: breaths of air, from the bottom",
}
ACTIONS = "fire throws a coal on, up works the bellows, down opens the vent; all others do nothing"

BAND = 3
DELAY = 3
VARY = {"BAND": (2, 4), "DELAY": (1, 5)}

HEAT, LOW, DRIFT, COALS, AIR, CLOCK, GLOW = range(7)
STATE = GLOW + DELAY


def reset(s, rng):
    s[LOW] = 2 + below(rng, 4)
    s[HEAT] = s[LOW]
    s[DRIFT] = 2 * below(rng, 2) - 1
    s[COALS] = 3
    s[AIR] = 3


def burn(s):
    """The coals on the fire come nearer to their heat, and the oldest gives it."""
    s[HEAT] += 2 * s[GLOW]
    for place in range(DELAY - 1):
        s[GLOW + place] = s[GLOW + place + 1]
    s[GLOW + DELAY - 1] = 0


def tend(s, action):
    if action == FIRE and s[COALS] > 0:
        s[COALS] -= 1
        s[GLOW + DELAY - 1] = 1
    elif action == UP and s[AIR] > 0:
        s[AIR] -= 1
        s[HEAT] += 1
    elif action == DOWN:
        s[HEAT] -= 1


def drift(s, rng):
    if chance(rng, 0.3):
        s[DRIFT] = -s[DRIFT]
    if s[LOW] + s[DRIFT] < 1 or s[LOW] + s[DRIFT] + BAND - 1 > 9:
        s[DRIFT] = -s[DRIFT]
    s[LOW] += s[DRIFT]


def step(s, action, rng):
    burn(s)
    tend(s, action)
    s[CLOCK] += 1
    if s[CLOCK] % 3 == 0:
        s[HEAT] -= 1
    s[HEAT] = clamp(s[HEAT], 0, 9)
    if s[CLOCK] % 5 == 0:
        drift(s, rng)
    if s[CLOCK] % 8 == 0:
        s[COALS] = min(5, s[COALS] + 1)
    if s[CLOCK] % 4 == 0:
        s[AIR] = min(5, s[AIR] + 1)
    reward = 1 if s[LOW] <= s[HEAT] < s[LOW] + BAND else -1
    return reward, s[CLOCK] == 240


def observe(s, board):
    for degree in range(s[HEAT] + 1):
        light(board, 9 - degree, 3, PLAYER)
        light(board, 9 - degree, 4, PLAYER)
        if s[CLOCK] % 3 == 2:
            light(board, 9 - degree, 5, DANGER)
    for degree in range(s[LOW], s[LOW] + BAND):
        light(board, 9 - degree, 6, REWARD)
        light(board, 9 - degree, 7, REWARD)
    light(board, 9 - (s[LOW] - 1 if s[DRIFT] < 0 else s[LOW] + BAND), 8, TRAIL)
    for place in range(DELAY):
        if s[GLOW + place] == 1:
            light(board, 0, place, TRAIL)
    for coal in range(s[COALS]):
        light(board, 9 - coal, 0, GAUGE)
    for breath in range(s[AIR]):
        light(board, 9 - breath, 1, GAUGE)

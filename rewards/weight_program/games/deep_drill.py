"""Drill down through rock and gas, and mind the heat of the bit.

Down drills; every other action rests. A layer is two, three or four metres thick, all as likely, and takes as many
steps of drilling without a break: a step of rest fills the hole again. Once through you get +1 for each of its metres,
and the next layer follows. A step of drilling heats the bit by 1, a step of rest cools it by `COOLING`, never below 0.
At heat `MELTING` the bit melts, even if that step would have finished the layer. A layer is gas with a chance of 1 in
`RARITY`, and explodes when you drill at it with a bit that has heat `SPARK` or more before that step. Melting and
explosions cost a bit each: you go on with a cold one in front of a new layer. The third lost bit ends the episode, and
so does step 300.
"""

from weightgym.rewards.weight_program.games.kit import (
    DANGER,
    DOWN,
    GAUGE,
    PLAYER,
    REWARD,
    TRAIL,
    below,
    light,
)

FAMILY = "arcade_style"
CAP = 200
CHANNELS = {
    PLAYER: "the drill: column 4 from row 1 down to the bottom of the hole",
    DANGER: "what is left of the layer, if it is gas, columns 2 to 6, from the bottom of the hole down",
    REWARD: "what is left of the layer, if it is rock, likewise",
    TRAIL: "column 9: bits left, the one in use included, from the top",
    GAUGE: "row 9: the heat, a cell for each degree, from the left",
}
ACTIONS = "down drills; all others rest"
VARY = {"COOLING": (1, 3), "MELTING": (8, 9), "RARITY": (2, 6), "SPARK": (4, 6, 7)}

COOLING = 2
MELTING = 10
SPARK = 5
RARITY = 4

THICK, DRILLED, GAS, HEAT, SPARE, CLOCK, STATE = range(7)


def reset(s, rng):
    s[SPARE] = 3
    new_layer(s, rng)


def new_layer(s, rng):
    s[DRILLED] = 0
    s[THICK] = 2 + below(rng, 3)
    s[GAS] = below(rng, RARITY) == 0


def lose_bit(s, rng):
    s[SPARE] -= 1
    s[HEAT] = 0
    new_layer(s, rng)


def drill(s, rng):
    if s[GAS] == 1 and s[HEAT] >= SPARK:
        lose_bit(s, rng)
        return 0
    s[HEAT] += 1
    s[DRILLED] += 1
    if s[HEAT] == MELTING:
        lose_bit(s, rng)
    elif s[DRILLED] == s[THICK]:
        metres = s[THICK]
        new_layer(s, rng)
        return metres
    return 0


def step(s, action, rng):
    reward = 0
    if action == DOWN:
        reward = drill(s, rng)
    else:
        s[DRILLED] = 0
        s[HEAT] = max(0, s[HEAT] - COOLING)
    s[CLOCK] += 1
    return reward, s[SPARE] == 0 or s[CLOCK] == 300


def observe(s, board):
    for row in range(1, 5 + s[DRILLED]):
        light(board, row, 4, PLAYER)
    for row in range(5 + s[DRILLED], 5 + s[THICK]):
        for column in range(2, 7):
            light(board, row, column, DANGER if s[GAS] == 1 else REWARD)
    for spare in range(s[SPARE]):
        light(board, spare, 9, TRAIL)
    for degree in range(s[HEAT]):
        light(board, 9, degree, GAUGE)

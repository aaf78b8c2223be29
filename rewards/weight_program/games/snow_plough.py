"""Plough the snow off a yard and keep the tank from running dry: snow brings fuel, clean ground and idling burn it.

The yard has sixteen plots, four by four, two cells high and wide each; you start on one of the middle four and drive a
plot a step. A plot with snow is cleared as you drive onto it: +1, and the yard's owner pays with a litre of fuel, if
the tank has room. Any other step (onto clean ground, against the edge, or standing) burns a litre. The tank holds
`TANK` litres and is full at the start. At every step, after your move, a gust comes with a chance of `GUSTS`: it covers
a random row or column of plots with snow, all but your own plot. Two gusts have blown at the start. The episode ends
when the tank is empty, and after 300 steps.
"""

from weightgym.rewards.weight_program.games.kit import (
    DOWN,
    GAUGE,
    LEFT,
    PLAYER,
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
CAP = 240
CHANNELS = {
    PLAYER: "the plough",
    REWARD: "the snow; plots are in rows and columns 1 to 8",
    TRAIL: "the plot where the plough was before its last move; its own plot before the first",
    GAUGE: "row 0: tenths of the tank that are left, rounded up, from the left",
}
ACTIONS = "left, up, right and down drive the plough; all others let it stand"

TANK = 15
GUSTS = 0.3
VARY = {"TANK": (10, 12), "GUSTS": (0.25, 0.35)}

ROW, COLUMN, REAR_ROW, REAR_COLUMN, FUEL, CLOCK, SNOW = range(7)  # SNOW: on each of the sixteen plots
STATE = SNOW + 16


def reset(s, rng):
    s[ROW] = s[REAR_ROW] = 1 + below(rng, 2)
    s[COLUMN] = s[REAR_COLUMN] = 1 + below(rng, 2)
    s[FUEL] = TANK
    for _ in range(2):
        blow(s, rng)


def blow(s, rng):
    line, across = below(rng, 4), below(rng, 2)
    for place in range(4):
        plot = 4 * line + place if across == 1 else 4 * place + line
        if plot != 4 * s[ROW] + s[COLUMN]:
            s[SNOW + plot] = 1


def drive(s, action):
    row, column = s[ROW], s[COLUMN]
    if action == LEFT:
        column -= 1
    elif action == UP:
        row -= 1
    elif action == RIGHT:
        column += 1
    elif action == DOWN:
        row += 1
    row, column = clamp(row, 0, 3), clamp(column, 0, 3)
    if row != s[ROW] or column != s[COLUMN]:
        s[REAR_ROW], s[REAR_COLUMN] = s[ROW], s[COLUMN]
    s[ROW], s[COLUMN] = row, column


def step(s, action, rng):
    drive(s, action)
    plot = SNOW + 4 * s[ROW] + s[COLUMN]
    reward = s[plot]
    s[plot] = 0
    s[FUEL] = min(TANK, s[FUEL] + 1) if reward == 1 else s[FUEL] - 1
    if chance(rng, GUSTS):
        blow(s, rng)
    s[CLOCK] += 1
    return reward, s[FUEL] == 0 or s[CLOCK] == 300


def light_plot(board, row, column, channel):
    for cell in range(4):
        light(board, 2 * row + 1 + cell // 2, 2 * column + 1 + cell % 2, channel)


def observe(s, board):
    light_plot(board, s[ROW], s[COLUMN], PLAYER)
    light_plot(board, s[REAR_ROW], s[REAR_COLUMN], TRAIL)
    for plot in range(16):
        if s[SNOW + plot] == 1:
            light_plot(board, plot // 4, plot % 4, REWARD)
    for tenth in range((10 * s[FUEL] + TANK - 1) // TANK):
        light(board, 0, tenth, GAUGE)

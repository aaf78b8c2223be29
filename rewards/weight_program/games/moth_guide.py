"""Carry a lamp, and lead the moth that follows its light around the flames to the side of the garden that is open.

You move the lamp one cell a step, and it passes over everything. On every `PACE`th step, after the lamp has moved, the
moth flies one cell towards it: along its row if the lamp is farther away in columns than in rows, or else along its
column. If it is at the lamp it stays. A flight that brings the moth nearer to the open side gives +1, one that takes it
farther away -1. If the moth is then in a cell of the open side, even if it was there before, that gives +3 more:
another side opens, and all `FLAMES` flames burn in new random cells. A moth that flies into a flame costs 5 in all
instead, and another moth comes to a random cell. A flame in the moth's cell when flames are lit, or in the cell where a
new moth appears, goes out. The lamp and the moth start in random cells. The episode ends after 300 steps.
"""

from weightgym.rewards.weight_program.games.kit import (
    DANGER,
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
CAP = 160
CHANNELS = {
    PLAYER: "the lamp",
    DANGER: "the flames that are not out",
    REWARD: "the cells of the open side",
    PROJECTILE: "the moth",
    TRAIL: "on the step before the moth flies, the cell that it would come to if the lamp stayed where it is",
}
ACTIONS = "left, up, right and down move the lamp one cell; the others do nothing"
VARY = {"PACE": (3, 4), "FLAMES": (3, 9)}

PACE = 2
FLAMES = 6

LAMP, LAMP_COLUMN, MOTH, MOTH_COLUMN, OPEN, CLOCK, FLAME = range(7)
STATE = FLAME + 2 * 9  # of each flame: row, column


def reset(s, rng):
    somewhere(s, LAMP, rng)
    somewhere(s, MOTH, rng)
    s[OPEN] = LEFT + below(rng, 4)
    light_flames(s, rng)


def somewhere(s, thing, rng):
    s[thing] = below(rng, 10)
    s[thing + 1] = below(rng, 10)


def light_flames(s, rng):
    for flame in range(FLAME, FLAME + 2 * FLAMES, 2):
        somewhere(s, flame, rng)
    put_out(s)


def put_out(s):
    """A flame that is out is above the board."""
    for flame in range(FLAME, FLAME + 2 * FLAMES, 2):
        if s[flame] == s[MOTH] and s[flame + 1] == s[MOTH_COLUMN]:
            s[flame] = -1


def burnt(s):
    flames = 0
    for flame in range(FLAME, FLAME + 2 * FLAMES, 2):
        if s[flame] == s[MOTH] and s[flame + 1] == s[MOTH_COLUMN]:
            flames += 1
    return flames > 0


def carry(s, action):
    if action == UP:
        s[LAMP] = max(0, s[LAMP] - 1)
    elif action == DOWN:
        s[LAMP] = min(9, s[LAMP] + 1)
    elif action == LEFT:
        s[LAMP_COLUMN] = max(0, s[LAMP_COLUMN] - 1)
    elif action == RIGHT:
        s[LAMP_COLUMN] = min(9, s[LAMP_COLUMN] + 1)


def flight(s):
    """Rows and columns that the moth moves when it flies."""
    down, right = s[LAMP] - s[MOTH], s[LAMP_COLUMN] - s[MOTH_COLUMN]
    if abs(right) > abs(down):
        return 0, clamp(right, -1, 1)
    return clamp(down, -1, 1), 0


def way_to_go(s):
    """Cells from the moth to the open side."""
    if s[OPEN] in (LEFT, RIGHT):
        return s[MOTH_COLUMN] if s[OPEN] == LEFT else 9 - s[MOTH_COLUMN]
    return s[MOTH] if s[OPEN] == UP else 9 - s[MOTH]


def fly(s, rng):
    before = way_to_go(s)
    down, right = flight(s)
    s[MOTH] += down
    s[MOTH_COLUMN] += right
    reward = before - way_to_go(s)
    if burnt(s):
        reward = -5
        somewhere(s, MOTH, rng)
        put_out(s)
    elif way_to_go(s) == 0:
        reward += 3
        s[OPEN] = LEFT + (s[OPEN] - LEFT + 1 + below(rng, 3)) % 4
        light_flames(s, rng)
    return reward


def step(s, action, rng):
    carry(s, action)
    s[CLOCK] += 1
    reward = fly(s, rng) if s[CLOCK] % PACE == 0 else 0
    return reward, s[CLOCK] == 300


def observe(s, board):
    light(board, s[LAMP], s[LAMP_COLUMN], PLAYER)
    light(board, s[MOTH], s[MOTH_COLUMN], PROJECTILE)
    for flame in range(FLAME, FLAME + 2 * FLAMES, 2):
        light(board, s[flame], s[flame + 1], DANGER)
    for cell in range(10):
        if s[OPEN] in (LEFT, RIGHT):
            light(board, cell, 0 if s[OPEN] == LEFT else 9, REWARD)
        else:
            light(board, 0 if s[OPEN] == UP else 9, cell, REWARD)
    if s[CLOCK] % PACE == PACE - 1:
        down, right = flight(s)
        light(board, s[MOTH] + down, s[MOTH_COLUMN] + right, TRAIL)

"""Parcels ride down a belt; turn the flap at its end so that each drops on the side that its label asks for.

The belt runs down rows 0 to 8, a row a step. A parcel lies in row 0 at the start, and another comes there every
`SPACING` to `SPACING` + 2 steps. The flap at the end has three notches: left, middle and right. It starts in the
middle; left and right turn it one notch that way. Then the belt moves, and a parcel that leaves row 8 drops where the
flap points. A parcel with a green label goes to the side where the label is; with a red label it goes to the other
side; without a label it goes to the middle. The right place gives +1, a wrong one costs 1. A parcel has no label with a
chance of `PLAIN`, and else a green or red label on its left or right, all four as likely. The episode ends after 250
steps.
"""

from weightgym.rewards.weight_program.games.kit import (
    DANGER,
    GAUGE,
    LEFT,
    PLAYER,
    REWARD,
    RIGHT,
    TRAIL,
    below,
    chance,
    clamp,
    light,
)

FAMILY = "arcade_style"
CAP = 85
CHANNELS = {
    PLAYER: "the flap: three cells of row 9, columns 0 to 2 (left), 3 to 5 (middle) or 6 to 8 (right)",
    DANGER: "red labels: columns 0 to 2 or 6 to 8, on that side of the parcel",
    REWARD: "green labels, likewise",
    TRAIL: "the parcels, columns 3 to 5",
    GAUGE: "column 9: all rows above that of the parcel nearest to the end",
}
ACTIONS = "left and right turn the flap one notch; all others do nothing"

SPACING = 2
PLAIN = 0.2
VARY = {"SPACING": (3, 4), "PLAIN": (0.1, 0.4)}

FLAP, PAUSE, CLOCK, BELT = range(4)  # BELT: the parcel in each of the nine rows
STATE = BELT + 9
GREEN_LEFT, GREEN_RIGHT, RED_LEFT, RED_RIGHT, UNLABELLED = range(1, 6)


def reset(s, rng):
    s[FLAP] = 1
    s[BELT] = new_parcel(rng)
    s[PAUSE] = SPACING


def new_parcel(rng):
    if chance(rng, PLAIN):
        return UNLABELLED
    return GREEN_LEFT + below(rng, 4)


def notch(parcel):
    """Where it has to go: 0 left, 1 middle, 2 right."""
    if parcel == UNLABELLED:
        return 1
    return 0 if parcel in (GREEN_LEFT, RED_RIGHT) else 2


def move_belt(s, rng):
    for row in range(8, 0, -1):
        s[BELT + row] = s[BELT + row - 1]
    s[BELT] = 0
    s[PAUSE] -= 1
    if s[PAUSE] == 0:
        s[BELT] = new_parcel(rng)
        s[PAUSE] = SPACING + below(rng, 3)


def step(s, action, rng):
    reward = 0
    if action == LEFT:
        s[FLAP] = clamp(s[FLAP] - 1, 0, 2)
    elif action == RIGHT:
        s[FLAP] = clamp(s[FLAP] + 1, 0, 2)
    leaving = s[BELT + 8]
    if leaving > 0:
        reward = 1 if notch(leaving) == s[FLAP] else -1
    move_belt(s, rng)
    s[CLOCK] += 1
    return reward, s[CLOCK] == 250


def observe(s, board):
    last = 0
    for row in range(9):
        parcel = s[BELT + row]
        if parcel > 0:
            last = row
            label = REWARD if parcel in (GREEN_LEFT, GREEN_RIGHT) else DANGER
            side = 0 if parcel in (GREEN_LEFT, RED_LEFT) else 6
            for cell in range(3):
                light(board, row, 3 + cell, TRAIL)
                if parcel != UNLABELLED:
                    light(board, row, side + cell, label)
    for row in range(last):
        light(board, row, 9, GAUGE)
    for cell in range(3):
        light(board, 9, 3 * s[FLAP] + cell, PLAYER)

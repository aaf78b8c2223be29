"""Climb a shaft as a gecko: leap from wall to wall, away from the spikes and after the flies.

The shaft, empty at first, scrolls down one row a step past the gecko, which stays in row 7 and hangs on the left wall
(column 2) or on the right one (column 7), at first on a random one. Left and right leap to that wall: you are in
mid-air (column 4) for one step, and on the wall with the next, whatever you do then. In every `GAP`th row there is a
fly: on the left wall, in mid-air or on the right wall, all as likely. With chance `SPIKES` that row has spikes as well,
on a wall where the fly isn't. You move first, then the shaft scrolls: so what you see in row 6 is in your row after the
step. What is there at your place is yours: a fly on a wall gives +1 and a fly in mid-air +2, and is eaten; spikes cost
2. The episode ends after 240 steps.
"""

from weightgym.rewards.weight_program.games.kit import (
    DANGER,
    LEFT,
    PLAYER,
    REWARD,
    RIGHT,
    TRAIL,
    below,
    chance,
    light,
)

FAMILY = "arcade_style"
CAP = 150
CHANNELS = {
    PLAYER: "the gecko",
    DANGER: "spikes",
    REWARD: "flies",
    TRAIL: "in mid-air, the wall that you leap to, rows 6 to 8",
}
ACTIONS = "left and right leap to that wall (hold on, if you are there); all others hold on"

GAP = 2
SPIKES = 0.7
VARY = {"GAP": (1, 3), "SPIKES": (0.4, 1.0)}

# Places across the shaft: 0 left wall, 1 mid-air, 2 right wall.
PLACE, AIM, CLOCK, FLY = range(4)
SPIKE = FLY + 10  # fly and spikes of each row: 1 + their place, or 0 for none
STATE = SPIKE + 10


def reset(s, rng):
    s[PLACE] = 2 * below(rng, 2)
    s[AIM] = s[PLACE]


def leap(s, action):
    if s[PLACE] == 1:
        s[PLACE] = s[AIM]
    elif action in (LEFT, RIGHT):
        s[AIM] = 0 if action == LEFT else 2
        s[PLACE] = (s[PLACE] + s[AIM]) // 2


def scroll(s, rng):
    for row in range(9, 0, -1):
        s[FLY + row] = s[FLY + row - 1]
        s[SPIKE + row] = s[SPIKE + row - 1]
    s[FLY] = 0
    s[SPIKE] = 0
    if s[CLOCK] % GAP == 0:
        fly = below(rng, 3)
        s[FLY] = 1 + fly
        if chance(rng, SPIKES):
            s[SPIKE] = 3 - fly if fly != 1 else 1 + 2 * below(rng, 2)


def step(s, action, rng):
    reward = 0
    leap(s, action)
    scroll(s, rng)
    if s[SPIKE + 7] == 1 + s[PLACE]:
        reward = -2
    elif s[FLY + 7] == 1 + s[PLACE]:
        reward = 2 if s[PLACE] == 1 else 1
        s[FLY + 7] = 0
    s[CLOCK] += 1
    return reward, s[CLOCK] == 240


def column(place):
    return 2 + place * 5 // 2


def observe(s, board):
    light(board, 7, column(s[PLACE]), PLAYER)
    if s[PLACE] == 1:
        for row in range(6, 9):
            light(board, row, column(s[AIM]), TRAIL)
    for row in range(10):
        if s[FLY + row] > 0:
            light(board, row, column(s[FLY + row] - 1), REWARD)
        if s[SPIKE + row] > 0:
            light(board, row, column(s[SPIKE + row] - 1), DANGER)

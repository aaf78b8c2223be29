"""Sparks burn along four fuses towards their bombs; run to a fuse and stamp its spark out before it arrives.

You run up and down in column 0 from fuse to fuse, one a step, and start at the second. A fuse is two rows thick, the
first one in rows 1 and 2. Fire stamps on the fuse where you are: +1 if it burns, which puts it out, and -1 if it
doesn't burn. Either way you can't stamp for two steps. After your action, on each fuse that doesn't burn, a spark
appears at column 9 with probability `SPARKS`. A spark that is there already comes one column nearer on every `FAST`th
step on the first and third fuse, and on every `SLOW`th step on the others. One that reaches column 1 sets off the bomb,
which costs 1, and is gone. The episode ends after 300 steps.
"""

from weightgym.rewards.weight_program.games.kit import (
    DANGER,
    DOWN,
    FIRE,
    GAUGE,
    PLAYER,
    TRAIL,
    UP,
    chance,
    clamp,
    light,
)

FAMILY = "arcade_style"
CAP = 95
CHANNELS = {
    PLAYER: "you, two rows high",
    DANGER: "the sparks",
    TRAIL: "the fuse ahead of each spark; the cells behind it, if on the board, on the step before it moves",
    GAUGE: "row 0: steps until you can stamp, from the left",
}
ACTIONS = "up and down move you to the next fuse, fire stamps; all others do nothing"

SPARKS = 0.1
FAST = 2
SLOW = 3
VARY = {"SPARKS": (0.05, 0.2), "FAST": (1, 4), "SLOW": (5, 6)}

AT, REST, CLOCK, SPARK = range(4)  # SPARK + fuse: the column of its spark, 0 without one
STATE = SPARK + 4


def reset(s, rng):
    s[AT] = 1


def pace(fuse):
    return FAST if fuse % 2 == 0 else SLOW


def stamp(s):
    s[REST] = 3
    reward = 1 if s[SPARK + s[AT]] > 0 else -1
    s[SPARK + s[AT]] = 0
    return reward


def burn(s, fuse, rng):
    """The reward: -1 if the bomb goes off."""
    if s[SPARK + fuse] == 0:
        if chance(rng, SPARKS):
            s[SPARK + fuse] = 9
    elif s[CLOCK] % pace(fuse) == 0:
        s[SPARK + fuse] -= 1
        if s[SPARK + fuse] == 1:
            s[SPARK + fuse] = 0
            return -1
    return 0


def step(s, action, rng):
    reward = 0
    if action in (UP, DOWN):
        s[AT] = clamp(s[AT] + (1 if action == DOWN else -1), 0, 3)
    elif action == FIRE and s[REST] == 0:
        reward = stamp(s)
    s[REST] = max(0, s[REST] - 1)
    s[CLOCK] += 1
    for fuse in range(4):
        reward += burn(s, fuse, rng)
    return reward, s[CLOCK] == 300


def observe(s, board):
    thick_light(board, s[AT], 0, PLAYER)
    for fuse in range(4):
        spark = s[SPARK + fuse]
        if spark > 0:
            thick_light(board, fuse, spark, DANGER)
            if s[CLOCK] % pace(fuse) == pace(fuse) - 1:
                thick_light(board, fuse, spark + 1, TRAIL)
        for column in range(1, spark):
            thick_light(board, fuse, column, TRAIL)
    for step_left in range(s[REST]):
        light(board, 0, step_left, GAUGE)


def thick_light(board, fuse, column, channel):
    light(board, 2 * fuse + 1, column, channel)
    light(board, 2 * fuse + 2, column, channel)

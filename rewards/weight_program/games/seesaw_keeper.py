"""Walk along a seesaw as its counterweight and keep it level while weights come and go.

The beam lies on a pivot between columns 4 and 5. You and the two weights weigh the same, and each pulls with its
distance from the pivot, counted in half columns (1, 3, 5, 7, 9). You move first, then the weights, then the beam. A
weight falls a row a step from row 0 and comes to lie in row 5 (the first) or row 6 (the second). It pulls from that
step on and for `STAY` steps more, then slips off, and its next one starts in row 0. A new weight has a random column,
or the mirrored one if there both weights would pull with more than 10 to one side, fallen or not (for the first weight
the second one counts as in column 0 at the start, and in its old column after a tip). If the pulls of both sides differ
by more than `SLACK`, the lean changes by one towards the heavier side, otherwise by one towards level. A step that ends
level gives +1. A lean of `TIP` tips the beam over, which costs 3: both weights are gone and new ones come (the second
is eight steps behind the first), and the beam is level, with you in column 2 or 7 at random; so it is at the start. The
episode ends after 250 steps.
"""

from weightgym.rewards.weight_program.games.kit import (
    DANGER,
    GAUGE,
    LEFT,
    PLAYER,
    PROJECTILE,
    RIGHT,
    TRAIL,
    below,
    clamp,
    light,
)

FAMILY = "arcade_style"
CAP = 225
CHANNELS = {
    PLAYER: "you, in row 7",
    DANGER: "weights that lie on the beam, in rows 5 and 6",
    PROJECTILE: "weights that fall",
    TRAIL: "weights that slip off in one or two steps",
    GAUGE: "row 9: the lean, one cell a unit, from the middle to the side that is down",
}
ACTIONS = "left and right move you one column, all others do nothing"
VARY = {"STAY": (8, 16), "SLACK": (1, 4), "TIP": (3, 5)}

ME, LEAN, CLOCK, PLACE, HEIGHT, AGE, STATE = 0, 1, 2, 3, 5, 7, 9
STAY = 12
SLACK = 2
TIP = 4


def reset(s, rng):
    mount(s, rng)


def mount(s, rng):
    s[LEAN] = 0
    s[ME] = 2 + 5 * below(rng, 2)
    for weight in range(2):
        new_weight(s, weight, rng)
    s[HEIGHT + 1] = -8


def new_weight(s, weight, rng):
    s[PLACE + weight] = below(rng, 10)
    if abs(arm(s[PLACE + weight]) + arm(s[PLACE + 1 - weight])) > 10:
        s[PLACE + weight] = 9 - s[PLACE + weight]
    s[HEIGHT + weight] = 0
    s[AGE + weight] = 0


def lies(s, weight):
    return s[HEIGHT + weight] == 5 + weight


def arm(column):
    """Half columns from the pivot, negative on the left."""
    return 2 * column - 9


def move_weight(s, weight, rng):
    if not lies(s, weight):
        s[HEIGHT + weight] += 1
        return
    s[AGE + weight] += 1
    if s[AGE + weight] > STAY:
        new_weight(s, weight, rng)


def pull(s):
    total = arm(s[ME])
    for weight in range(2):
        if lies(s, weight):
            total += arm(s[PLACE + weight])
    return total


def step(s, action, rng):
    if action == LEFT:
        s[ME] = clamp(s[ME] - 1, 0, 9)
    elif action == RIGHT:
        s[ME] = clamp(s[ME] + 1, 0, 9)
    for weight in range(2):
        move_weight(s, weight, rng)
    if abs(pull(s)) > SLACK:
        s[LEAN] += 1 if pull(s) > 0 else -1
    else:
        s[LEAN] -= clamp(s[LEAN], -1, 1)
    reward = 1 if s[LEAN] == 0 else 0
    if abs(s[LEAN]) == TIP:
        reward = -3
        mount(s, rng)
    s[CLOCK] += 1
    return reward, s[CLOCK] == 250


def observe(s, board):
    light(board, 7, s[ME], PLAYER)
    for weight in range(2):
        channel = DANGER if lies(s, weight) else PROJECTILE
        light(board, s[HEIGHT + weight], s[PLACE + weight], channel)
        if s[AGE + weight] > STAY - 2:
            light(board, s[HEIGHT + weight], s[PLACE + weight], TRAIL)
    for half in range(abs(s[LEAN])):
        light(board, 9, 5 + half if s[LEAN] > 0 else 4 - half, GAUGE)

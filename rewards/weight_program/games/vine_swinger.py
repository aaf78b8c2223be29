"""Cross gorge after gorge from vine to vine: climb to the height of the next one's leaves and jump as the vines meet.

You cling to a vine that swings through columns 1 to 4, in row 4 at first; the next vine swings through columns 5 to 8
and has leaves in three rows. A vine swings a column a step; at the end of its swing it hangs still, turns with a chance
of `TURN` a step, and swings back from the step after that. Up and down climb a row, within rows 1 to 7. Fire jumps: the
vines swing on, and if they are then no more than `REACH` columns apart and you are in a row of leaves, you hold the
next vine in the middle of its leaves: it becomes your vine, four columns farther left, another one comes, and you get
+2. With `VINES` vines of a gorge behind you, you get 5 more, and the next gorge begins. Any other jump ends in the
river for three steps, in which your actions do nothing; two other vines come, your row stays, and you are one vine back
in the gorge, which costs 1 (at its first vine it is free). The episode ends after 300 steps.
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
CAP = 120
CHANNELS = {
    PLAYER: "you",
    DANGER: "row 8: the river, while you are in it",
    REWARD: "the leaves of the next vine",
    TRAIL: "beside you and beside the leaves, the side that each vine swings away from; none at an end until it turns",
    GAUGE: "row 9: vines behind you in this gorge, from the left",
}
ACTIONS = "up and down climb, fire jumps, all others do nothing"
VARY = {"TURN": (0.3, 0.8), "REACH": (1, 3), "VINES": (3, 8)}

ROW, CROSSED, CLOCK, LEAVES, PLACE, SWING, WET, STATE = 0, 1, 2, 3, 4, 6, 8, 9
TURN = 0.5
REACH = 2
VINES = 5


def reset(s, rng):
    s[ROW] = 4
    new_vine(s, 0, rng)
    new_vine(s, 1, rng)


def new_vine(s, vine, rng):
    """Vine 0 is yours. Places count from the left end of its swing."""
    s[PLACE + vine] = below(rng, 4)
    s[SWING + vine] = 2 * below(rng, 2) - 1
    if vine == 1:
        s[LEAVES] = 2 + below(rng, 5)


def at_end(s, vine):
    return s[PLACE + vine] == (3 if s[SWING + vine] > 0 else 0)


def sway(s, vine, rng):
    if at_end(s, vine):
        if chance(rng, TURN):
            s[SWING + vine] = -s[SWING + vine]
    else:
        s[PLACE + vine] += s[SWING + vine]


def fall(s, rng):
    s[WET] = 3
    new_vine(s, 0, rng)
    new_vine(s, 1, rng)
    if s[CROSSED] == 0:
        return 0
    s[CROSSED] -= 1
    return -1


def jump(s, rng):
    if s[PLACE + 1] + 4 - s[PLACE] > REACH or abs(s[ROW] - s[LEAVES]) > 1:
        return fall(s, rng)
    s[ROW] = s[LEAVES]
    s[PLACE] = s[PLACE + 1]
    s[SWING] = s[SWING + 1]
    new_vine(s, 1, rng)
    s[CROSSED] += 1
    if s[CROSSED] == VINES:
        s[CROSSED] = 0
        return 7
    return 2


def step(s, action, rng):
    reward = 0
    sway(s, 0, rng)
    sway(s, 1, rng)
    if s[WET] > 0:
        s[WET] -= 1
    elif action == UP:
        s[ROW] = clamp(s[ROW] - 1, 1, 7)
    elif action == DOWN:
        s[ROW] = clamp(s[ROW] + 1, 1, 7)
    elif action == FIRE:
        reward = jump(s, rng)
    s[CLOCK] += 1
    return reward, s[CLOCK] == 300


def observe(s, board):
    light(board, s[ROW], 1 + s[PLACE], PLAYER)
    if not at_end(s, 0):
        light(board, s[ROW], 1 + s[PLACE] - s[SWING], TRAIL)
    for row in range(s[LEAVES] - 1, s[LEAVES] + 2):
        light(board, row, 5 + s[PLACE + 1], REWARD)
        if not at_end(s, 1):
            light(board, row, 5 + s[PLACE + 1] - s[SWING + 1], TRAIL)
    if s[WET] > 0:
        for column in range(10):
            light(board, 8, column, DANGER)
    for column in range(s[CROSSED]):
        light(board, 9, column, GAUGE)

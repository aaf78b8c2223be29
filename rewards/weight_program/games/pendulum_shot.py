"""A lamp swings to and fro above a shelf; flash it when it hangs over the mark that glides there.

The lamp swings along row 2, a column a step, and rests for one step at either end before it swings back. The mark
glides along row 7: three cells wide, a column on every `PACE`th step, and it turns at the ends without a rest. Both
start at a random place, in a random direction. Fire flashes the lamp. The flash is judged at once, where lamp and mark
stand before they move on: over the middle of the mark it gives +2, over one of its outer cells +1, and the mark moves
to a random place and glides in a random direction. A flash beside the mark gives nothing and burns one of `BULBS`
bulbs. For `RECHARGE` steps after a flash the lamp is dark, and fire does nothing. The last bulb ends the episode when
it burns, and so does step 300.
"""

from weightgym.rewards.weight_program.games.kit import (
    FIRE,
    GAUGE,
    PLAYER,
    PROJECTILE,
    REWARD,
    TRAIL,
    below,
    light,
)

FAMILY = "arcade_style"
CAP = 70
CHANNELS = {
    PLAYER: "the lamp",
    REWARD: "the three cells of the mark",
    PROJECTILE: "right after a flash: rows 3 to 6 under the lamp, where it is now",
    TRAIL: "row 2: the cell behind the lamp; row 8: behind the mark's middle, and under it a step before it glides",
    GAUGE: "row 0: steps until the lamp is bright again, from the left; row 9: bulbs left, from the right",
}
ACTIONS = "fire flashes the lamp; all others do nothing"
VARY = {"BULBS": (3, 5), "PACE": (2, 4), "RECHARGE": (2, 5)}

PACE = 3
RECHARGE = 3
BULBS = 4

LAMP, SWING, MIDDLE, DRIFT, DARK, FLASH, SPARE, CLOCK, STATE = range(9)


def reset(s, rng):
    s[LAMP] = below(rng, 10)
    s[SWING] = 2 * below(rng, 2) - 1
    s[SPARE] = BULBS
    new_mark(s, rng)


def new_mark(s, rng):
    s[MIDDLE] = 1 + below(rng, 8)
    s[DRIFT] = 2 * below(rng, 2) - 1


def flash(s, rng):
    s[DARK] = RECHARGE + 1
    s[FLASH] = 1
    off = abs(s[LAMP] - s[MIDDLE])
    if off > 1:
        s[SPARE] -= 1
        return 0
    new_mark(s, rng)
    return 2 - off


def swing(s):
    """The lamp rests at an end while it turns."""
    if s[LAMP] + s[SWING] < 0 or s[LAMP] + s[SWING] > 9:
        s[SWING] = -s[SWING]
    else:
        s[LAMP] += s[SWING]


def glide(s):
    if s[MIDDLE] + s[DRIFT] < 1 or s[MIDDLE] + s[DRIFT] > 8:
        s[DRIFT] = -s[DRIFT]
    s[MIDDLE] += s[DRIFT]


def step(s, action, rng):
    reward = 0
    s[FLASH] = 0
    if action == FIRE and s[DARK] == 0:
        reward = flash(s, rng)
    s[DARK] = max(0, s[DARK] - 1)
    swing(s)
    s[CLOCK] += 1
    if s[CLOCK] % PACE == 0:
        glide(s)
    return reward, s[SPARE] == 0 or s[CLOCK] == 300


def observe(s, board):
    light(board, 2, s[LAMP], PLAYER)
    light(board, 2, s[LAMP] - s[SWING], TRAIL)
    for column in range(s[MIDDLE] - 1, s[MIDDLE] + 2):
        light(board, 7, column, REWARD)
    light(board, 8, s[MIDDLE] - s[DRIFT], TRAIL)
    if (s[CLOCK] + 1) % PACE == 0:
        light(board, 8, s[MIDDLE], TRAIL)
    if s[FLASH] == 1:
        for row in range(3, 7):
            light(board, row, s[LAMP], PROJECTILE)
    for step_left in range(s[DARK]):
        light(board, 0, step_left, GAUGE)
    for bulb in range(s[SPARE]):
        light(board, 9, 9 - bulb, GAUGE)

"""A slab glides to and fro over a tower; drop it so that it lies flush on the storey below.

The slab is as wide as the tower's top, and glides one column a step along row 2, turning at the ends. Fire drops it
from where it is, and it doesn't glide on that step. What overhangs breaks off: the rest is the new top, the tower sinks
by one row, and the next slab is that narrow. You get +1 for each cell that lies on the tower and -1 for each that
breaks off. If a slab lies flush and is narrower than `WIDTH`, the new top, and so the next slab, gets one more cell on
its right (on its left if the right end is column 9). A slab that misses the tower costs `MISS` and pulls it down: a new
tower, `WIDTH` cells wide, stands at a random place, as at the start. A new slab starts at the left or the right end, at
random, and is held fast for `HOLD` steps, in which fire does nothing. The episode ends after 300 steps.
"""

from weightgym.rewards.weight_program.games.kit import (
    FIRE,
    GAUGE,
    PLAYER,
    REWARD,
    TRAIL,
    below,
    light,
)

FAMILY = "arcade_style"
CAP = 170
CHANNELS = {
    PLAYER: "the cells of the slab",
    REWARD: "the top of the tower, row 5",
    TRAIL: "row 2: the cell behind the slab (none while it is held); rows 6 to 8: the storeys under the top",
    GAUGE: "row 0: steps for which the slab is still held, from the left (`HOLD` at first)",
}
ACTIONS = "fire drops the slab; all others do nothing"
VARY = {"WIDTH": (3, 5), "MISS": (2, 8), "HOLD": (1, 4)}

WIDTH = 4
MISS = 4
HOLD = 2

SLAB, GLIDE, HELD, CLOCK, TOP, TOP_WIDTH = range(6)
STATE = TOP + 2 * 4  # the top and the three storeys under it: left end, width


def reset(s, rng):
    new_tower(s, rng)
    new_slab(s, rng)


def new_tower(s, rng):
    s[TOP] = below(rng, 11 - WIDTH)
    s[TOP_WIDTH] = WIDTH
    for cell in range(TOP + 2, STATE):
        s[cell] = 0


def new_slab(s, rng):
    from_right = below(rng, 2)
    s[SLAB] = from_right * (10 - s[TOP_WIDTH])
    s[GLIDE] = 1 - 2 * from_right
    s[HELD] = HOLD


def drop(s, rng):
    left, width = max(s[SLAB], s[TOP]), s[TOP_WIDTH]
    lies = width - abs(s[SLAB] - s[TOP])
    if lies <= 0:
        new_tower(s, rng)
        return -MISS
    for cell in range(STATE - 1, TOP + 1, -1):
        s[cell] = s[cell - 2]
    s[TOP] = left
    s[TOP_WIDTH] = lies
    if lies == width < WIDTH:
        s[TOP_WIDTH] += 1
        if left + lies > 9:
            s[TOP] -= 1
    return 2 * lies - width


def glide(s):
    if s[SLAB] + s[GLIDE] < 0 or s[SLAB] + s[GLIDE] > 10 - s[TOP_WIDTH]:
        s[GLIDE] = -s[GLIDE]
    s[SLAB] += s[GLIDE]


def step(s, action, rng):
    reward = 0
    s[CLOCK] += 1
    if s[HELD] > 0:
        s[HELD] -= 1
    elif action == FIRE:
        reward = drop(s, rng)
        new_slab(s, rng)
    else:
        glide(s)
    return reward, s[CLOCK] == 300


def observe(s, board):
    for cell in range(s[TOP_WIDTH]):
        light(board, 2, s[SLAB] + cell, PLAYER)
    light(board, 2, s[SLAB] - 1 if s[GLIDE] > 0 else s[SLAB] + s[TOP_WIDTH], TRAIL)
    for storey in range(4):
        for cell in range(s[TOP_WIDTH + 2 * storey]):
            light(board, 5 + storey, s[TOP + 2 * storey] + cell, REWARD if storey == 0 else TRAIL)
    for step_left in range(s[HELD]):
        light(board, 0, step_left, GAUGE)

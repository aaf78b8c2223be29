"""Hold fire to charge the cannon on the pier, and let go when the charge is the distance to the raft.

The cannon stands at column 0. Each step of fire adds one to its charge; any other action lets go of it, and the ball
lands at once in the column with the number of the charge. Then, in every `PACE`th step, the raft drifts one column,
between columns `NEAREST` and 9, where it turns. A ball on the raft gives +3, one in a column beside it +1; either way
the raft sinks and another comes, in a random one of these columns, drifting to a random side. A ferry lies at anchor in
a random one of these columns too, perhaps the raft's, and moves to a random one when a raft has sunk. A ball that lands
on the ferry gives -1 and no more, even if it sinks the raft as well. Other balls are wasted. The tenth step of fire
loses the charge and its ball. You have `BALLS` balls. The last ball ends the episode, and so does step 240.
"""

from weightgym.rewards.weight_program.games.kit import (
    DANGER,
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
CAP = 90
CHANNELS = {
    PLAYER: "the cannon",
    DANGER: "the ferry",
    REWARD: "the raft",
    PROJECTILE: "the splash where the ball landed, for the step after it",
    TRAIL: "row 3: behind the raft, the side it comes from, and above the raft on the step before it drifts",
    GAUGE: "row 9: the charge, a cell for each, from column 1 on; row 0: balls left, from the left, up to four a cell",
}
ACTIONS = "fire charges; all others let go of the charge"

PACE = 4
NEAREST = 4
BALLS = 30
VARY = {"PACE": (3, 6), "NEAREST": (3, 5), "BALLS": (20, 40)}

CHARGE, RAFT, DRIFT, FERRY, SPLASH, BALL, CLOCK, STATE = range(8)


def reset(s, rng):
    s[BALL] = BALLS
    new_raft(s, rng)


def new_raft(s, rng):
    s[RAFT] = NEAREST + below(rng, 10 - NEAREST)
    s[DRIFT] = 2 * below(rng, 2) - 1
    s[FERRY] = NEAREST + below(rng, 10 - NEAREST)


def land(s, rng):
    s[SPLASH] = s[CHARGE]
    s[CHARGE] = 0
    s[BALL] -= 1
    off = abs(s[SPLASH] - s[RAFT])
    reward = 0
    if s[SPLASH] == s[FERRY]:
        reward = -1
    elif off < 2:
        reward = 3 - 2 * off
    if off < 2:
        new_raft(s, rng)
    return reward


def drift(s):
    if s[RAFT] + s[DRIFT] < NEAREST or s[RAFT] + s[DRIFT] > 9:
        s[DRIFT] = -s[DRIFT]
    s[RAFT] += s[DRIFT]


def step(s, action, rng):
    reward = 0
    s[SPLASH] = 0
    if action == FIRE:
        s[CHARGE] += 1
        if s[CHARGE] == 10:
            s[CHARGE] = 0
            s[BALL] -= 1
    elif s[CHARGE] > 0:
        reward = land(s, rng)
    s[CLOCK] += 1
    if s[CLOCK] % PACE == 0:
        drift(s)
    return reward, s[BALL] == 0 or s[CLOCK] == 240


def observe(s, board):
    light(board, 5, 0, PLAYER)
    light(board, 4, s[RAFT], REWARD)
    light(board, 6, s[FERRY], DANGER)
    light(board, 3, s[RAFT] - s[DRIFT], TRAIL)
    if s[CLOCK] % PACE == PACE - 1:
        light(board, 3, s[RAFT], TRAIL)
    if s[SPLASH] > 0:
        light(board, 5, s[SPLASH], PROJECTILE)
    for column in range(1, s[CHARGE] + 1):
        light(board, 9, column, GAUGE)
    for four in range((s[BALL] + 3) // 4):
        light(board, 0, four, GAUGE)

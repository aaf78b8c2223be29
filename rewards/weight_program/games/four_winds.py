"""Turn a turret to the four winds: shoot the raiders that come along four roads, and let the messengers through.

The turret stands at row 4, column 4, where four roads meet, four cells long each. It points up at first, and the arrows
turn it at once to that side. Fire shoots at once along the road that the turret points to, and then you must load for
two steps. A raider that is hit gives +1; a shot at a messenger or along an empty road costs 1. Whoever is hit is gone.
Then, in every `PACE`th step, all walkers come one cell closer. A messenger who arrives at the turret gives +1, a raider
who arrives costs 1. At the end of every step, with probability `SPAWN`, somebody sets out at the far end of a random
road, unless that road is in use: a messenger with probability `FRIENDS`, else a raider. The episode ends after 300
steps.
"""

from weightgym.rewards.weight_program.games.kit import (
    DANGER,
    DOWN,
    FIRE,
    GAUGE,
    LEFT,
    PLAYER,
    PROJECTILE,
    REWARD,
    RIGHT,
    TRAIL,
    UP,
    below,
    chance,
    light,
)

FAMILY = "atari_style"
CAP = 60
CHANNELS = {
    PLAYER: "the turret, and the cell beside it on the side that it points to",
    DANGER: "the raiders",
    REWARD: "the messengers",
    PROJECTILE: "your shot, along its road, for the step after it",
    TRAIL: "the cell behind each walker, if it is on the board, on the step before they move (one in `PACE`)",
    GAUGE: "row 9: steps until you have loaded, from the left",
}
ACTIONS = "left, up, right and down turn the turret, fire shoots; no-op waits"

SPAWN = 0.3
FRIENDS = 0.3
PACE = 2
VARY = {"SPAWN": (0.2, 0.5), "FRIENDS": (0.1, 0.5), "PACE": (1, 3)}

SIDE, LOAD, SHOT, CLOCK, FAR = range(5)  # how far the walker of each road has to go, 0 for none, from FAR + LEFT on
FRIEND = FAR + 5
STATE = FRIEND + 5


def reset(s, rng):
    s[SIDE] = UP


def set_out(s, rng):
    road = LEFT + below(rng, 4)
    if s[FAR + road] == 0:
        s[FAR + road] = 4
        s[FRIEND + road] = 1 if chance(rng, FRIENDS) else 0


def shoot(s):
    s[LOAD] = 3
    s[SHOT] = 1
    if s[FAR + s[SIDE]] == 0:
        return -1
    s[FAR + s[SIDE]] = 0
    return -1 if s[FRIEND + s[SIDE]] == 1 else 1


def walk(s):
    reward = 0
    for road in range(LEFT, DOWN + 1):
        if s[FAR + road] == 1:
            reward += 1 if s[FRIEND + road] == 1 else -1
        s[FAR + road] = max(0, s[FAR + road] - 1)
    return reward


def step(s, action, rng):
    reward = 0
    s[SHOT] = 0
    if LEFT <= action <= DOWN:
        s[SIDE] = action
    elif action == FIRE and s[LOAD] == 0:
        reward = shoot(s)
    s[LOAD] = max(0, s[LOAD] - 1)
    s[CLOCK] += 1
    if s[CLOCK] % PACE == 0:
        reward += walk(s)
    if chance(rng, SPAWN):
        set_out(s, rng)
    return reward, s[CLOCK] == 300


def light_road(board, road, far, channel):
    """Light the cell of that road that is so far from the turret."""
    if road == LEFT:
        light(board, 4, 4 - far, channel)
    elif road == UP:
        light(board, 4 - far, 4, channel)
    elif road == RIGHT:
        light(board, 4, 4 + far, channel)
    else:
        light(board, 4 + far, 4, channel)


def observe(s, board):
    light(board, 4, 4, PLAYER)
    light_road(board, s[SIDE], 1, PLAYER)
    for road in range(LEFT, DOWN + 1):
        if s[FAR + road] > 0:
            light_road(board, road, s[FAR + road], REWARD if s[FRIEND + road] == 1 else DANGER)
            if s[CLOCK] % PACE == PACE - 1:
                light_road(board, road, s[FAR + road] + 1, TRAIL)
    if s[SHOT] == 1:
        for far in range(1, 5):
            light_road(board, s[SIDE], far, PROJECTILE)
    for step_left in range(s[LOAD]):
        light(board, 9, step_left, GAUGE)

"""Slide about a rink of ice, from one stop to the next, over the gems that lie on the way, and never stand still.

The rink has five rows and five places in each, drawn as two by two cells, and three pillars. A direction sends you off,
and within the same step you slide on until a pillar or the edge of the rink is in front of you. You can't go back the
way you came, not even after a step in which you stayed. If you try, if something is in front of you already, or without
a direction, you stay where you are and freeze: -1. You start in the upper left corner. There are always `GEMS` gems.
One that you slide over gives +3, and another one appears at once, at random on a place without gem or pillar and not
under you; if that is ahead on your slide, you take it too. The episode ends after `STEPS` steps.
"""

from weightgym.rewards.weight_program.games.kit import (
    DANGER,
    DOWN,
    LEFT,
    PLAYER,
    REWARD,
    RIGHT,
    TRAIL,
    UP,
    below,
    light,
)

FAMILY = "arcade_style"
CAP = 350
CHANNELS = {
    PLAYER: "you",
    DANGER: "the pillars, always at the same places",
    REWARD: "the `GEMS` gems",
    TRAIL: "the place next to you that you come from; at the start your own",
}
ACTIONS = "the directions send you sliding; all others do nothing"

GEMS = 3
STEPS = 200
VARY = {"GEMS": (2, 4, 6), "STEPS": (120, 300)}

PLACE, BEHIND, CLOCK, GEM = range(4)  # GEM + place: 1 if a gem lies there; place = 5 * row + column
STATE = GEM + 25


def reset(s, rng):
    for _ in range(GEMS):
        new_gem(s, rng)


def new_gem(s, rng):
    first = below(rng, 25)
    for further in range(25):
        place = (first + further) % 25
        if s[GEM + place] == 0 and place != s[PLACE] and not pillar(place):
            s[GEM + place] = 1
            break


def pillar(place):
    return place in (4, 18, 20)


def ahead(place, action):
    """The next place in that direction, or the same one if you can't go on."""
    row, column = place // 5, place % 5
    row += (action == DOWN) - (action == UP)
    column += (action == RIGHT) - (action == LEFT)
    inside = 0 <= row < 5 and 0 <= column < 5
    return 5 * row + column if inside and not pillar(5 * row + column) else place


def slide(s, action, rng):
    """Slide; the reward of the gems on the way. No slide is longer than four places."""
    reward = 0
    for _ in range(4):
        to = ahead(s[PLACE], action)
        if to != s[PLACE]:
            s[BEHIND] = s[PLACE]
            s[PLACE] = to
        if s[GEM + to] == 1:
            s[GEM + to] = 0
            reward += 3
            new_gem(s, rng)
    return reward


def step(s, action, rng):
    stays = ahead(s[PLACE], action) in (s[PLACE], s[BEHIND])
    reward = -1 if stays else slide(s, action, rng)
    s[CLOCK] += 1
    return reward, s[CLOCK] == STEPS


def observe(s, board):
    show(board, s[PLACE], PLAYER)
    show(board, s[BEHIND], TRAIL)
    for place in range(25):
        if pillar(place):
            show(board, place, DANGER)
        if s[GEM + place] == 1:
            show(board, place, REWARD)


def show(board, place, channel):
    for part in range(4):
        light(board, place // 5 * 2 + part // 2, place % 5 * 2 + part % 2, channel)

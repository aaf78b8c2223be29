"""A storm throws debris down at you; let it land right beside you, but not on you.

You slide along row 9 and are two columns wide, columns 4 and 5 at first. `PIECES` pieces of debris are in the air, each
in a random column; they come out of the clouds in row `CLOUD`. A fast piece falls a row a step, the slow ones fall a
row on every `SLOW`th step of the episode; a piece is fast with probability `FAST`. When a piece comes down to row 9,
after you have moved, a graze gives +1: it has landed in one of the two columns next to you, on either side. A piece
that lands on you costs 2. Further off it gives nothing, so hiding doesn't pay. Every piece that has landed is replaced
by a new one. The episode ends after `LENGTH` steps.
"""

from weightgym.rewards.weight_program.games.kit import (
    DANGER,
    GAUGE,
    LEFT,
    PLAYER,
    RIGHT,
    TRAIL,
    below,
    chance,
    clamp,
    light,
)

FAMILY = "atari_style"
CAP = 70
CHANNELS = {
    PLAYER: "your two cells",
    DANGER: "the debris",
    TRAIL: "the cell above each fast piece",
    GAUGE: "row 0: steps until the slow pieces fall, from the left: `SLOW` cells after they fell, one before they fall",
}
ACTIONS = "left and right move you one column; all others do nothing"

PIECES = 2
CLOUD = 4
SLOW = 2
FAST = 0.5
LENGTH = 300
VARY = {"PIECES": (3, 4), "CLOUD": (2, 6), "SLOW": (3, 4), "FAST": (0.2, 0.8), "LENGTH": (200, 400)}

ME, CLOCK, FIRST = range(3)
ROW, COLUMN, QUICK, PARTS = range(4)  # of each piece, from FIRST on
STATE = FIRST + PARTS * PIECES


def reset(s, rng):
    s[ME] = 4
    for i in range(PIECES):
        new_piece(s, FIRST + PARTS * i, rng)


def new_piece(s, piece, rng):
    s[piece + ROW] = CLOUD
    s[piece + COLUMN] = below(rng, 10)
    s[piece + QUICK] = 1 if chance(rng, FAST) else 0


def worth(s, column):
    """What a landing in that column gives."""
    if column in (s[ME], s[ME] + 1):
        return -2
    return 1 if s[ME] - 2 <= column <= s[ME] + 3 else 0


def step(s, action, rng):
    reward = 0
    if action == LEFT:
        s[ME] = clamp(s[ME] - 1, 0, 8)
    elif action == RIGHT:
        s[ME] = clamp(s[ME] + 1, 0, 8)
    s[CLOCK] += 1
    for i in range(PIECES):
        piece = FIRST + PARTS * i
        if s[piece + QUICK] == 1 or s[CLOCK] % SLOW == 0:
            s[piece + ROW] += 1
        if s[piece + ROW] == 9:
            reward += worth(s, s[piece + COLUMN])
            new_piece(s, piece, rng)
    return reward, s[CLOCK] == LENGTH


def observe(s, board):
    light(board, 9, s[ME], PLAYER)
    light(board, 9, s[ME] + 1, PLAYER)
    for i in range(PIECES):
        piece = FIRST + PARTS * i
        light(board, s[piece + ROW], s[piece + COLUMN], DANGER)
        if s[piece + QUICK] == 1:
            light(board, s[piece + ROW] - 1, s[piece + COLUMN], TRAIL)
    for step_left in range(SLOW - s[CLOCK] % SLOW):
        light(board, 0, step_left, GAUGE)

"""Ways to play the MinAtar games that reach the paths which uniform play hardly ever does.

A policy is ``(game, state, rng) -> action``: ``game`` is MinAtar's own game object (``Environment.env``), which a
policy may look into but never changes, ``state`` its native observation (bool, 10×10×channels), ``rng`` the policy's
own randomness. Actions are 0-5: no-op, left, up, right, down, fire.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

State = npt.NDArray[np.bool_]
Policy = Callable[[Any, State, np.random.Generator], int]

NOOP, LEFT, UP, RIGHT, DOWN, FIRE = range(6)
MOVES = {NOOP: (0, 0), LEFT: (-1, 0), UP: (0, -1), RIGHT: (1, 0), DOWN: (0, 1)}


def uniform(game: Any, state: State, rng: np.random.Generator) -> int:
    return int(rng.integers(6))


def always(action: int) -> Policy:
    """One action for the whole episode."""
    return lambda game, state, rng: action


def restless() -> Policy:
    """A random action, held for eight steps on average."""
    held = NOOP

    def act(game: Any, state: State, rng: np.random.Generator) -> int:
        nonlocal held
        if rng.random() < 0.125:
            held = int(rng.integers(6))
        return held

    return act


def towards(position: int, target: int) -> int:
    return LEFT if target < position else RIGHT if target > position else NOOP


# Asterix


def asterix_collector(game: Any, state: State, rng: np.random.Generator) -> int:
    """Goes for the nearest gold, out of the way of every enemy that is one or two cells off."""
    gold = np.argwhere(state[:, :, game.channels["gold"]])
    here = np.array([game.player_y, game.player_x])
    goal = min(gold, key=lambda at: int(np.abs(at - here).sum()), default=np.array([5, 5]))
    best, best_cost = NOOP, np.inf
    for action, (right, down) in MOVES.items():
        column, row = min(max(game.player_x + right, 0), 9), min(max(game.player_y + down, 1), 8)
        cost = abs(goal[0] - row) + abs(goal[1] - column) + rng.random()
        entity = game.entities[row - 1]
        if entity is None:
            cost += 3 * (column in (0, 9) and game.spawn_timer < 2)
        elif not entity[3]:
            ahead = (column - entity[0]) * (1 if entity[2] else -1)
            cost += 100 * (ahead in (0, 1)) + 10 * (ahead == 2)
        if cost < best_cost:
            best, best_cost = action, cost
    return best


# Breakout


def breakout_keeper(game: Any, state: State, rng: np.random.Generator) -> int:
    """Stands where the ball will come down; either under it or, to send it back on its own path, one further."""
    probe = copy.copy(game)
    probe.brick_map = game.brick_map.copy()
    while probe.ball_y != 8 or probe.ball_dir not in (2, 3):
        probe.pos = probe.ball_x
        probe.act(NOOP)
    corner = probe.ball_x + (1 if probe.ball_dir == 2 else -1)
    return towards(game.pos, min(max(corner, 0), 9) if rng.random() < 0.2 else probe.ball_x)


# Freeway


def freeway_walker(game: Any, state: State, rng: np.random.Generator) -> int:
    """Walks up, waits for a car that is about to cross the next lane."""
    if game.pos < 2:
        return UP
    car = game.cars[game.pos - 2]
    ahead = (4 - car[0]) * (1 if car[3] > 0 else -1) % 10
    return NOOP if ahead <= 1 and rng.random() < 0.9 else UP


# Space Invaders


def _falling(game: Any, column: int) -> bool:
    return bool(game.e_bullet_map[6:9, column].any())


def _dodge(game: Any) -> int:
    """The way out from under a bullet."""
    return LEFT if game.pos == 9 or (game.pos > 0 and game.alien_dir > 0) else RIGHT


def invaders_hunter(game: Any, state: State, rng: np.random.Generator) -> int:
    """Shoots where an alien will be when the bullet is there; clears waves."""
    if _falling(game, game.pos):
        return _dodge(game)
    columns = np.flatnonzero(game.alien_map.any(axis=0))
    target = min(columns, key=lambda column: abs(int(column) - game.pos))
    lowest = int(np.flatnonzero(game.alien_map[:, target]).max())
    flight = 9 - lowest
    lead = game.alien_dir if flight > game.alien_move_timer else 0
    aim = min(max(int(target) + lead, 0), 9)
    if aim == game.pos:
        return FIRE if game.shot_timer == 0 else NOOP
    move = towards(game.pos, aim)
    return NOOP if _falling(game, game.pos + (1 if move == RIGHT else -1)) else move


def invaders_host(game: Any, state: State, rng: np.random.Generator) -> int:
    """Shoots the right of a wave but for its top row, which keeps the wave wide; then waits at the right edge until
    the left of it stands on the floor and turns."""
    if _falling(game, game.pos):
        return _dodge(game)
    rows, columns = np.nonzero(game.alien_map)
    doomed = columns[(columns > columns.min() + 3) & (rows > rows.min())]
    if rows.max() > 7 or not doomed.size:
        return NOOP if game.pos == 9 or _falling(game, game.pos + 1) else RIGHT
    if game.pos in doomed and game.shot_timer == 0:
        return FIRE
    return towards(game.pos, int(doomed.max()))


def invaders_escort(game: Any, state: State, rng: np.random.Generator) -> int:
    """Leaves the two outer aliens of the top row and goes down with them, in between, until they turn on the floor."""
    if _falling(game, game.pos):
        return _dodge(game)
    rows, columns = np.nonzero(game.alien_map)
    left, right, top = int(columns.min()), int(columns.max()), rows.min()
    doomed = columns[(columns > left) & (columns < right) | (rows > top)]
    if not doomed.size or right - left < 3:
        return towards(game.pos, (left + right + (game.alien_dir > 0)) // 2)
    lead = game.alien_dir if 9 - rows.max() > game.alien_move_timer else 0
    aims = np.clip(doomed + lead, 0, 9)
    aim = int(min(aims, key=lambda column: abs(int(column) - game.pos)))
    if aim == game.pos:
        return FIRE if game.shot_timer == 0 else NOOP
    return towards(game.pos, aim)


# Seaquest


#: Row, column, next column, and whether it goes right.
Threat = tuple[int, int, int, bool]


def _threats(game: Any) -> Iterator[Threat]:
    """All that kills."""
    for enemy in (*game.e_fish, *game.e_subs):
        step = (1 if enemy[2] else -1) if enemy[3] == 0 else 0
        yield enemy[1], enemy[0], enemy[0] + step, enemy[2]
    for bullet in game.e_bullets:
        yield bullet[1], bullet[0], bullet[0] + (1 if bullet[2] else -1), bullet[2]


def _seaquest_goal(game: Any) -> tuple[int, int]:
    """Column and row to go to: up with six divers or little air, down and up again in debt, else to a diver."""
    if -3 <= game.diver_count < 0 and game.oxygen > 190:
        return game.sub_x, 1 if game.surface else 0
    if game.diver_count == 6 or (game.diver_count > 0 and game.oxygen < 30):
        return game.sub_x, 0
    distance: Callable[[Any], int] = lambda diver: abs(diver[0] - game.sub_x) + abs(diver[1] - game.sub_y)  # noqa: E731
    diver = min(game.divers, key=distance, default=(5, 5))
    return diver[0], diver[1]


def _swim(game: Any, goal: tuple[int, int], threats: list[Threat], rng: np.random.Generator) -> int:
    """Towards the goal, past all threats, shooting what is in front."""
    lowest_row = 0 if goal[1] == 0 or game.sub_y == 0 else 1
    best, best_cost = NOOP, np.inf
    for action, (right, down) in MOVES.items():
        column, row = min(max(game.sub_x + right, 0), 9), min(max(game.sub_y + down, lowest_row), 8)
        cost = abs(goal[0] - column) + abs(goal[1] - row) + rng.random()
        cost += 20 * (column in (0, 9) and row > 0 and game.e_spawn_timer < 2)
        for threat_row, now, then, to_right in threats:
            ahead = (column - then) * (1 if to_right else -1)
            cost += 1000 * (threat_row == row and column in (now, then)) + 8 * (threat_row == row and 0 < ahead < 3)
        if cost < best_cost:
            best, best_cost = action, cost
    in_front = any(row == game.sub_y and (now > game.sub_x) == bool(game.sub_or) for row, now, _, _ in threats)
    return FIRE if best_cost < 30 and in_front and game.shot_timer == 0 else best


def seaquest_diver(game: Any, state: State, rng: np.random.Generator) -> int:
    """Collects divers, keeps away from enemies, shoots what is in front of it."""
    return _swim(game, _seaquest_goal(game), list(_threats(game)), rng)


def seaquest_chooser(game: Any, state: State, rng: np.random.Generator) -> int:
    """With one seat left, keeps away from single divers and waits where two meet: only one of them can board."""
    if game.diver_count != 5 or game.oxygen < 30:
        return seaquest_diver(game, state, rng)
    threats = list(_threats(game))
    if len(game.divers) == 2:
        (x, row, right, _), (other, other_row, other_right, _) = game.divers
        if row == other_row and right != other_right and (x < other) == bool(right):
            return _swim(game, ((x + other) // 2, row), threats, rng)
    return _swim(game, (5, 4), threats + [(diver[1], diver[0], diver[0], diver[2]) for diver in game.divers], rng)


def seaquest_gambler(game: Any, state: State, rng: np.random.Generator) -> int:
    """Surfaces with the last breath, in the very step that is too late."""
    if game.diver_count > 0 and game.oxygen < 30:
        return UP if game.sub_y > 1 or game.oxygen == 0 else NOOP
    return seaquest_diver(game, state, rng)


def seaquest_convoy(game: Any, state: State, rng: np.random.Generator) -> int:
    """Has two bullets side by side at the right edge when an enemy is due: the only time when MinAtar's removal by
    value takes the other bullet."""
    if game.sub_y < 4:
        return DOWN
    due = game.e_spawn_timer
    if due in (1, 6):
        return FIRE
    if 1 < due < 6 or game.sub_x < 3:
        return RIGHT
    return NOOP if game.sub_x == 3 and game.sub_or else LEFT


#: Policies of each game, beside those that fit every game.
SKILLED: dict[str, tuple[Policy, ...]] = {
    "asterix": (asterix_collector,),
    "breakout": (breakout_keeper,),
    "freeway": (freeway_walker, always(UP)),
    "seaquest": (seaquest_diver, seaquest_convoy, seaquest_gambler, seaquest_chooser),
    "space_invaders": (invaders_hunter, invaders_host, invaders_escort),
}

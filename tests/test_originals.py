"""The five original games against the installed MinAtar, black box: whole episodes, every step, every channel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from minatar import Environment
from originals_policies import Policy

from weightgym.rewards.weight_program import _engine, _originals

GAMES = ("asterix", "breakout", "freeway", "seaquest", "space_invaders")
STEPS = 10_000  # an episode is cut there


# What MinAtar does


@dataclass
class Episode:
    """One episode of MinAtar's: what was chosen, and all that came of it."""

    game: str
    seed: int
    sticky: float
    chosen: list[int] = field(default_factory=list)
    executed: list[int] = field(default_factory=list)
    rewards: list[int] = field(default_factory=list)
    states: list[npt.NDArray[np.bool_]] = field(default_factory=list)
    terminal: bool = False


def play(
    game: str, policy: Policy, seed: int, events: Counter[str], *, sticky: float = 0.1, limit: int = STEPS
) -> Episode:
    """Plays MinAtar itself; ``events`` counts the rare paths that were reached."""
    environment = Environment(game, sticky, difficulty_ramping=False)
    environment.seed(seed)
    environment.reset()
    rng = np.random.default_rng(seed)
    episode = Episode(game, seed, sticky, states=[environment.state()])
    while len(episode.chosen) < limit and not episode.terminal:
        action = policy(environment.env, episode.states[-1], rng)
        after = WATCH[game](environment.env)
        reward, episode.terminal = environment.act(action)
        events.update(after(int(reward)))
        assert reward == int(reward)
        episode.chosen.append(action)
        episode.executed.append(environment.last_action)
        episode.rewards.append(int(reward))
        episode.states.append(environment.state())
    events["steps"] += len(episode.chosen)
    events["episodes"] += 1
    return episode


After = Callable[[int], Iterator[str]]


def watch_asterix(game: Any) -> After:
    moves = game.move_timer == 0

    def after(reward: int) -> Iterator[str]:
        if reward:
            yield "gold when the rest moved" if moves else "gold"
        if game.terminal:
            yield "death when enemies moved" if moves else "death"

    return after


def watch_breakout(game: Any) -> After:
    bricks = np.count_nonzero(game.brick_map)
    direction, row = game.ball_dir, game.ball_y

    def after(reward: int) -> Iterator[str]:
        if bricks == 0 and game.brick_map.any():
            yield "wall rebuilt"
            if game.terminal:
                yield "wall rebuilt in the last step"
        if game.brick_map[game.ball_y, game.ball_x] and not reward:
            yield "ball among bricks"
        if row == 8 == game.ball_y:
            yield "corner" if game.ball_dir == (direction + 2) % 4 else "paddle"

    return after


def watch_freeway(game: Any) -> After:
    row = game.pos
    on_car = 1 <= row <= 8 and game.cars[row - 1][0] == 4

    def after(reward: int) -> Iterator[str]:
        if reward:
            yield "win"
        elif game.pos == 9 and row < 8:
            yield "hit"
        if on_car:
            yield "car on the chicken before it moved"
        if game.terminal:
            yield "time up"

    return after


def watch_seaquest(game: Any) -> After:
    divers, oxygen, row = game.diver_count, game.oxygen, game.sub_y
    firing = [sub for sub in game.e_subs if sub[3] == 0 and sub[4] == 0]
    bullets = [(bullet, bullet[0]) for bullet in game.f_bullets]
    doubtful = game.e_spawn_timer == 0
    enemies = len(game.e_subs) + len(game.e_fish)
    air = game.oxygen

    def after(reward: int) -> Iterator[str]:
        if game.surface and game.sub_y == 0 and row > 0 and game.oxygen == 200:
            yield "surfaced with six" if divers == 6 and reward else "surfaced in debt" if divers < 0 else "surfaced"
        if game.terminal and oxygen <= 0:
            yield "no air"
        if game.terminal and game.sub_y == 0 and game.diver_count == 0 and not game.surface:
            yield "surfaced empty"
        if any(not any(sub is left for left in game.e_subs) for sub in firing):
            yield "shot of a removed sub"
        if any(abs(bullet[0] - x) > 1 for bullet, x in bullets):
            yield "bullet walked twice"
        if doubtful and not reward and len(game.e_subs) + len(game.e_fish) == enemies and enemies:
            yield "no room for an enemy"
        if game.terminal and reward:
            yield "reward in the last step"
        if air == 0 and row > 0 and game.sub_y == 0:
            yield "surfaced without air"

    return after


def watch_space_invaders(game: Any) -> After:
    aliens, on_floor = np.count_nonzero(game.alien_map), bool(game.alien_map[9].any())

    def after(reward: int) -> Iterator[str]:
        if reward > 1:
            yield "two killed at once"
        if aliens == reward:
            yield "wave cleared"
        if on_floor and game.terminal and game.alien_map[0].any():
            yield "floor came out on top"
        if on_floor and not game.terminal:
            yield "stood on the floor"
        if game.terminal and reward:
            yield "reward in the last step"

    return after


WATCH: dict[str, Callable[[Any], After]] = {
    "asterix": watch_asterix,
    "breakout": watch_breakout,
    "freeway": watch_freeway,
    "seaquest": watch_seaquest,
    "space_invaders": watch_space_invaders,
}


# What ours does with the same chosen actions


def channels_of(rows: bytes, steps: int) -> npt.NDArray[np.bool_]:
    """Observation words as (steps, 10, 10, 6)."""
    bits = np.unpackbits(np.frombuffer(rows, np.uint8).reshape(steps, 10, 8), axis=2, bitorder="little")
    assert not bits[:, :, 60:].any()
    return bits[:, :, :60].reshape(steps, 10, 10, 6).astype(bool)


def replay(episode: Episode, masks: bytes) -> npt.NDArray[np.bool_]:
    """Plays the episode again; checks all but the observations, which it returns."""
    trace = _engine.trace(_originals.game(episode.game), masks, episode.seed, bytes(episode.chosen), episode.sticky)
    rows, rewards, executed, terminal = trace
    assert list(executed) == episode.executed
    assert np.frombuffer(rewards, "<i4").tolist() == episode.rewards
    assert terminal == episode.terminal
    return channels_of(rows, len(episode.chosen) + 1)


def check(episode: Episode) -> None:
    """Every native channel, by itself and under masks that mix them."""
    states = np.stack(episode.states)
    count = states.shape[3]
    for first in range(0, count, 6):
        masks = bytes(1 << (c - first) if first <= c < first + 6 else 0 for c in range(count))
        seen = replay(episode, masks)
        np.testing.assert_array_equal(seen[..., : min(6, count - first)], states[..., first : first + 6])
    mixed = np.random.default_rng(episode.seed).integers(0, 64, count)
    lights = (mixed[:, None] >> np.arange(6)) & 1
    np.testing.assert_array_equal(replay(episode, bytes(mixed.tolist())), states.astype(np.int64) @ lights > 0)


def sweep(game: str, policies: tuple[Policy, ...], first_seed: int, episodes: int, limit: int = STEPS) -> Counter[str]:
    events: Counter[str] = Counter()
    for i in range(episodes):
        check(play(game, policies[i % len(policies)], first_seed + i, events, limit=limit))
    return events

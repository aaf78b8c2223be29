"""The five original games against the installed MinAtar, black box: whole episodes, every step, every channel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from minatar import Environment
from originals_policies import SKILLED, Policy, always, restless, uniform

from weightgym.rewards.weight_program import _engine, _originals
from weightgym.rewards.weight_program.channels import CHANNEL_MAPS, channel_masks

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
    row, stands = game.pos, game.move_timer > 0

    def after(reward: int) -> Iterator[str]:
        if reward:
            yield "win"
        elif game.pos == 9 and row < 8:
            yield "hit while standing" if stands else "hit while walking"
        if game.terminal:
            yield "time up"

    return after


def watch_seaquest(game: Any) -> After:
    divers, oxygen, row = game.diver_count, game.oxygen, game.sub_y
    bullets = [(bullet, bullet[0]) for bullet in game.f_bullets]
    enemies = len(game.e_subs) + len(game.e_fish)
    enemy_due = game.e_spawn_timer == 0

    def after(reward: int) -> Iterator[str]:
        if game.surface and row > 0:
            yield "surfaced with six" if divers == 6 and reward else "surfaced in debt" if divers < 0 else "surfaced"
            if game.terminal and oxygen <= 0:
                yield "surfaced too late"
        if game.terminal and not game.surface:
            if game.sub_y == 0 and game.diver_count == 0:
                yield "surfaced empty"
            elif oxygen <= 0:
                yield "drowned"
            else:
                yield "caught"
        if game.terminal and reward:
            yield "reward in the last step"
        if any(abs(bullet[0] - x) > 1 for bullet, x in bullets):
            yield "removed by value"  # its equal went, and it flew on
        left = any(diver[:2] == [game.sub_x, game.sub_y] for diver in game.divers)
        if divers == 5 and game.diver_count == 6 and left:
            yield "one seat for two"
        if enemy_due and enemies and len(game.e_subs) + len(game.e_fish) == enemies and not reward:
            yield "no room for an enemy"

    return after


def watch_space_invaders(game: Any) -> After:
    aliens, on_floor = np.count_nonzero(game.alien_map), bool(game.alien_map[9].any())
    last_row = not game.alien_map[:9].any()

    def after(reward: int) -> Iterator[str]:
        if aliens == reward:
            yield "wave cleared"
        if on_floor and game.terminal and game.alien_map[0].any():
            yield "last row came out on top" if last_row else "floor came out on top"
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
    mixed = np.asarray(np.random.default_rng(episode.seed).integers(0, 64, size=count), np.int64)
    lights = (mixed[:, None] >> np.arange(6)) & 1
    np.testing.assert_array_equal(replay(episode, bytes(mixed.tolist())), states.astype(np.int64) @ lights > 0)


def sweep(game: str, policies: tuple[Policy, ...], first_seed: int, episodes: int) -> Counter[str]:
    events: Counter[str] = Counter()
    for i in range(episodes):
        check(play(game, policies[i % len(policies)], first_seed + i, events))
    return events


#: Rare paths, and how often the sweep of skilled play must at least have reached them.
REACHED: dict[str, dict[str, int]] = {
    "asterix": {"gold": 50, "gold when the rest moved": 50, "death": 2, "death when enemies moved": 2},
    "breakout": {"wall rebuilt": 8, "ball among bricks": 4, "corner": 50, "paddle": 100},
    "freeway": {"win": 100, "hit while standing": 50, "hit while walking": 20, "time up": 8},
    "seaquest": {
        "surfaced with six": 20,
        "surfaced in debt": 50,
        "surfaced too late": 2,
        "surfaced empty": 1,
        "drowned": 2,
        "caught": 2,
        "removed by value": 2,
        "no room for an enemy": 20,
        "one seat for two": 2,
    },
    "space_invaders": {
        "wave cleared": 8,
        "stood on the floor": 100,
        "floor came out on top": 5,
        "last row came out on top": 2,
        "reward in the last step": 1,
    },
}
EPISODES = {"asterix": 40, "breakout": 80, "freeway": 15, "seaquest": 150, "space_invaders": 120}


@pytest.mark.parametrize("game", GAMES)
def test_skilled_play_reaches_the_rare_paths_and_is_equal(game: str) -> None:
    events = sweep(game, (*SKILLED[game], uniform), 1729, EPISODES[game])
    assert {name: events[name] for name, least in REACHED[game].items() if events[name] < least} == {}


@pytest.mark.parametrize("sticky", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("game", GAMES)
def test_thoughtless_play_is_equal(game: str, sticky: float) -> None:
    for seed in (0, 1, 1729, 2**31, 2**32 - 1) if game != "freeway" else (2**32 - 1,):
        for policy in (uniform, restless()):
            check(play(game, policy, seed, Counter(), sticky=sticky))


@pytest.mark.parametrize("action", range(6))
@pytest.mark.parametrize("game", GAMES)
def test_one_action_for_ever_is_equal(game: str, action: int) -> None:
    check(play(game, always(action), 7919 + action, Counter(), limit=1500))


@pytest.mark.nightly
@pytest.mark.parametrize("game", GAMES)
def test_a_thousand_episodes_are_equal(game: str) -> None:
    constants = tuple(always(action) for action in range(6))
    events = sweep(game, (*SKILLED[game], uniform, restless(), *constants), 1729, 1000)
    assert events["episodes"] == 1000
    assert {name for name in REACHED[game] if not events[name]} == set()


# The door


def test_masks_list_every_native_channel() -> None:
    assert _originals.names() == GAMES == tuple(sorted(CHANNEL_MAPS))
    for game in GAMES:
        environment = Environment(game, 0.1, difficulty_ramping=False)
        assert tuple(environment.env.channels) == tuple(CHANNEL_MAPS[game])
        assert len(channel_masks(game)) == environment.state_shape()[2]


@pytest.mark.parametrize("name", ["", "Breakout", "breakout ", "breakout\0", "pong", "bréakout", "\ud800", "a" * 9999])
def test_an_unknown_game_is_named(name: str) -> None:
    with pytest.raises(KeyError) as caught:
        _originals.game(name)
    assert repr(name) in caught.value.args[0]


@pytest.mark.parametrize("name", [b"breakout", None, 3, ["breakout"]])
def test_a_name_is_a_string(name: Any) -> None:
    with pytest.raises(TypeError, match="name: want a string"):
        _originals.game(name)

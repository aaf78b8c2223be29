"""The test menu of the built-in games: what each one promises, checked on every one."""

from __future__ import annotations

import ast
import hashlib

import numpy as np
import pytest

from weightgym.envs.weight_program.references import reference_answer
from weightgym.envs.weight_program.tasks import SOURCE
from weightgym.rewards.weight_program import baselines, builtin, simulate, variants
from weightgym.rewards.weight_program.channels import CHANNEL_MAPS, channel_masks
from weightgym.rewards.weight_program.edits import parse_edits
from weightgym.rewards.weight_program.games import GAMES, kit
from weightgym.rewards.weight_program.network import unpack, zero_weights
from weightgym.rewards.weight_program.plain_game import PlainGame
from weightgym.rewards.weight_program.profile import profile
from weightgym.rewards.weight_program.scorer import score

WPB = profile("wpb-v1")
EPISODES = 20  # of each policy, whole


def choices(policy: str, seed: int, count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    rng = np.random.default_rng(seed)
    if policy == "uniform":
        return rng.integers(0, 6, size=count)
    if policy == "restless":  # a random action, held for six steps
        return np.repeat(rng.integers(0, 6, size=count // 6 + 1), 6)[:count]
    return np.full(count, seed % 6)


def play_plainly(game: str, seed: int, actions: list[int]) -> tuple[list[bytes], list[int], bool]:
    """Observations (packed), rewards, and whether the episode ended by itself."""
    plain = PlainGame(game, sticky=0.1)
    plain.seed(seed)
    plain.reset()
    seen, rewards, over = [plain.state().tobytes()], [], False
    for action in actions:
        reward, over = plain.act(action)
        seen.append(plain.state().tobytes())
        rewards.append(reward)
        if over:
            break
    return seen, rewards, over


def check_plain_is_compiled(game: str, seed: int, actions: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
    """One whole episode: every observation and reward, and that it ends by itself."""
    engine, _ = simulate.find_engine()
    assert engine is not None
    rows, rewards, _, terminal = engine.loop.trace(
        engine.game(game), channel_masks(game), seed, actions.astype(np.uint8).tobytes(), 0.1
    )
    seen, wanted, over = play_plainly(game, seed, actions.tolist())
    assert over
    assert terminal
    assert np.frombuffer(rewards, np.int32).tolist() == wanted
    assert [board.tobytes() for board in unpack(np.frombuffer(rows, np.uint64))] == seen


@pytest.mark.parametrize("policy", ["uniform", "restless", "constant"])
@pytest.mark.parametrize("game", GAMES)
def test_plain_run_is_the_compiled_run(game: str, policy: str) -> None:
    for seed in range(EPISODES):
        check_plain_is_compiled(game, seed, choices(policy, seed, WPB.max_actions))


@pytest.mark.parametrize("game", GAMES)
def test_channels_are_what_the_file_says(game: str) -> None:
    """Exactly the declared channels are ever lit; the player is always somewhere on the board but when it is over."""
    declared = sorted(builtin.module(game).CHANNELS)
    lit = np.zeros(6, np.bool_)
    for seed in range(EPISODES):
        for policy in ("uniform", "restless"):
            seen, _, _ = play_plainly(game, seed, choices(policy, seed, 400).tolist())
            boards = np.array([np.frombuffer(board, np.bool_).reshape(10, 10, 6) for board in seen])
            lit |= boards.any(axis=(0, 1, 2))
            assert boards[:-1, :, :, kit.PLAYER].any(axis=(1, 2)).all()
    for index in range(6):  # skilled play sees what chance does not
        trace = simulate.record_episode(game, reference_weights(game), WPB, index)
        lit |= trace.observations.any(axis=(0, 1, 2))
    assert np.flatnonzero(lit).tolist() == declared


def reference_weights(game: str) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return parse_edits(reference_answer(game)).weights


@pytest.mark.parametrize("game", GAMES)
def test_chance_and_constants_score_little_and_the_reference_a_lot(game: str) -> None:
    cap = builtin.module(game).CAP
    assert baselines.uniform(game) < 0.05 * cap
    assert baselines.best_constant(game) < 0.15 * cap
    assert simulate.simulate(game, zero_weights(), WPB).lengths.max() < WPB.max_actions  # it ends by itself
    result = score(SOURCE.task(f"builtin/{game}", prompt=False), reference_answer(game))
    assert result.status == "ok"
    assert result.reward is not None
    assert result.reward >= 0.3


@pytest.mark.parametrize("game", GAMES)
def test_engine_is_the_reference_on_skilled_play(game: str) -> None:
    weights, rules = reference_weights(game), profile("wpb-v1-e4")
    fast = simulate.simulate(game, weights, rules, backend="engine", threads=2)
    slow = simulate.simulate(game, weights, rules, backend="reference")
    assert np.array_equal(fast.scores, slow.scores)
    assert np.array_equal(fast.lengths, slow.lengths)


def test_no_two_games_share_their_dynamics() -> None:
    traces = {}
    for game in GAMES:
        digest = hashlib.sha256()
        for seed in range(100):
            seen, rewards, _ = play_plainly(game, seed, choices("uniform", seed, 40).tolist())
            digest.update(b"".join(seen) + bytes(str(rewards), "ascii"))
        traces[game] = digest.hexdigest()
    assert len(set(traces.values())) == len(GAMES)


@pytest.mark.parametrize("game", GAMES)
def test_files_are_short_readable_and_say_what_they_are(game: str) -> None:
    text, module = builtin.source(game), builtin.module(game)
    assert 40 <= len(text.splitlines()) <= 150
    assert ast.get_docstring(ast.parse(text))
    assert module.FAMILY in ("atari_style", "arcade_style")
    assert isinstance(module.CAP, int)
    assert 0 < module.STATE <= 512
    assert set(module.CHANNELS) <= set(range(6))
    assert game not in CHANNEL_MAPS
    prompt = SOURCE.task(f"builtin/{game}").prompt[0].content
    assert text.strip() in prompt
    for meaning in module.CHANNELS.values():
        assert meaning in prompt


@pytest.mark.parametrize("game", GAMES)
def test_what_varies_is_declared_and_named(game: str) -> None:
    """Prose says the constant's name, so that it holds for every variant; each variant is another game."""
    module = builtin.module(game)
    assert len(list(variants.names(game, module.VARY))) >= 2
    prose = (module.__doc__ or "") + str(module.CHANNELS)
    for name, values in module.VARY.items():
        assert f"`{name}`" in prose
        assert getattr(module, name) not in values
        assert len(set(values)) == len(values)
    sources = {builtin.source(name) for name in (game, *variants.names(game, module.VARY))}
    assert len(sources) == 1 + len(list(variants.names(game, module.VARY)))


@pytest.mark.parametrize("game", GAMES)
def test_extreme_variants_run_plainly_and_compiled_alike(game: str) -> None:
    vary = builtin.module(game).VARY
    first, last = (variants.name(game, {name: vary[name][pick] for name in vary}) for pick in (0, -1))
    for seed in range(3):
        actions = choices("restless", seed, WPB.max_actions)
        assert play_plainly(first, seed, actions.tolist())[2]
        check_plain_is_compiled(last, seed, actions)

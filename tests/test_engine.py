"""The engine against the readable reference: the same bits in every episode, whatever must not matter."""

from __future__ import annotations

import ctypes
import ctypes.util
import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from played_in import dense_policy, played_in_policy

from weightgym.rewards.contracts import GraderError
from weightgym.rewards.weight_program import _engine, _originals, reference, selftest, simulate
from weightgym.rewards.weight_program.channels import CHANNEL_MAPS, channel_masks
from weightgym.rewards.weight_program.edits import parse_edits
from weightgym.rewards.weight_program.network import PARAMETERS, Weights, tensors, zero_weights
from weightgym.rewards.weight_program.profile import Profile, profile

GAMES = sorted(CHANNEL_MAPS)
POLICIES = ("zero", "dense", "played-in")
WPB = profile("wpb-v1")

#: Zero weights, 1,000 episodes: (sum of scores, sum of lengths). Freeway's own were recorded from the reference.
ANCHORS = {
    "breakout": (482, 10_910),
    "asterix": (500, 68_896),
    "seaquest": (98, 29_529),
    "space_invaders": (2_721, 49_871),
    "freeway": (136, 2_501_000),
}


def policy(name: str, game: str) -> Weights:
    if name == "zero":
        return zero_weights()
    return dense_policy() if name == "dense" else played_in_policy(game)


def reference_run(game: str, weights: Weights, rules: Profile, indices: range) -> list[tuple[int, int]]:
    return [reference.play(game, weights, rules, index) for index in indices]


def engine_run(game: str, weights: Weights, indices: range) -> list[tuple[int, int]]:
    run = simulate.simulate(game, weights, WPB, backend="engine")
    return [(int(run.scores[i]), int(run.lengths[i])) for i in indices]


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("kernel", _engine.kernels())
def test_anchors(game: str, kernel: str) -> None:
    run = simulate.simulate(game, zero_weights(), WPB, backend="engine", kernel=kernel)
    assert (int(run.scores.sum()), int(run.lengths.sum())) == ANCHORS[game]


@pytest.mark.slow
@pytest.mark.parametrize("quarter", range(4))
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("game", GAMES)
def test_engine_is_the_reference(game: str, name: str, quarter: int) -> None:
    """Each episode's score and length: all 1,000, but of Freeway and long Seaquest runs the first 60,000 steps."""
    weights = policy(name, game)
    episodes = WPB.episodes
    if game in ("freeway", "seaquest"):
        steps = np.cumsum(simulate.simulate(game, weights, WPB, backend="engine").lengths)
        episodes = int(np.searchsorted(steps, 60_000))
    indices = range(quarter * episodes // 4, (quarter + 1) * episodes // 4)
    assert reference_run(game, weights, WPB, indices) == engine_run(game, weights, indices)


@pytest.mark.nightly
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("game", GAMES)
def test_engine_is_the_reference_in_all_episodes(game: str, name: str) -> None:
    weights = policy(name, game)
    indices = range(WPB.episodes)
    assert reference_run(game, weights, WPB, indices) == engine_run(game, weights, indices)


@pytest.mark.parametrize("game", GAMES)
def test_threads_and_kernels_do_not_matter(game: str) -> None:
    weights = dense_policy(3)
    rules = profile("wpb-v1-e100") if game == "freeway" else WPB
    first = simulate.simulate(game, weights, rules, backend="engine")
    for threads, kernel in ((2, None), (7, None), (1, "baseline"), (3, "baseline")):
        again = simulate.simulate(game, weights, rules, threads=threads, backend="engine", kernel=kernel)
        assert np.array_equal(first.scores, again.scores)
        assert np.array_equal(first.lengths, again.lengths)


def test_runs_side_by_side_do_not_disturb_each_other() -> None:
    wanted = {game: simulate.simulate(game, dense_policy(), profile("wpb-v1-e64")).scores.tobytes() for game in GAMES}
    got: dict[tuple[str, int], bytes] = {}

    def work(game: str, number: int) -> None:
        got[game, number] = simulate.simulate(game, dense_policy(), profile("wpb-v1-e64"), threads=2).scores.tobytes()

    threads = [threading.Thread(target=work, args=(game, number)) for game in GAMES for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == {(game, number): wanted[game] for game in GAMES for number in range(3)}


@pytest.mark.parametrize("episodes", [1, 15, 16, 17, 999])
def test_a_shorter_profile_is_a_prefix(episodes: int) -> None:
    whole = simulate.simulate("space_invaders", dense_policy(), WPB)
    part = simulate.simulate("space_invaders", dense_policy(), profile(f"wpb-v1-e{episodes}"), threads=2)
    assert np.array_equal(part.scores, whole.scores[:episodes])
    assert np.array_equal(part.lengths, whole.lengths[:episodes])


def weights_and_observations() -> st.SearchStrategy[tuple[Weights, npt.NDArray[np.bool_]]]:
    """Weights of many magnitudes (overflowing float32 sums too), sparse and dense; observations likewise."""

    def build(
        seed: int, exponent: float, weight_density: float, density: float
    ) -> tuple[Weights, npt.NDArray[np.bool_]]:
        rng = np.random.default_rng(seed)
        wide = rng.normal(size=PARAMETERS) * 10.0**exponent * (rng.random(PARAMETERS) < weight_density)
        weights = np.clip(wide, -3.4e38, 3.4e38).astype(np.float32)
        return weights, rng.random((10, 10, 6)) < density

    return st.builds(
        build,
        st.integers(0, 2**32 - 1),
        st.floats(-44, 38.5),
        st.sampled_from([0.0, 0.01, 0.5, 1.0]),
        st.sampled_from([0.0, 0.02, 0.1, 0.5, 1.0]),
    )


@settings(max_examples=300, deadline=None)
@given(weights_and_observations(), st.sampled_from(_engine.kernels()))
def test_softmax_sums_are_the_reference(case: tuple[Weights, npt.NDArray[np.bool_]], kernel: str) -> None:
    weights, observation = case
    wide = {name: tensor.astype(np.float64) for name, tensor in tensors(weights).items()}
    bits = observation.reshape(10, 60).astype(np.uint64) << np.arange(60, dtype=np.uint64)
    got = np.frombuffer(
        _engine.cumulative(weights.tobytes(), np.bitwise_or.reduce(bits, axis=1).tobytes(), kernel), np.float64
    )
    assert got.tolist() == reference.softmax_sums(wide, observation)


def test_hidden_constants_of_a_policy_do_not_take_the_short_cut_wrongly() -> None:
    """A policy whose logits can't depend on the input is evaluated once; one stray weight must end that."""
    for name in ("W1", "W2", "W3"):
        weights = dense_policy(5)
        tensors(weights)[name][:] = 0
        indices = range(200)
        assert reference_run("breakout", weights, WPB, indices) == engine_run("breakout", weights, indices)
        tensors(weights)[name][-1, -1] = 2.0
        assert reference_run("breakout", weights, WPB, indices) == engine_run("breakout", weights, indices)


FLUSH_SUBNORMALS, ROUND_UP, ROUND_TO_ZERO = 0x8040, 0x4000, 0x6000  # bits of x86's MXCSR register


@contextmanager
def floating_point_mode(bits: int) -> Iterator[None]:
    """What ``torch.set_flush_denormal`` and the like leave behind in a thread."""
    libm = ctypes.CDLL(ctypes.util.find_library("m"))
    modes = (ctypes.c_uint32 * 8)()
    assert libm.fegetenv(modes) == 0
    saved = bytes(modes)
    modes[7] |= bits
    assert libm.fesetenv(modes) == 0
    try:
        yield
    finally:
        assert libm.fesetenv(saved) == 0


def subnormal_policy() -> Weights:
    """Its play hangs on weights that are subnormal float32 numbers, multiplied up by huge ones."""
    weights, rng = zero_weights(), np.random.default_rng(0)
    net = tensors(weights)
    net["W1"][:] = rng.choice([-1e-39, 1e-39], size=net["W1"].shape)
    net["W2"][:] = rng.choice([-1e38, 1e38], size=net["W2"].shape)
    net["W3"][:] = rng.normal(scale=2, size=net["W3"].shape)
    return weights


@pytest.mark.skipif(platform.machine() != "x86_64", reason="sets modes through x86's own register")
@pytest.mark.parametrize("bits", [FLUSH_SUBNORMALS, ROUND_UP, ROUND_TO_ZERO])
def test_a_program_s_floating_point_mode_does_not_matter(bits: int) -> None:
    weights, rules = subnormal_policy(), profile("wpb-v1-e200")
    game, masks, inputs = _originals.game("breakout"), channel_masks("breakout"), np.array([5, 0x3F000001], np.uint32)
    answer = (
        "```edits\n" + "\n".join(f"{n} = {t.astype(float).tolist()}" for n, t in tensors(weights).items()) + "\n```"
    )

    def everything() -> list[object]:
        runs = [simulate.simulate("breakout", weights, rules, threads=threads).scores.tobytes() for threads in (1, 2)]
        return [
            runs,
            parse_edits(answer).weights.tobytes(),
            reference.play("breakout", weights, rules, 0),
            _engine.record(game, masks, weights.tobytes(), 0, 1729, 7919, 0.1, 10_000, None),
            _engine.cumulative(weights.tobytes(), np.full(10, (1 << 60) - 1, np.uint64).tobytes(), None),
            _engine.rounded(False, inputs.tobytes(), None),
            _engine.sweep(False, 0x3F000000, 0x3F010000, None),
            _engine.sweep(False, 1, 10_000, None),
        ]

    wanted = everything()
    assert np.array_equal(parse_edits(answer).weights, weights)
    assert not np.array_equal(weights, np.zeros_like(weights))
    with floating_point_mode(bits):
        got = everything()
        still_set = ctypes.CDLL(ctypes.util.find_library("m"))
        modes = (ctypes.c_uint32 * 8)()
        still_set.fegetenv(modes)
    assert got == wanted
    assert modes[7] & bits == bits  # the program's own modes are put back


def test_selftest_sample_is_right_and_can_fail() -> None:
    rows = selftest.run(full=False, progress=lambda done: None)
    assert {row.name.split()[0] for row in rows} == {"tanh", "exp"}
    assert all(row.wrong == 0 and row.checked > 2000 for row in rows)

    class Sloppy:
        """NumPy's float32 functions, which misround."""

        def kernels(self) -> list[str]:
            return ["numpy"]

        def rounded(self, exponential: bool, values: npt.NDArray[np.float32], kernel: str) -> bytes:
            return bytes((np.exp if exponential else np.tanh)(values).astype(np.float32).tobytes())

    assert sum(row.wrong for row in selftest.sample(Sloppy())) > 0


def test_sweep_covers_both_signs_and_counts() -> None:
    one = 0x3F800000
    assert _engine.sweep(False, one, one + 99_999, None) == 0
    assert _engine.sweep(True, 0x80000000 | one, (0x80000000 | one) + 99_999, "baseline") == 0


@pytest.mark.nightly
def test_every_float32_is_rounded_right() -> None:
    rows = selftest.run(full=True, progress=lambda done: None, threads=2)
    assert all(row.wrong == 0 for row in rows)
    assert {row.name.split()[0]: row.checked for row in rows} == {"tanh": 2 * 0x41104001, "exp": 0x42AE0001}


@pytest.mark.parametrize("game", GAMES)
def test_a_recorded_episode_is_the_scored_one(game: str) -> None:
    weights = dense_policy(4)
    rules = profile("wpb-v1-e8")
    run = simulate.simulate(game, weights, rules)
    for index in (0, 7):
        trace = simulate.record_episode(game, weights, rules, index)
        steps = list(reference.episode(game, weights, rules, index))
        assert trace.rewards.sum() == run.scores[index]
        assert len(trace.rewards) == run.lengths[index] == len(steps)
        assert trace.actions.tolist() == [step.action for step in steps]
        assert trace.executed.tolist() == [step.executed for step in steps]
        assert np.array_equal(trace.observations[:-1], np.array([step.observation for step in steps]))
        assert trace.terminal == steps[-1].terminal
        assert np.allclose(trace.probabilities.sum(axis=1), 1.0)


def test_without_the_engine_the_reference_scores_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    weights, rules = dense_policy(), profile("wpb-v1-e20")
    wanted = simulate.simulate("breakout", weights, rules)
    recorded = simulate.record_episode("breakout", weights, rules, 3)
    monkeypatch.setattr(simulate, "find_engine", lambda: (None, "no compiler"))
    with pytest.warns(simulate.EngineMissingWarning, match=r"no compiler.*hundreds of times slower"):
        got = simulate.simulate("breakout", weights, rules)
    assert np.array_equal(got.scores, wanted.scores)
    assert np.array_equal(got.lengths, wanted.lengths)
    with pytest.warns(simulate.EngineMissingWarning):
        again = simulate.record_episode("breakout", weights, rules, 3)
    assert all(np.array_equal(vars(recorded)[name], vars(again)[name]) for name in vars(recorded))
    with pytest.raises(GraderError, match="install a C\\+\\+17 compiler"):
        simulate.simulate("breakout", weights, rules, backend="engine")

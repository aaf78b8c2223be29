"""The engine under arguments and callers that mean it no good."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest
from played_in import dense_policy

from weightgym.rewards.weight_program import _engine, _originals, simulate
from weightgym.rewards.weight_program.channels import channel_masks
from weightgym.rewards.weight_program.network import PARAMETERS, zero_weights
from weightgym.rewards.weight_program.profile import profile

WPB = profile("wpb-v1")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": np.zeros(5, np.float32)}, "want float32 of shape"),
        ({"weights": np.zeros(PARAMETERS)}, "want float32 of shape"),
        ({"weights": np.full(PARAMETERS, np.nan, np.float32)}, "not finite"),
        ({"kernel": "abacus"}, "no kernel abacus"),
        ({"threads": 0}, "threads must be 1 or more, not 0"),
    ],
)
def test_bad_arguments_are_refused(change: dict[str, object], message: str) -> None:
    arguments = {"game": "breakout", "weights": zero_weights(), "profile": WPB, "backend": "engine"} | change
    with pytest.raises(ValueError, match=message):
        simulate.simulate(**arguments)  # type: ignore[arg-type]


def test_bad_games_masks_and_actions_are_refused() -> None:
    masks = channel_masks("breakout")
    with pytest.raises(KeyError, match="pong"):
        _originals.game("pong")
    game = _originals.game("breakout")
    with pytest.raises(ValueError, match="4 native channels, got 3"):
        _engine.trace(game, masks[:3], 0, b"", 0.1)
    with pytest.raises(ValueError, match="six bits"):
        _engine.trace(game, b"\x40\0\0\0", 0, b"", 0.1)
    with pytest.raises(ValueError, match="action 1 is 6"):
        _engine.trace(game, masks, 0, b"\0\6", 0.1)
    with pytest.raises(ValueError, match=r"incorrect name|invalid PyCapsule"):
        _engine.trace(object(), masks, 0, b"", 0.1)


def test_what_another_thread_writes_into_a_buffer_does_not_reach_the_games() -> None:
    game, masks = _originals.game("freeway"), bytearray(channel_masks("freeway"))
    actions, stop = bytearray(100_000), threading.Event()

    def scribble() -> None:
        while not stop.is_set():
            actions[:] = b"\xff" * len(actions)
            actions[:] = bytes(len(actions))

    writer = threading.Thread(target=scribble)
    writer.start()
    try:
        for _ in range(200):
            try:
                executed = _engine.trace(game, masks, 1, actions, 0.0)[2]
            except (ValueError, BufferError):
                continue
            assert set(executed) <= set(range(6))
    finally:
        stop.set()
        writer.join()


def test_a_daemon_thread_that_still_plays_does_not_crash_the_exit() -> None:
    script = (
        "import threading, time\n"
        "from weightgym.rewards.weight_program.simulate import simulate\n"
        "from weightgym.rewards.weight_program.network import zero_weights, tensors\n"
        "from weightgym.rewards.weight_program.profile import profile\n"
        "weights = zero_weights(); [t.fill(0.01) for t in tensors(weights).values()]\n"
        "def play():\n"
        "    while True: simulate('breakout', weights, profile('wpb-v1'))\n"
        "threads = [threading.Thread(target=play, daemon=True) for _ in range(3)]\n"
        "[t.start() for t in threads]; time.sleep(0.3)\n"
    )
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("seed", [-1, 2**32, 2**64 + 1])
def test_seeds_and_probabilities_that_do_not_fit_are_refused(seed: int) -> None:
    game, masks, weights = _originals.game("breakout"), channel_masks("breakout"), zero_weights().tobytes()
    for seeds in ((seed, 0), (0, seed)):
        with pytest.raises(OverflowError):
            _engine.run(game, masks, weights, 0, 1, *seeds, 0.1, 10, 1, None)
    with pytest.raises(OverflowError):
        _engine.trace(game, masks, seed, b"", 0.1)
    for sticky in (float("nan"), float("inf"), -0.1, 1.1):
        with pytest.raises(ValueError, match="sticky is a probability"):
            _engine.run(game, masks, weights, 0, 1, 0, 0, sticky, 10, 1, None)
        with pytest.raises(ValueError, match="sticky is a probability"):
            _engine.trace(game, masks, 0, b"", sticky)


def test_hostile_numbers_are_refused_before_they_cost_anything() -> None:
    game, masks, weights = _originals.game("seaquest"), channel_masks("seaquest"), zero_weights().tobytes()
    for first, count, limit in (
        (-1, 1, 1),
        (0, -1, 1),
        (0, 1, -1),
        (0, 2**31 - 1, 1),
        (0, 1, 2**31 - 1),
        (2**31 - 1, 1, 1),
    ):
        with pytest.raises(ValueError, match="must be from 0 to 1000000"):
            _engine.run(game, masks, weights, first, count, 0, 0, 0.1, limit, 1, None)
    with pytest.raises(ValueError, match="at most 1000000 actions"):
        _engine.trace(game, masks, 0, bytes(1_000_001), 0.1)
    for threads in (-5, 0, 1000):
        scores, lengths = _engine.run(game, masks, weights, 0, 40, 0, 0, 0.1, 50, threads, None)
        assert len(scores) == 8 * 40
        assert np.frombuffer(lengths, np.int32).max() <= 50
    assert _engine.run(game, masks, weights, 0, 0, 0, 0, 0.1, 50, 2, None) == (b"", b"")


def test_weights_at_any_address() -> None:
    weights = dense_policy().tobytes()
    shifted = memoryview(b"\0" + weights)[1:]
    game, masks = _originals.game("breakout"), channel_masks("breakout")
    arguments = (0, 50, 1729, 7919, 0.1, 10_000, 1, None)
    assert _engine.run(game, masks, shifted, *arguments) == _engine.run(game, masks, weights, *arguments)

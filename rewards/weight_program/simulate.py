"""Plays policies: on the compiled engine, or, where it could not be built, on the slow reference."""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from weightgym.rewards.contracts import GraderError
from weightgym.rewards.weight_program import builtin, minatar, reference, selftest
from weightgym.rewards.weight_program.arithmetic import default_arithmetic
from weightgym.rewards.weight_program.channels import CHANNEL_MAPS, channel_masks
from weightgym.rewards.weight_program.network import ACTIONS, Weights, tensors, unpack
from weightgym.rewards.weight_program.profile import Profile

Backend = Literal["auto", "engine", "reference"]


class EngineMissingWarning(RuntimeWarning):
    """The compiled engine is not there: scores are the same, and hundreds of times slower."""


@dataclass(frozen=True)
class Engine:
    """The two extension modules: the loop (Apache-2.0) and the original games (GPL-3.0-only)."""

    loop: Any
    originals: Any

    def game(self, name: str) -> Any:
        """The game of that name as a capsule. A built-in game is compiled on first use.

        Raises:
            GraderError: it can't be compiled here.
        """
        return self.originals.game(name) if name in CHANNEL_MAPS else builtin.load(name, self.loop)


@dataclass(frozen=True)
class Episodes:
    """Scores (int64) and lengths (int32) of a profile's episodes, in order of their seeds."""

    scores: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int32]

    @property
    def mean_score(self) -> float:
        """An integer sum, divided once."""
        return int(self.scores.sum()) / len(self.scores)

    @property
    def mean_length(self) -> float:
        """Likewise."""
        return int(self.lengths.sum()) / len(self.lengths)


@dataclass(frozen=True)
class EpisodeTrace:
    """One episode of n steps, in full."""

    observations: npt.NDArray[np.bool_]  #: (n+1, 10, 10, 6), the last one after the last step
    actions: npt.NDArray[np.int64]  #: (n,) chosen, 0-5
    executed: npt.NDArray[np.int64]  #: (n,) after stickiness
    rewards: npt.NDArray[np.int64]  #: (n,)
    probabilities: npt.NDArray[np.float64]  #: (n, 6)
    terminal: bool  #: False when the episode was cut at the profile's limit


@functools.cache
def find_engine() -> tuple[Engine | None, str]:
    """The engine, or why there is none. It has passed the sample of the self-test."""
    try:
        from weightgym.rewards.weight_program import _engine, _originals
    except ImportError as error:
        return None, str(error)
    wrong = sum(row.wrong for row in selftest.sample(_engine))
    if wrong:
        return None, f"its arithmetic self-test found {wrong} wrong values on this processor"
    return Engine(_engine, _originals), ""


def simulate(
    game: str,
    weights: Weights,
    profile: Profile,
    *,
    threads: int = 1,
    backend: Backend = "auto",
    kernel: str | None = None,
) -> Episodes:
    """Play all episodes of a profile. The result has the same bits for every backend, kernel and number of threads.

    Args:
        game: one of the originals, or a built-in game.
        weights: flat float32 array of 20,486 finite values.
        threads: how many threads the engine uses.
        kernel: one of the engine's kernels (default: the fastest that this processor runs).

    Raises:
        GraderError: ``backend="engine"`` and there is none.
        ValueError: ``threads`` is under 1, there is no such kernel, or the weights are not what is wanted.
    """
    if threads < 1:
        raise ValueError(f"threads must be 1 or more, not {threads}")
    engine = pick_engine(backend, game)
    if engine is None:
        played = [reference.play(game, weights, profile, index) for index in range(profile.episodes)]
        return Episodes(np.array([p[0] for p in played], np.int64), np.array([p[1] for p in played], np.int32))
    scores, lengths = engine.loop.run(
        engine.game(game),
        channel_masks(game),
        contiguous(weights),
        0,
        profile.episodes,
        profile.env_seed,
        profile.action_seed,
        profile.sticky,
        profile.max_actions,
        threads,
        kernel,
    )
    return Episodes(np.frombuffer(scores, np.int64), np.frombuffer(lengths, np.int32))


def record_episode(game: str, weights: Weights, profile: Profile, episode: int) -> EpisodeTrace:
    """Play one episode and keep everything that can be shown."""
    engine = pick_engine("auto", game)
    if engine is None:
        return _record_on_reference(game, weights, profile, episode)
    rows, rewards, executed, terminal, chosen, sums = engine.loop.record(
        engine.game(game),
        channel_masks(game),
        contiguous(weights),
        episode,
        profile.env_seed,
        profile.action_seed,
        profile.sticky,
        profile.max_actions,
        None,
    )
    return EpisodeTrace(
        observations=unpack(np.frombuffer(rows, np.uint64)),
        actions=np.frombuffer(chosen, np.int8).astype(np.int64),
        executed=np.frombuffer(executed, np.int8).astype(np.int64),
        rewards=np.frombuffer(rewards, np.int32).astype(np.int64),
        probabilities=_probabilities(np.frombuffer(sums, np.float64).reshape(-1, ACTIONS)),
        terminal=terminal,
    )


def require_backend() -> None:
    """Check that something can score, before anything depends on it.

    Raises:
        TaskError: the engine is not there, and neither is MinAtar, which the reference needs.
    """
    if find_engine()[0] is None:
        minatar.source("breakout")


def pick_engine(backend: Backend, game: str) -> Engine | None:
    """The engine, or None for the reference (with a warning, unless that was asked for)."""
    if backend == "reference":
        return None
    engine, why = find_engine()
    if engine is None:
        message = f"the compiled WeightProgramBench engine is not available ({why})"
        fix = "install a C++17 compiler and reinstall weightgym"
    elif game in CHANNEL_MAPS or builtin.can_compile():
        return engine
    else:
        message, fix = "numba, which compiles the built-in games, is not installed", "pip install 'weightgym[games]'"
    if backend == "engine":
        raise GraderError(f"{message}: {fix}")
    text = f"{message}; the reference scorer runs instead, hundreds of times slower. To fix it: {fix}"
    warnings.warn(text, EngineMissingWarning, stacklevel=3)
    return None


def contiguous(weights: Weights) -> Weights:
    """The weights as the engine takes them; checks dtype and shape (``ValueError``)."""
    tensors(weights)
    return np.ascontiguousarray(weights)


def _record_on_reference(game: str, weights: Weights, profile: Profile, episode: int) -> EpisodeTrace:
    with default_arithmetic():
        steps = list(reference.episode(game, weights, profile, episode))
    return EpisodeTrace(
        observations=np.array([steps[0].observation] + [step.next_observation for step in steps]),
        actions=np.array([step.action for step in steps], np.int64),
        executed=np.array([step.executed for step in steps], np.int64),
        rewards=np.array([step.reward for step in steps], np.int64),
        probabilities=_probabilities(np.array([step.cumulative for step in steps])),
        terminal=steps[-1].terminal,
    )


def _probabilities(sums: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.diff(sums, axis=1, prepend=0.0) / sums[:, -1:]

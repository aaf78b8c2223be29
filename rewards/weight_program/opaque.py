"""Games that are Python classes of others: the loop and the policy are native, the game's own methods are Python calls.

A game is taken in the form of MinAtar's ``Env``: ``make()`` gives an object with ``reset()``, ``act(action) -> (reward,
terminal)``, ``state() -> 10×10×C`` booleans and the attribute ``random``, a ``RandomState`` that stickiness shares.

The classes are not ours: those that are not installed packages run in the sandbox (``snapshot/``), and this file with
them. So it imports nothing of ours.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from weightgym.rewards.weight_program.network import Weights
    from weightgym.rewards.weight_program.profile import Profile

Rng = np.random.RandomState
_REAL = np.random.RandomState

#: References to an object that one variable holds: the variable and the argument of ``getrefcount``.
_UNSHARED = 2

#: MinAtar's, of every game.
_ACTIONS = 6

#: Episodes and actions of the test that decides whether a game may use the pool.
_TEST_EPISODES, _TEST_ACTIONS = 8, 200


class OpaqueGame(Protocol):
    """What a game has to offer."""

    random: Rng

    def reset(self) -> Any:
        """Start an episode, drawing from ``random``."""

    def act(self, action: int) -> tuple[float, bool]:
        """Play an action, 0-5; reward, and whether the episode is over."""

    def state(self) -> npt.NDArray[np.bool_]:
        """What is lit, (10, 10, channels)."""


Make = Callable[[], OpaqueGame]
Start = Callable[[int], tuple[OpaqueGame, Rng]]


def start(make: Make) -> Start:
    """Episodes as MinAtar's wrapper starts them: a new game, ``random`` set from the seed, then ``reset()``.

    The generator of the last episode is used again if nothing else holds it any more.
    """
    random = _REAL(0)

    def begin(seed: int) -> tuple[OpaqueGame, Rng]:
        nonlocal random
        game = make()
        if sys.getrefcount(random) > _UNSHARED:
            random = _REAL(seed)
        else:
            random.seed(seed)
        game.random = random
        game.reset()
        return game, random

    return begin


def play(
    loop: Any, begin: Start, masks: bytes, weights: Weights, profile: Profile, *, first: int, count: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]:
    """Scores and lengths of episodes ``first`` to ``first + count - 1``. ``loop`` is the ``_engine`` module.

    Args:
        masks: the input channels (bits) of each of the game's own channels.

    Raises:
        TypeError, ValueError: the game's methods return something else than they should.
            What they raise themselves passes through.
    """
    scores, lengths = loop.run_opaque(
        begin,
        masks,
        weights,
        first,
        count,
        profile.env_seed,
        profile.action_seed,
        profile.sticky,
        profile.max_actions,
        None,
    )
    return np.frombuffer(scores, np.float64), np.frombuffer(lengths, np.int32)


class _Pool:
    """Generators to be used again in the next episode: making one costs more than a short episode."""

    def __init__(self) -> None:
        self._made: list[Rng] = []
        self._lent = 0

    def new_episode(self) -> None:
        """All generators are free again: the game that had them is gone."""
        self._lent = 0

    def lend(self, seed: Any = None) -> Rng:
        """In place of ``RandomState(seed)``. Without a seed it is in any state, as an unseeded one is too."""
        if self._lent == len(self._made):
            self._made.append(_REAL(0))
        random = self._made[self._lent]
        self._lent += 1
        if seed is not None:
            random.seed(seed)
        return random


@contextmanager
def pooled(make: Make) -> Iterator[Start]:
    """Episodes like ``start``'s, of one game at a time, that reuse generators.

    Meanwhile ``numpy.random.RandomState`` is replaced in the whole process: for processes that do nothing else.
    """
    pool, begin = _Pool(), start(make)

    def begin_pooled(seed: int) -> tuple[OpaqueGame, Rng]:
        pool.new_episode()
        return begin(seed)

    np.random.RandomState = pool.lend  # type: ignore[misc, assignment]
    try:
        yield begin_pooled
    finally:
        np.random.RandomState = _REAL  # type: ignore[misc]


def may_pool(make: Make) -> bool:
    """Whether the game plays the same with pooled generators: every observation and reward of a few random episodes."""
    try:
        wanted = [_story(start(make), seed) for seed in range(_TEST_EPISODES)]
        with pooled(make) as begin:
            return all(_story(begin, seed) == story for seed, story in enumerate(wanted))
    except Exception:  # it minds the stand-in, or is broken: then playing it says how
        return False


def _story(begin: Start, seed: int) -> list[bytes]:
    game, random = begin(seed)
    actions: Sequence[int] = _REAL(seed + 1000).randint(_ACTIONS, size=_TEST_ACTIONS).tolist()
    told = [np.ascontiguousarray(game.state()).tobytes()]
    for action in actions:
        reward, over = game.act(action)
        told.append(np.ascontiguousarray(game.state()).tobytes() + repr((float(reward), bool(over))).encode())
        if over:
            break
    return [*told, repr(random.random_sample()).encode()]

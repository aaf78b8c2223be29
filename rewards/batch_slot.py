"""One worker process of a batch, and what its ends mean."""

from __future__ import annotations

import os
import pickle
import queue
import signal
import time
from collections.abc import Iterable
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext
from multiprocessing.synchronize import RLock
from typing import Any

from pebble import ProcessExpired, ProcessPool

from weightgym.rewards.batch_worker import probe, start_worker, work
from weightgym.rewards.contracts import GraderError, Score

Key = int | str

#: How often an item is given to a process that ends without a trace, before the item gets the blame.
_TRIES = 2
#: How many processes in a row may end before the first of a slot has scored anything.
_STARTS = 4


@dataclass
class Flight:
    """An item on its way: its key, its pickled work, and the profile it is scored under."""

    key: Key
    payload: bytes
    profile: str
    started: float = 0.0
    tries: int = 0


#: An item's key and its score.
Result = tuple[Key, Score]


def timeout_score(what: str, limit: float, *, profile: str, seconds: float = 0.0) -> Score:
    """The ``timeout`` score of a limit of ours (``what``: item or batch)."""
    reason = f"{what}_timeout: not scored within {limit:g} s, a limit of ours"
    return Score(
        status="timeout", reward=None, reason=reason, info={"limit_s": limit}, profile=profile, seconds=seconds
    )


class _Context(ForkServerContext):
    """Starts processes from a clean fork server, and keeps the locks of a pool for as long as it lives itself.

    The pool drops its locks before it ends its processes; one that was just starting would fail to find them, loudly.
    """

    def __init__(self) -> None:
        super().__init__()
        self._locks: list[RLock] = []
        # With the imports done in the fork server, a process that was killed is replaced in milliseconds.
        self.set_forkserver_preload(["__main__", __name__])

    def RLock(self) -> RLock:
        """A lock that two processes can share."""
        lock = super().RLock()
        self._locks.append(lock)
        return lock


class Slot:
    """One worker process, started on first use and replaced when it ends, and the item that it has.

    Each process has a pool of its own. Processes of one pool share its locks, and one that is killed while it holds
    them would take the others down.
    """

    def __init__(
        self, scorers: tuple[str, ...], item_timeout: float | None, news: queue.SimpleQueue[tuple[Slot, Future[Any]]]
    ) -> None:
        self.flight: Flight | None = None
        self._scorers = scorers
        self._item_timeout = item_timeout
        self._news = news
        self._future: Future[bytes] | None = None
        self._probe: Future[None] | None = None
        self._false_starts: int | None = 0  # None once a process has shown that it runs
        self._open_pool()

    def _open_pool(self) -> None:
        self._context = _Context()
        initargs = (self._scorers, dict(os.environ))
        self._pool = ProcessPool(max_workers=1, initializer=start_worker, initargs=initargs, context=self._context)

    def start(self, flight: Flight) -> Result | None:
        """Give the process an item; its result when that fails for good."""
        self.flight = flight
        self._probe = None
        flight.started = time.monotonic()
        flight.tries += 1
        try:
            self._future = self._pool.schedule(work, args=(flight.payload,), timeout=self._item_timeout)
        except (RuntimeError, BrokenProcessPool) as error:  # it was killed while idle, or none can be started
            return self._lost(flight, error)
        self._future.add_done_callback(self._tell)
        return None

    def _tell(self, future: Future[Any]) -> None:
        self._news.put((self, future))

    def look_after(self) -> Result | None:
        """Find what the pool does not report: a process that left with exit code 0, or just as it took the item.

        Such a process is replaced, and the next one runs the probe that is queued behind the item.
        """
        if self.flight is None:
            return None
        try:
            if self._probe is None:
                self._probe = self._pool.schedule(probe)
                self._probe.add_done_callback(self._tell)
            elif not self._pool.active:
                return self._lost(self.flight, "its pool ended")
        except RuntimeError as error:
            return self._lost(self.flight, error)
        return None

    def settle(self, future: Future[Any]) -> Result | None:
        """The result that this ended future means; None when it means none, or none yet."""
        flight = self.flight
        if flight is None or self._future is None or future not in (self._future, self._probe):
            return None  # of an earlier item
        if future is self._future:
            return self._outcome(flight, self._future)
        if self._future.done() or isinstance(future.exception(), BrokenProcessPool):
            return None  # the item's own news is under way, or look_after finds the pool broken
        self._replace_pool()
        self._false_starts = None
        return self._ended(flight, _died(flight, "it left without a score"))

    def _outcome(self, flight: Flight, future: Future[bytes]) -> Result | None:
        try:
            score: Score = pickle.loads(future.result())
        except TimeoutError:
            assert self._item_timeout is not None  # what has no limit can't run out of it
            seconds = time.monotonic() - flight.started
            score = timeout_score("item", self._item_timeout, profile=flight.profile, seconds=seconds)
        except BrokenProcessPool as error:
            return self._lost(flight, error)
        except ProcessExpired as error:
            score = _died(flight, _exit_text(error.exitcode))
        except Exception as error:
            score = Score.fault(error, profile=flight.profile)
        self._false_starts = None
        return self._ended(flight, score)

    def _lost(self, flight: Flight, why: object) -> Result | None:
        """The process is gone, and nobody can say whether the item did it: try again, then blame the item.

        Raises:
            GraderError: no process of this slot has ever run.
        """
        self._replace_pool()
        if self._false_starts is not None:
            self._false_starts += 1
            if self._false_starts >= _STARTS:
                raise GraderError(f"the scoring processes don't start: {why}; see what they wrote to stderr") from None
        elif flight.tries >= _TRIES:
            return self._ended(flight, _died(flight, f"{flight.tries} times, {why}"))
        return self.start(flight)

    def _ended(self, flight: Flight, score: Score) -> Result:
        self.flight = self._future = self._probe = None
        return flight.key, score

    def _replace_pool(self) -> None:
        close_slots([self])
        self._open_pool()

    def stop(self) -> None:
        """Ask the process to stop."""
        self._pool.stop()  # type: ignore[no-untyped-call]

    def join(self) -> None:
        """Wait until the process is gone (killed if it must be)."""
        self._pool.join()


def close_slots(slots: Iterable[Slot]) -> None:
    """Stop all processes, side by side."""
    slots = list(slots)
    for slot in slots:
        slot.stop()
    for slot in slots:
        slot.join()


def _died(flight: Flight, how: str) -> Score:
    text = " ".join(f"worker_died: the scoring process ended ({how})".split())
    seconds = time.monotonic() - flight.started
    return Score(status="error", reward=None, reason=text, profile=flight.profile, seconds=seconds)


def _exit_text(code: int | None) -> str:
    if code is None or code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"

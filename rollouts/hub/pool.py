"""Scoring for an event loop: worker processes that score what comes, one answer at a time, with a deadline."""

from __future__ import annotations

import asyncio
import functools
import itertools
import queue
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from multiprocessing.util import Finalize

from weightgym.rewards.batch import PENDING, Pending, ScoreItem, score_batch
from weightgym.rewards.contracts import Completion, GraderError, Score, Task

#: Seconds without work after which the processes are stopped. The next answer starts new ones.
_IDLE = 300.0


class ScoringPool:
    """Worker processes of one scorer under one profile. ``score`` may be called from any thread's event loop.

    Args:
        scorer: ``"module:function"``.
        profile: what it is called with.
        workers: processes.
        item_timeout: wall seconds that one answer may take; then its process is killed.
    """

    def __init__(self, scorer: str, profile: str, workers: int, item_timeout: float) -> None:
        self._stop = threading.Event()
        self._batch = functools.partial(
            score_batch,
            scorer=scorer,
            profile=profile,
            workers=workers,
            item_timeout=item_timeout,
            stop=self._stop,
        )
        self._lock = threading.Lock()
        self._inbox: queue.SimpleQueue[tuple[int, Task, Completion] | None] = queue.SimpleQueue()
        self._futures: dict[int, Future[Score]] = {}
        self._keys = itertools.count()
        self._running = 0  #: given to processes and not back; touched by the working thread alone
        self._awake = False
        self._thread: threading.Thread | None = None
        # Python waits for worker processes at its end, in processes that are no main ones for ever.
        Finalize(self, self._end, exitpriority=100)

    async def score(self, task: Task, completion: Completion, *, within: float | None = None) -> Score:
        """The scorer's ``Score``, whatever its status.

        Raises:
            GraderError: the processes don't start, or there is no score after ``within`` seconds (waiting for a free
                process included).
        """
        future: Future[Score] = Future()
        with self._lock:
            key = next(self._keys)
            self._futures[key] = future
            self._inbox.put((key, task, completion))
            if not self._awake:
                self._awake = True
                self._thread = threading.Thread(target=self._work, name="scoring", daemon=True)
                self._thread.start()
        waiting = asyncio.wrap_future(future)
        try:
            done, _ = await asyncio.wait([waiting], timeout=within)
        finally:
            waiting.cancel()
        if not done:
            raise GraderError(f"scoring_timeout: {task.env} {task.id} has no score after {within:g} s, a limit of ours")
        return waiting.result()

    def _end(self) -> None:
        self._stop.set()
        self._inbox.put(None)
        if self._thread:
            self._thread.join(10)

    def _work(self) -> None:
        try:
            for key, score in self._batch(self._items()):
                self._running -= 1
                self._futures.pop(int(key)).set_result(score)
        except BaseException as error:
            with self._lock:
                lost, self._futures = self._futures, {}
                self._inbox = queue.SimpleQueue()
                self._running, self._awake = 0, False
            for future in lost.values():
                if not future.done():
                    future.set_exception(GraderError(f"the scoring processes ended: {error}"))

    def _items(self) -> Iterator[ScoreItem | Pending]:
        while True:
            try:
                asked = self._inbox.get(timeout=0.0 if self._running else _IDLE)
            except queue.Empty:
                if self._running:
                    yield PENDING
                    continue
                with self._lock:
                    if self._inbox.empty():
                        self._awake = False
                        return
                continue
            if asked is None:
                return
            key, task, completion = asked
            if self._futures[key].set_running_or_notify_cancel():
                self._running += 1
                yield ScoreItem(key, task, completion)
            else:  # nobody waits for it any more
                del self._futures[key]


@functools.cache
def scoring_pool(scorer: str, profile: str, workers: int, item_timeout: float) -> ScoringPool:
    """The pool of this process for these."""
    return ScoringPool(scorer, profile, workers, item_timeout)

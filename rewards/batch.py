"""Scoring many answers at once: worker processes, deadlines, results keyed and as they come.

Every item gets exactly one ``Score``, whatever its scorer does: spin, crash, leave, or return nonsense. Neither the
order of the items nor the number of workers changes a score.
"""

from __future__ import annotations

import multiprocessing
import pickle
import queue
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum
from typing import Any

from weightgym.rewards.batch_slot import Flight, Key, Result, Slot, close_slots, timeout_score
from weightgym.rewards.batch_worker import load_scorer
from weightgym.rewards.contracts import Completion, GraderError, Score, Task

#: Seconds between looks at the processes of items that are still running.
_TICK = 1.0
#: Seconds to wait for a result when the items' source has nothing ready.
_MOMENT = 0.02


class Pending(Enum):
    """What a source of items yields when it has nothing yet: results are looked for meanwhile."""

    PENDING = "pending"


PENDING = Pending.PENDING


@dataclass(frozen=True)
class ScoreItem:
    """One answer to score. ``key`` is unique within the batch, and names the result."""

    key: Key
    task: Task
    completion: Completion


def score_batch(
    items: Iterable[ScoreItem | Pending | Result],
    *,
    scorer: str | Mapping[str, str],
    profile: str | Mapping[str, str],
    workers: int = 1,
    item_timeout: float | None = None,
    batch_timeout: float | None = None,
    stop: threading.Event | None = None,
) -> Generator[Result, None, None]:
    """Score the items in worker processes; yields ``(key, score)`` as each one ends.

    At most ``workers`` items are in flight, so a stream of any length takes constant memory (but for its keys).
    Works from any thread. Closing the generator, or leaving the loop around it by an exception, stops the processes.
    They are started afresh (``multiprocessing``'s fork server): a script that calls this needs the
    ``if __name__ == "__main__":`` guard, and keeps slow imports of its own behind it.

    Args:
        items: read one by one, as workers get free. A source that makes its items while others are scored yields
            ``PENDING`` now and then when it has nothing yet, so that results come through. A ``(key, score)`` among
            them, for an answer that never came about, is passed on.
        scorer: ``"module:function"``, or one for each environment name (``task.env``).
        profile: the profile, or one for each environment name.
        workers: processes, 1 or more.
        item_timeout: wall seconds that one item may take; its process is killed and the item gets ``timeout``.
        batch_timeout: wall seconds for all; items not scored by then get ``timeout``.
        stop: once it is set (by another thread), the processes are stopped within seconds, whatever they are at.

    Raises:
        ValueError: an argument is out of range, two items share a key, or an item's environment has no scorer.
        GraderError: a scorer can't be imported, or the processes don't start; or it was stopped.
        RuntimeError: the calling script lacks the guard.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise RuntimeError('a script that calls score_batch needs the guard: if __name__ == "__main__":')
    if workers < 1:
        raise ValueError(f"workers must be 1 or more, not {workers}")
    for name, limit in (("item_timeout", item_timeout), ("batch_timeout", batch_timeout)):
        if limit is not None and not limit > 0:
            raise ValueError(f"{name} must be more than 0 seconds (or None), not {limit}")
    batch = _Batch(scorer, profile, workers, item_timeout, batch_timeout, stop or threading.Event())
    for path in batch.paths:
        load_scorer(path)
    return batch.run(iter(items))


class _Batch:
    def __init__(
        self,
        scorer: str | Mapping[str, str],
        profile: str | Mapping[str, str],
        workers: int,
        item_timeout: float | None,
        batch_timeout: float | None,
        stop: threading.Event,
    ) -> None:
        self.scorer = scorer
        self.profile = profile
        self.paths = (scorer,) if isinstance(scorer, str) else tuple(dict.fromkeys(scorer.values()))
        self.workers = workers
        self.item_timeout = item_timeout
        self.batch_timeout = batch_timeout
        self.stop = stop
        self.news: queue.SimpleQueue[tuple[Slot, Future[Any]]] = queue.SimpleQueue()
        self.slots: list[Slot] = []
        self.seen: set[Key] = set()
        self.next_look = 0.0

    def run(self, items: Iterator[ScoreItem | Pending | Result]) -> Generator[Result, None, None]:
        yielded = 0
        try:
            for result in self._results(items):
                yielded += 1
                yield result
        finally:
            close_slots(self.slots)
        if yielded != len(self.seen):
            raise GraderError(f"{len(self.seen)} items gave {yielded} scores")

    def _results(self, items: Iterator[ScoreItem | Pending | Result]) -> Iterator[Result]:
        deadline = float("inf") if self.batch_timeout is None else time.monotonic() + self.batch_timeout
        while time.monotonic() < deadline:
            if self.stop.is_set():
                raise GraderError("the scoring was stopped")
            slot = self._free_slot()
            item = next(items, None) if slot else None
            if item is PENDING:
                yield from self._wait(min(deadline, time.monotonic() + _MOMENT))
            elif isinstance(item, tuple):
                self._count(item[0])
                yield item
            elif slot and item is not None:
                result = self._start(slot, item)
                if result:
                    yield result
            elif any(slot.flight for slot in self.slots):
                yield from self._wait(deadline)
            else:
                return
        yield from self._overtaken(items)

    def _free_slot(self) -> Slot | None:
        free = next((slot for slot in self.slots if not slot.flight), None)
        if free is None and len(self.slots) < self.workers:
            free = Slot(self.paths, self.item_timeout, self.news)
            self.slots.append(free)
        return free

    def _start(self, slot: Slot, item: ScoreItem) -> Result | None:
        """Hand the item to a process; its result when it can't be packed or handed over."""
        path, profile = self._admit(item)
        try:
            payload = pickle.dumps((path, item.task, item.completion, profile))
        except Exception as error:
            return item.key, Score.fault(error, profile=profile)
        return slot.start(Flight(item.key, payload, profile))

    def _admit(self, item: ScoreItem) -> tuple[str, str]:
        """Count the item in; its scorer and profile."""
        self._count(item.key)
        env = item.task.env
        path = self.scorer if isinstance(self.scorer, str) else self.scorer.get(env)
        profile = self.profile if isinstance(self.profile, str) else self.profile.get(env)
        if path is None or profile is None:
            raise ValueError(f"item {item.key!r}: the batch has no scorer or no profile for environment {env!r}")
        return path, profile

    def _count(self, key: Key) -> None:
        if key in self.seen:
            raise ValueError(f"two items have the key {key!r}: keys must be unique within a batch")
        self.seen.add(key)

    def _wait(self, deadline: float) -> Iterator[Result]:
        """Results of what has ended, after at most a tick."""
        now = time.monotonic()
        if now >= self.next_look:
            self.next_look = now + _TICK
            yield from filter(None, [slot.look_after() for slot in self.slots])
        try:
            slot, future = self.news.get(timeout=max(0.0, min(self.next_look, deadline) - now))
        except queue.Empty:
            return
        result = slot.settle(future)
        if result:
            yield result

    def _overtaken(self, items: Iterator[ScoreItem | Pending | Result]) -> Iterator[Result]:
        """Timeouts for all that the batch's deadline has overtaken; the processes are stopped first."""
        assert self.batch_timeout is not None
        flights = [slot.flight for slot in self.slots if slot.flight]
        close_slots(self.slots)
        self.slots = []
        for flight in flights:
            seconds = time.monotonic() - flight.started
            yield flight.key, timeout_score("batch", self.batch_timeout, profile=flight.profile, seconds=seconds)
        for item in items:
            if isinstance(item, tuple):
                self._count(item[0])
                yield item
            elif item is not PENDING:
                _, profile = self._admit(item)
                yield item.key, timeout_score("batch", self.batch_timeout, profile=profile)

"""Functions in threads, each with a deadline: the only places where rollouts wait for something that may hang."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class Call:
    """A function that is to run, runs, or has run."""

    owner: Any  #: whatever its end is for
    function: Callable[[], Any]
    timeout: float  #: seconds from its start
    result: Any = None
    error: BaseException | None = None
    started: float = field(default=0.0)
    seconds: float = field(default=0.0)
    overdue: bool = False

    def run(self) -> None:
        """Call the function and keep what comes of it."""
        try:
            self.result = self.function()
        except BaseException as error:
            self.error = error
        self.seconds = time.monotonic() - self.started


#: Calls as they end. None: look up from waiting.
News = queue.SimpleQueue[Call | None]


class Calls:
    """Runs calls in daemon threads, at most ``size`` at once, in the order they come; ``news`` gets each at its end.

    A call that takes longer than it may is given up: a new thread takes its place, and what it returns one day is
    dropped. All methods belong to one thread, the one that reads ``news``.
    """

    def __init__(self, size: int, news: News, name: str) -> None:
        self._size = size
        self._news = news
        self._name = name
        self._waiting: deque[Call] = deque()
        self._running: dict[Call, _Thread] = {}
        self._idle: list[_Thread] = []

    @property
    def busy(self) -> bool:
        """Something runs or waits."""
        return bool(self._running or self._waiting)

    @property
    def deadline(self) -> float:
        """The next one of the calls that run, on the monotonic clock."""
        return min((call.started + call.timeout for call in self._running), default=float("inf"))

    def submit(self, call: Call) -> None:
        """Run the call as soon as there is a free thread."""
        self._waiting.append(call)
        self._fill()

    def settle(self, call: Call) -> bool:
        """A call has come through ``news``: free its thread. False if it isn't one of these, or was given up."""
        thread = self._running.pop(call, None)
        if thread is not None:
            self._idle.append(thread)
            self._fill()
        return thread is not None

    def give_up(self) -> Iterable[Call]:
        """The calls that are overdue now; they count as ended."""
        now = time.monotonic()
        late = [call for call in self._running if call.started + call.timeout <= now]
        for call in late:
            call.overdue = True
            self._running.pop(call).end()
        self._fill()
        return late

    def runs_for(self, owner: object) -> bool:
        """A call of that owner runs."""
        return any(call.owner is owner for call in self._running)

    def drop(self, which: Callable[[Call], bool]) -> None:
        """Forget calls that wait."""
        self._waiting = deque(call for call in self._waiting if not which(call))

    def close(self) -> None:
        """Start nothing more. Threads end with the call that they are at."""
        self._waiting.clear()
        for thread in (*self._idle, *self._running.values()):
            thread.end()

    def _fill(self) -> None:
        while self._waiting and len(self._running) < self._size:
            call = self._waiting.popleft()
            thread = self._idle.pop() if self._idle else _Thread(self._news, self._name)
            self._running[call] = thread
            call.started = time.monotonic()
            thread.start_call(call)


class _Thread:
    def __init__(self, news: News, name: str) -> None:
        self._inbox: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, args=(news,), name=name, daemon=True).start()

    def start_call(self, call: Call) -> None:
        self._inbox.put(call)

    def end(self) -> None:
        self._inbox.put(None)

    def _work(self, news: News) -> None:
        while (call := self._inbox.get()) is not None:
            call.run()
            news.put(call)
            del call  # what it holds may be large, and the next one may be long in coming

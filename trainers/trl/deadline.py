"""One call at a time, each with a deadline."""

from __future__ import annotations

import queue
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from weightgym.rollouts.calls import Call, Calls, News


class Deadline:
    """Runs functions in a thread of its own. One that takes too long is given up, and the next gets a new thread."""

    def __init__(self, name: str) -> None:
        self._news: News = queue.SimpleQueue()
        self._calls = Calls(1, self._news, name)
        weakref.finalize(self, self._calls.close)  # TRL never closes what it makes

    def run(self, function: Callable[[], Any], seconds: float, *, late: Callable[[], Any] | None = None) -> Call:
        """The call when it has ended, or is overdue. What it raises is in ``error``.

        Args:
            late: called in the same thread, should the function end when it was given up already.
        """
        given_up = threading.Event()

        def work() -> Any:
            try:
                return function()
            finally:
                if late and given_up.is_set():
                    late()

        call = Call(None, work, seconds)
        self._calls.submit(call)
        end = time.monotonic() + seconds
        while True:
            try:
                ended = self._news.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                given_up.set()
                list(self._calls.give_up())
                return call
            if ended is call:
                self._calls.settle(call)
                return call

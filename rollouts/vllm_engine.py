"""A vLLM engine in this process, and the one thread that touches it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from weightgym.rewards.contracts import BackendError
from weightgym.rewards.one_line import one_line

T = TypeVar("T")

#: Seconds that an engine has to stop when it is closed.
_CLOSE = 5.0


@dataclass(frozen=True)
class Wanted:
    """One continuation, as vLLM takes it."""

    prompt_ids: tuple[int, ...]
    params: Any  #: vLLM's SamplingParams
    adapter: Any = None  #: vLLM's LoRARequest


@dataclass(frozen=True)
class _Command:
    """Something to do between two steps, and those who wait for it."""

    act: Callable[[], object]
    futures: Sequence[Future[Any]] = ()


class EngineThread:
    """Requests come from any thread and at any time, and join those that run: vLLM batches them step by step.

    Args:
        make: builds the engine, in the thread that will use it.
        stop: gives back what the engine holds, in the same thread.
        timeout: seconds to build it.

    Raises:
        BackendError: the engine could not be made, or took too long.
    """

    def __init__(self, make: Callable[[], Any], stop: Callable[[Any], None], *, name: str, timeout: float) -> None:
        self._name = name
        self._make = make
        self._stop = stop
        self._commands: queue.SimpleQueue[_Command | None] = queue.SimpleQueue()
        self._running: dict[str, Future[Any]] = {}
        self._count = 0
        self._lock = threading.Lock()  # of _dead: no command is queued after the last look at the queue
        self._dead: BaseException | None = None
        self._engine: Any = None
        ready: Future[None] = Future()
        self._thread = threading.Thread(target=self._work, args=(ready,), name="vllm-engine", daemon=True)
        self._thread.start()
        try:
            ready.result(timeout)
        except TimeoutError:
            self.close(wait=0)
            raise BackendError(f"{name}: vLLM did not start within {timeout:g} s (backend.start_timeout)") from None
        except Exception as error:
            raise BackendError(f"{name}: vLLM can't start: {told(error)}") from error

    def submit(self, wanted: Sequence[Wanted]) -> list[Future[Any]]:
        """Ask for continuations. Each future gives vLLM's output, or raises what vLLM said against the request."""
        futures: list[Future[Any]] = [Future() for _ in wanted]

        def add() -> None:
            for one, future in zip(wanted, futures, strict=True):
                self._add(one, future)

        self._post(_Command(add, futures))
        return futures

    def call(self, function: Callable[[Any], T], *, timeout: float, what: str) -> T:
        """``function`` of the engine, between two of its steps.

        Raises:
            BackendError: the engine failed or took too long; the message says ``what``.
        """
        future: Future[T] = Future()
        self._post(_Command(lambda: _settle(future, lambda: function(self._engine)), [future]))
        try:
            return future.result(timeout)
        except TimeoutError:
            raise BackendError(f"{self._name}: {what} took more than {timeout:g} s (backend.request_timeout)") from None
        except Exception as error:
            raise BackendError(f"{self._name}: {what}: {told(error)}") from error

    def drop(self, futures: Sequence[Future[Any]]) -> None:
        """Stop working on requests that nobody waits for any more."""
        lost = set(map(id, futures))

        def abort() -> None:
            ids = [key for key, future in self._running.items() if id(future) in lost]
            for key in ids:
                del self._running[key]
            self._engine.abort_request(ids)

        self._post(_Command(abort))

    def close(self, *, wait: float = _CLOSE) -> None:
        """Stop; requests that run fail. Takes at most ``wait`` seconds."""
        self._commands.put(None)
        self._thread.join(wait)

    def _post(self, command: _Command) -> None:
        with self._lock:
            if self._dead is None:
                self._commands.put(command)
                return
        _fail(self._dead, command.futures)

    def _add(self, one: Wanted, future: Future[Any]) -> None:
        key = str(self._count)
        self._count += 1
        try:
            prompt = {"type": "token", "prompt_token_ids": list(one.prompt_ids)}
            self._engine.add_request(key, prompt, one.params, lora_request=one.adapter)
            self._running[key] = future
        except Exception as error:  # vLLM refuses this request: the others go on
            future.set_exception(error)

    def _work(self, ready: Future[None]) -> None:
        if not _settle(ready, lambda: setattr(self, "_engine", self._make())):
            return
        try:
            while self._obey():
                for output in self._engine.step() if self._running else ():
                    if output.finished and (future := self._running.pop(output.request_id, None)):
                        future.set_result(output)
            self._die(BackendError(f"{self._name} is closed"))
        except BaseException as error:
            self._die(error)
        engine, self._engine = self._engine, None
        self._stop(engine)

    def _obey(self) -> bool:
        """Do all that was asked for; wait for something when nothing runs. False: it is time to end."""
        while not self._commands.empty() or not self._running:
            command = self._commands.get()
            if command is None:
                return False
            command.act()
        return True

    def _die(self, error: BaseException) -> None:
        with self._lock:
            self._dead = error
        _fail(error, list(self._running.values()))
        while not self._commands.empty():
            if command := self._commands.get():
                _fail(error, command.futures)


def told(error: BaseException) -> str:
    """What an exception says, in one line of bounded length; its kind where it says nothing."""
    return one_line(str(error), 400) or type(error).__name__


def _fail(error: BaseException, futures: Sequence[Future[Any]]) -> None:
    for future in futures:
        if not future.done():
            made = BackendError(told(error))  # one for each: they are raised in different threads
            made.__cause__ = error
            future.set_exception(made)


def _settle(future: Future[T], function: Callable[[], T]) -> bool:
    """Put the value or the exception into the future. True: a value."""
    try:
        future.set_result(function())
        return True
    except BaseException as error:
        future.set_exception(error)
        return False

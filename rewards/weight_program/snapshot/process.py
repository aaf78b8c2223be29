"""The parent's side of ``worker.py``: processes that are kept for the next answer, as many as are asked at once."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weightgym.rewards.contracts import GraderError, SandboxError

UNSAFE_VARIABLE = "WEIGHTGYM_UNSAFE"
#: Seconds that one request may take. The published scorer needs minutes for 1,000 episodes of a long game.
LIMIT = 3600.0

_MODULE = "weightgym.rewards.weight_program.snapshot.worker"
#: What the process sees of this one's environment: no keys, no tokens.
_PASSED = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT", "LD_LIBRARY_PATH")

_idle: dict[Path, list[Worker]] = {}
_live: set[Worker] = set()
_lock = threading.Lock()


def ask(runtime: Path, digests: Mapping[str, str], do: str, **arguments: Any) -> Any:
    """Have a worker do something (a method of ``worker.Requests``, by name) and return its answer.

    Raises:
        SandboxError: the user has not allowed foreign code to run without a sandbox, or the process was lost.
        GraderError: what it was to do failed there.
    """
    require_unsafe()
    with _lock:
        idle = _idle.setdefault(runtime, [])
        worker = idle.pop() if idle else None
    if worker is None or not worker.alive:
        if worker is not None:
            worker.close()
        worker = Worker(runtime, digests)
    answer = worker.ask({"do": do, **arguments})
    with _lock:
        if worker in _live:
            idle.append(worker)
    if "error" in answer:
        failure = GraderError(f"in the snapshot's process: {answer['error']}")
        failure.add_note(answer["traceback"])
        raise failure
    return answer["ok"]


def close_all() -> None:
    """End all workers. Those that are at work end their request with an error."""
    with _lock:
        idle = [worker for workers in _idle.values() for worker in workers]
        busy = _live.difference(idle)
        _idle.clear()
        _live.clear()
    for worker in idle:
        worker.close()
    for worker in busy:
        worker.kill()


atexit.register(close_all)


def require_unsafe() -> None:
    """Check that the user allows a snapshot's code to run.

    Raises:
        SandboxError: they have not.
    """
    if os.environ.get(UNSAFE_VARIABLE) != "1":
        raise SandboxError(
            "the snapshot's code (its games and verify.py) is not ours and would run without a sandbox, with your "
            f"rights: if you trust it, say --unsafe (or set {UNSAFE_VARIABLE}=1)"
        )


class Worker:
    """A running process, in a group of its own. One request at a time."""

    def __init__(self, runtime: Path, digests: Mapping[str, str]) -> None:
        environment = {name: os.environ[name] for name in _PASSED if name in os.environ}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", _MODULE, str(runtime)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment | {"PYTHONHASHSEED": "0"},
            encoding="utf-8",
            cwd=runtime,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._numbers = itertools.count()
        with _lock:
            _live.add(self)
        with contextlib.suppress(BrokenPipeError):
            self._write(json.dumps(dict(digests)))

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """One request, one answer; takes at most ``LIMIT`` seconds. However it is broken off, the process ends then."""
        number = next(self._numbers)
        watchdog = threading.Timer(LIMIT, self.kill)
        watchdog.daemon = True
        watchdog.start()
        answer = None
        try:
            self._write(json.dumps({"number": number, **request}))
            line = self._stdout.readline()
            answer = json.loads(line) if line.endswith("\n") else None
        except BrokenPipeError:
            pass
        finally:
            watchdog.cancel()
            if answer is None:
                code = self.close()
        if answer is None or answer["number"] != number:
            raise SandboxError(
                f"the snapshot's process ended with code {code} during {request['do']!r} of {request.get('game')!r} "
                f"(limit: {LIMIT:g} s)"
            )
        return dict(answer)

    def close(self) -> int:
        """End it and what it started; its exit code."""
        with _lock:
            _live.discard(self)
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=0.2)  # it may have ended by itself: its own code tells more than ours
        self.kill()
        self._stdout.close()
        return self._process.wait()

    def _write(self, text: str) -> None:
        self._stdin.write(text + "\n")
        self._stdin.flush()

    def kill(self) -> None:
        """Kill it and what it started. Whoever waits for its answer sees it end."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

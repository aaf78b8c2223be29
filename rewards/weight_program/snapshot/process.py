"""The parent's side of ``worker.py``: processes that are kept for the next answer, as many as are asked at once."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
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
_lock = threading.Lock()


def ask(runtime: Path, do: str, **arguments: Any) -> Any:
    """Have a worker do something (a function of ``worker.py``, by name) and return its answer.

    Raises:
        SandboxError: the user has not allowed foreign code to run without a sandbox, or the process was lost.
        GraderError: what it was to do failed there.
    """
    require_unsafe()
    with _lock:
        idle = _idle.setdefault(runtime, [])
        worker = idle.pop() if idle else None
    if worker is None or not worker.alive:
        worker = Worker(runtime)
    try:
        return worker.ask({"do": do, **arguments})
    finally:
        if worker.alive:
            with _lock:
                idle.append(worker)


def close_all() -> None:
    """End the workers that wait for a question."""
    with _lock:
        for workers in _idle.values():
            while workers:
                workers.pop().close()


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
    """A running process. Not for several threads at once."""

    def __init__(self, runtime: Path) -> None:
        environment = {name: os.environ[name] for name in _PASSED if name in os.environ}
        self._process = subprocess.Popen(
            [sys.executable, "-m", _MODULE, str(runtime)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            encoding="utf-8",
            cwd=runtime,
        )
        atexit.register(self.close)

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    def ask(self, request: dict[str, Any]) -> Any:
        """One request, one answer; takes at most ``LIMIT`` seconds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        watchdog = threading.Timer(LIMIT, self._process.kill)
        watchdog.start()
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            watchdog.cancel()
        if not line:
            self.close()
            raise SandboxError(
                f"the snapshot's process ended with code {self._process.returncode} during {request['do']!r}"
                f" of {request.get('game')!r} (limit: {LIMIT:g} s)"
            )
        answer = json.loads(line)
        if "error" in answer:
            raise GraderError(f"in the snapshot's process: {answer['error']}\n{answer['traceback']}")
        return answer["ok"]

    def close(self) -> None:
        """End it."""
        atexit.unregister(self.close)
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

"""The snapshot's code at work: a sandbox for each snapshot in each process, with phases that answer questions.

That code is not ours, and not the model's: whatever it does wrong is an error without a reward. Only what its scorer
says of an answer counts. The inside is ``runner.py``.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from weightgym.rewards.contracts import GraderError, SandboxError
from weightgym.rewards.one_line import one_line
from weightgym.rewards.sandbox import Phase, PhaseError, Sandbox, SandboxPolicy, find_sandbox, unsafe_allowed
from weightgym.rewards.weight_program import minatar, no_plotting, opaque
from weightgym.rewards.weight_program.snapshot import sources
from weightgym.rewards.weight_program.snapshot.store import distributions, read_runtime, stored

#: What one question may take. The published scorer needs minutes for 1,000 episodes of a long game.
CPU_SECONDS = 3600.0
#: Of wall clock, waits for a core aside: for code that sleeps.
WALL_SECONDS = 3600.0
#: Python's parser takes 0.9 GB for the worst answer that is small enough.
_MEMORY_BYTES = 4 << 30

#: How much one phase does before a new one takes over.
_ANSWERS, _SECONDS = 32, 60.0

_RUNNER = Path(__file__).with_name("runner.py")
#: Bytes of an answer besides its arrays.
_REPLY = 1 << 16

_codes: dict[Path, SnapshotCode] = {}
_lock = threading.Lock()


def code(runtime: Path, digests: Mapping[str, str]) -> SnapshotCode:
    """The code of that snapshot, ready to be asked. The same one until the digests change, or ``close_all``.

    Raises:
        SandboxError: this machine can't sandbox, and the user has not allowed to go without.
        GraderError: the files can't be read, or have changed since they were checked.
    """
    require_sandbox()
    with _lock:
        found = _codes.get(runtime)
        if found is None or not found.serves(digests):
            if found is not None:
                found.close()
            found = _codes[runtime] = SnapshotCode(runtime, digests)
        return found


def close_all() -> None:
    """End all of it. What is at work ends with an error."""
    with _lock:
        codes = list(_codes.values())
        _codes.clear()
    for each in codes:
        each.close()


atexit.register(close_all)


def require_sandbox() -> None:
    """Check that a snapshot's code may run here.

    Raises:
        SandboxError: this machine can't sandbox, and the user has not allowed to go without.
    """
    if unsafe_allowed():
        return
    try:
        find_sandbox()
    except SandboxError as error:
        raise SandboxError(
            f"{error}. The snapshot's code (its games and verify.py) is not ours: if you trust it, --unsafe runs it "
            "without a sandbox, with your rights"
        ) from error


@dataclass
class _Session:
    """A phase that answers, and what it has done so far."""

    phase: Phase
    answers: int = 0
    seconds: float = 0.0

    @property
    def young(self) -> bool:
        """Whether it may go on: a new one costs as much as a few short answers, and has all of its allowance."""
        return self.answers < _ANSWERS and self.seconds < _SECONDS


class SnapshotCode:
    """A snapshot's code in its sandbox, from any thread, and what is known of its games by now."""

    def __init__(self, runtime: Path, digests: Mapping[str, str]) -> None:
        self._digests, self._owner, self._unsafe = dict(digests), os.getpid(), unsafe_allowed()
        self.caps: dict[tuple[str, str], float] = {}
        #: Game → whether it may reuse random generators (0 or 1).
        self.pools: dict[str, int] = {}
        files = read_runtime(runtime, digests)
        policy = _policy(_parts(stored(files)), distributions(files), self._unsafe)
        self._sandbox = Sandbox(policy, _RUNNER, unsafe=self._unsafe)
        self._idle: list[_Session] = []
        self._closed = False
        self._lock = threading.Lock()

    def serves(self, digests: Mapping[str, str]) -> bool:
        """Whether this process, as the user has it now, gets the code with these digests by it."""
        return (self._digests, self._owner, self._unsafe) == (dict(digests), os.getpid(), unsafe_allowed())

    def ask(self, do: str, question: Mapping[str, Any], *, array_bytes: int = 0) -> dict[str, Any]:
        """Have the runner do something. What it replies is untrusted: any names, any values.

        Raises:
            SandboxError: the sandbox does not start, or the phase ended without a reply, or took too long.
            GraderError: the snapshot's code failed.
        """
        started = time.monotonic()
        session = None
        try:
            session = self._send({"do": do, **question})
            reply = session.phase.receive(_REPLY + array_bytes)
            if reply.get("number") != session.answers:
                raise SandboxError("the snapshot's code interfered with the replies of its process")
        except PhaseError as error:
            raise SandboxError(
                f"the snapshot's code ended during {do!r} of {question['game']!r}: {error} "
                f"(limit: {CPU_SECONDS:g} CPU-seconds)"
            ) from error
        except BaseException:
            if session is not None:
                session.phase.stop()
            raise
        session.answers += 1
        session.seconds += time.monotonic() - started
        if "error" in reply:
            session.phase.stop()
            failure = GraderError(f"in the snapshot's code: {told(reply['error'])}")
            failure.add_note(str(reply.get("traceback")))
            raise failure
        self._keep(session)
        return reply

    def close(self) -> None:
        """End all that is at work in it (by the process that made it)."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        if self._owner == os.getpid():
            for session in idle:
                with contextlib.suppress(SandboxError):
                    session.phase.stop()
            self._sandbox.close()

    def _send(self, question: Mapping[str, Any]) -> _Session:
        """Send it to a phase that has time."""
        while True:
            with self._lock:
                if self._closed:
                    raise SandboxError("the snapshot's code was closed")
                session = self._idle.pop() if self._idle else _Session(self._sandbox.start("serve"))
            try:
                session.phase.send({"number": session.answers, **question})
            except (PhaseError, SandboxError):
                if session.answers == 0:
                    raise
                continue  # it ended while it was idle
            except BaseException:
                session.phase.stop()
                raise
            return session

    def _keep(self, session: _Session) -> None:
        with self._lock:
            if session.young and not self._closed:
                self._idle.append(session)
                return
        session.phase.stop()


def told(text: object) -> str:
    """A text out of a reply, for a reason."""
    return one_line(text, 1000) if isinstance(text, str) else f"no text but {type(text).__name__}"


def _parts(runtime: Path) -> dict[str, str]:
    """What the runner needs, by name: the snapshot's code, our files, and MinAtar where it is installed."""
    parts = {"runtime": runtime, "sources": _file(sources), "opaque": _file(opaque), "no_plotting": _file(no_plotting)}
    with contextlib.suppress(ImportError):  # no compiler was there: the published scorer does without
        from weightgym.rewards.weight_program import _engine

        parts["engine"] = _file(_engine)
    if (package := minatar.folder()) is not None:
        parts["minatar"] = package
    return {name: str(path.resolve()) for name, path in parts.items()}


def _file(module: ModuleType) -> Path:
    assert module.__file__ is not None
    return Path(module.__file__)


def _policy(parts: Mapping[str, str], packages: tuple[str, ...], unsafe: bool) -> SandboxPolicy:
    """Each part has a folder of its own in the sandbox; without one it is where it is."""
    there = {name: f"/snapshot/{name}/{Path(path).name}" for name, path in parts.items()}
    return SandboxPolicy(
        cpu_seconds=CPU_SECONDS,
        wall_seconds=WALL_SECONDS,
        memory_bytes=_MEMORY_BYTES,
        packages=packages,
        files=tuple((there[name], path) for name, path in parts.items()),
        environment=(*SandboxPolicy.environment, ("SNAPSHOT_PARTS", json.dumps(parts if unsafe else there))),
    )

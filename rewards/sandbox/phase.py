"""A running phase, from the parent's side: every wait has a bound, and every read a size."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NoReturn, Self

from weightgym.rewards.contracts import ModelError, SandboxError
from weightgym.rewards.sandbox import watch
from weightgym.rewards.sandbox.inside import frames
from weightgym.rewards.sandbox.inside.port import EXCEPTION, OUT_OF_MEMORY
from weightgym.rewards.sandbox.policy import SandboxPolicy

#: Seconds for what is not the phase's: to start it, and to see it end once it is killed.
START_SECONDS = 60.0
_END_SECONDS = 30.0
#: Seconds between looks at what it has used, and how late one may be before this process itself must have stood still.
_LOOK, _LATE = 0.05, 0.5
_PIPE_BYTES = 1 << 20
_MESSAGE = 65_536
#: Wall clock at most, as a multiple of the limit; who waits so long for a core gets no verdict.
_LONGEST = 4.0


class PhaseError(ModelError):
    """The phase's code is at fault. ``code`` is one of a fixed list; no text of the phase's is ever in it.

    ``cpu_limit``, ``wall_limit``, ``output_limit``, ``bad_frame``, ``exception``, ``out_of_memory``, ``crashed`` (by a
    signal), ``ended`` (too early, with any other exit code).
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code


@dataclass(frozen=True)
class PhaseEnd:
    """How a phase ended (``code``: ``ok``, ``stopped`` by us, or one of ``PhaseError``), and what it used."""

    code: str
    cpu_seconds: float
    #: While we waited for it.
    wall_seconds: float
    #: Of these, ready to run without a core.
    waited_seconds: float
    peak_bytes: int


class Phase:
    """One function of a runner, at work. Use it as a context manager: leaving it kills all that the phase started.

    Any method that waits raises ``PhaseError`` when the phase breaks a limit or the format, or ends; it is dead then.
    Only time spent in these methods counts as its wall clock. One thread at a time. It is ``SandboxError`` when the
    machine is too busy to tell whether it keeps its limits.
    """

    def __init__(
        self, policy: SandboxPolicy, launch: Callable[[list[int]], None], on_end: Callable[[bool], None]
    ) -> None:
        self._policy = policy
        self._on_end = on_end
        self.end: PhaseEnd | None = None
        self._wall = self._cpu = self._waited = self._next_look = 0.0
        self._stalled = 0.0  # in which this process could not look: it was stopped, say
        self._since: float | None = None  # when the present wait began
        self._read = 0
        with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
            status, their_status = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            ours.callback(status.close)
            theirs.callback(their_status.close)
            their_source, self._sink = _pipe(theirs, ours)
            self._source, their_sink = _pipe(ours, theirs)
            self._status = status
            self._pidfd = -1
            for ends in (self._sink, self._source):
                os.set_blocking(ends, False)
                with contextlib.suppress(OSError):  # the user has too many
                    fcntl.fcntl(ends, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
            try:
                launch([their_status.fileno(), their_source, their_sink])
            except BaseException:
                on_end(False)
                raise
            ours.pop_all()
        self._await_start()

    def send(self, items: Mapping[str, Any]) -> None:
        """Send a frame: int, float, str, bytes-like and ``Tensor`` by name."""
        with self._clock():
            for part in frames.encode(items):
                left = memoryview(part)
                while left:
                    self._until(self._sink, select.POLLOUT)
                    self._check_limits()
                    try:
                        left = left[os.write(self._sink, left[:_PIPE_BYTES]) :]
                    except BlockingIOError:
                        continue
                    except BrokenPipeError:
                        self._fail_ended()

    def receive(self, max_bytes: int | None = None) -> dict[str, frames.Value]:
        """The next frame, of at most ``max_bytes`` (and what is left of ``output_bytes``). Values are ours alone."""
        with self._clock():
            try:
                length = frames.body_length(self._take(frames.HEADER.size, eof_is="ended"))
                allowed = self._policy.output_bytes - self._read
                if length > (allowed if max_bytes is None else min(allowed, max_bytes)):
                    self._fail("output_limit", "the phase sent more bytes than it may")
                self._read += length
                return frames.decode(self._take(length, eof_is="bad_frame"))
            except frames.FrameError:
                self._fail("bad_frame", "the phase sent something that is no frame")

    def finish(self) -> PhaseEnd:
        """No more frames from us; wait for the phase to end by itself, without another byte. Raises if it did not."""
        with self._clock():
            self._close_sink()
            some = None
            while some is None:
                self._until(self._source, select.POLLIN)
                some = self._some(1)
            if some:
                self._fail("bad_frame", "the phase sent more than was asked for")
            while not self._poll(self._status.fileno(), select.POLLIN):
                self._check_limits()
        end = self._settle("ok")
        if end.code != "ok":
            raise PhaseError(end.code, _TEXTS[end.code])
        return end

    def stop(self) -> PhaseEnd:
        """Kill it and all it started, if it is still there."""
        if self.end is None:
            self._kill()
            self._settle("stopped")
        assert self.end is not None
        return self.end

    @property
    def cpu_seconds(self) -> float:
        """CPU time so far, in steps of a clock tick."""
        if self.end is None:
            self._look()
            return self._cpu
        return self.end.cpu_seconds

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _await_start(self) -> None:
        message: dict[str, Any] = {}
        descriptors: list[int] = []
        try:
            if self._poll(self._status.fileno(), select.POLLIN, START_SECONDS):
                data, descriptors, _, _ = socket.recv_fds(self._status, _MESSAGE, 1)
                message = json.loads(data or b"{}")
        finally:
            if "started" not in message or not descriptors:
                self._release(healthy="error" in message)
        if "started" not in message or not descriptors:
            raise SandboxError(f"a phase did not start: {message.get('error', 'the sandbox is gone, or too slow')}")
        self._pidfd = descriptors[0]

    @contextlib.contextmanager
    def _clock(self) -> Iterator[None]:
        if self.end is not None:
            raise PhaseError(self.end.code, "the phase has ended")
        self._since = time.monotonic()
        self._next_look = max(self._next_look, self._since)
        try:
            yield
        except BaseException:
            self.stop()
            raise
        finally:
            self._wall, self._since = self._elapsed(), None

    def _elapsed(self) -> float:
        """Wall clock so far, while we waited."""
        return self._wall + (0.0 if self._since is None else time.monotonic() - self._since)

    def _until(self, descriptor: int, event: int) -> None:
        """Wait until the descriptor is ready, and look at the limits meanwhile."""
        while not self._poll(descriptor, event):
            self._check_limits()

    def _poll(self, descriptor: int, event: int, seconds: float = _LOOK) -> bool:
        poll = select.poll()
        poll.register(descriptor, event)
        return bool(poll.poll(seconds * 1000))

    def _take(self, count: int, *, eof_is: str) -> bytearray:
        """Exactly ``count`` bytes. Memory grows with what comes, not with what was announced."""
        taken = bytearray()
        while len(taken) < count:
            self._until(self._source, select.POLLIN)
            some = self._some(min(count - len(taken), _PIPE_BYTES))
            if some == b"":
                if taken and eof_is == "ended":
                    eof_is = "bad_frame"
                self._fail_ended(eof_is)
            taken += some or b""
            self._check_limits()
        return taken

    def _some(self, count: int) -> bytes | None:
        """What has come, b"" at the end of the stream, None for nothing yet."""
        try:
            return os.read(self._source, count)
        except BlockingIOError:
            return None

    def _look(self) -> None:
        pid = watch.pid_of(self._pidfd)
        if pid is not None:
            self._cpu = max(self._cpu, watch.cpu_seconds(pid, descendants=self._policy.multiprocess))
            self._waited = max(self._waited, watch.waited_seconds(pid))

    def _check_limits(self) -> None:
        now = time.monotonic()
        if now < self._next_look:
            return
        self._stalled += max(0.0, now - self._next_look - _LATE)
        self._next_look = now + _LOOK
        self._look()
        if self._cpu > self._policy.cpu_seconds:
            self._fail("cpu_limit", _TEXTS["cpu_limit"])
        elapsed, limit = self._elapsed() - self._stalled, self._policy.wall_limit
        if elapsed - self._waited > limit:
            self._fail("wall_limit", _TEXTS["wall_limit"])
        if elapsed > _LONGEST * limit:
            raise SandboxError(f"the machine is too busy: a phase waited {self._waited:,.0f} seconds for a core")

    def _fail(self, code: str, text: str) -> NoReturn:
        self._kill()
        end = self._settle(code)
        raise PhaseError(end.code, text)

    def _fail_ended(self, code: str = "ended") -> NoReturn:
        """The stream is at its end. Whatever closed it, the phase is over: its exit code may tell more."""
        if not self._poll(self._status.fileno(), select.POLLIN, 1.0):
            self._kill()
        end = self._settle(code, exit_tells=True)
        raise PhaseError(end.code, _TEXTS[end.code])

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has ended
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def _settle(self, code: str, *, exit_tells: bool = False) -> PhaseEnd:
        """Wait for the warden's word, and name the end: by its exit for ``ok`` (or if that tells more)."""
        with contextlib.suppress(OSError):
            self._look()
        message: dict[str, Any] = {}
        if self._poll(self._status.fileno(), select.POLLIN, _END_SECONDS):
            message = json.loads(self._status.recv(_MESSAGE) or b"{}")
        if "code" not in message:
            self._release(healthy=False)
            self.end = PhaseEnd("stopped", self._cpu, self._elapsed(), self._waited, 0)
            raise SandboxError("the sandbox is gone, or did not end a phase that was killed")
        self._cpu = max(self._cpu, message["cpu_seconds"])
        if code == "ok" or exit_tells:
            code = self._named(message["code"], code)
        self.end = PhaseEnd(code, self._cpu, self._elapsed(), self._waited, message["peak_bytes"])
        self._release(healthy=True)
        return self.end

    def _named(self, exit_code: int, otherwise: str) -> str:
        if self._cpu > self._policy.cpu_seconds:
            return "cpu_limit"
        if exit_code == 0:
            return otherwise
        if exit_code < 0:
            return "crashed"
        return {EXCEPTION: "exception", OUT_OF_MEMORY: "out_of_memory"}.get(exit_code, "ended")

    def _close_sink(self) -> None:
        if self._sink >= 0:
            os.close(self._sink)
            self._sink = -1

    def _release(self, *, healthy: bool) -> None:
        self._close_sink()
        os.close(self._source)
        self._status.close()
        if self._pidfd >= 0:
            os.close(self._pidfd)
        self._on_end(healthy)


def _pipe(reads: contextlib.ExitStack, writes: contextlib.ExitStack) -> tuple[int, int]:
    """A pipe's two ends, each closed by the side that has it."""
    source, sink = os.pipe2(os.O_CLOEXEC)
    reads.callback(os.close, source)
    writes.callback(os.close, sink)
    return source, sink


_TEXTS = {
    "cpu_limit": "the phase used more CPU-seconds than it may",
    "wall_limit": "the phase took too long",
    "exception": "the phase's code raised an exception",
    "out_of_memory": "the phase ran out of memory",
    "crashed": "the phase's process was ended by a signal",
    "ended": "the phase ended too early",
    "bad_frame": "the phase sent a part of a frame",
}

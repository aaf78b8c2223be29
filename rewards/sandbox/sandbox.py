"""A sandbox: a policy, a runner, and phases of it.

Warm, one process imports what the runner needs and forks for each phase; cold, each phase has a sandbox and an
interpreter of its own. Both run the same code under the same rules: the warm one is only quicker.

A runner is one Python file. Its ``prepare()``, if there, is called once, before any phase: imports, and whatever is
slow the first time. Every other function takes a ``Port`` (``inside/port.py``) and is a phase.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from weightgym.rewards.failures import SandboxError
from weightgym.rewards.sandbox.inputs import Sealed
from weightgym.rewards.sandbox.phase import Phase
from weightgym.rewards.sandbox.policy import SandboxPolicy
from weightgym.rewards.sandbox.support import find_sandbox
from weightgym.rewards.sandbox.zygote import Zygote


class UnsafeWarning(UserWarning):
    """Foreign code runs without a sandbox."""


class Sandbox:
    """Starts phases; from any thread, several at a time. Close it, or use it as a context manager; then it starts none.

    Args:
        policy: the limits of each phase.
        runner: the Python file with the phases' functions.
        warm: fork phases from one prepared process; else start an interpreter for each.
        unsafe: no sandbox at all, only limits (``UnsafeWarning``): the code has your rights.

    Raises:
        SandboxError: this machine can't sandbox, or the runner can't be prepared (the first phase says so).
    """

    def __init__(self, policy: SandboxPolicy, runner: Path, *, warm: bool = True, unsafe: bool = False) -> None:
        self.policy = policy
        self.runner = runner.resolve()
        self.warm = warm
        self.unsafe = unsafe
        self._lock = threading.Lock()
        self._zygote: Zygote | None = None
        self._closed = False
        if unsafe:
            warnings.warn("foreign code runs without a sandbox, with your rights", UnsafeWarning, stacklevel=2)
        else:
            find_sandbox()

    def start(
        self,
        function: str,
        inputs: Mapping[str, bytes | Sealed] | None = None,
        *,
        cpu_seconds: float | None = None,
        wall_seconds: float | None = None,
    ) -> Phase:
        """Start a phase: a function of the runner, with inputs that it can read and not change.

        Bytes are copied once; a ``Sealed`` can be given to many phases. Seconds are limits of this phase; where they
        are None, the policy's hold.

        Raises:
            SandboxError: it could not be started, or the sandbox was closed.
        """
        policy = replace(
            self.policy,
            cpu_seconds=self.policy.cpu_seconds if cpu_seconds is None else cpu_seconds,
            wall_seconds=self.policy.wall_seconds if wall_seconds is None else wall_seconds,
        )
        try:
            return self._start(function, inputs or {}, policy)
        except OSError as error:  # of descriptors or memory, say
            raise SandboxError(f"a phase could not be started: {error}") from error

    def _start(self, function: str, inputs: Mapping[str, bytes | Sealed], policy: SandboxPolicy) -> Phase:
        if not self.warm:
            zygote = Zygote(self.policy, self.runner, unsafe=self.unsafe)
            return zygote.start(function, inputs, policy, last=True)
        with self._lock:
            if self._closed:  # by who stops all: another thread must not start it anew
                raise SandboxError("the sandbox was closed")
            if self._zygote is None or not self._zygote.alive:
                self._zygote = Zygote(self.policy, self.runner, unsafe=self.unsafe)
            zygote = self._zygote
        return zygote.start(function, inputs, policy)

    def close(self) -> None:
        """Kill everything that runs in it, for good."""
        with self._lock:
            self._closed = True
            if self._zygote is not None:
                self._zygote.close()
                self._zygote = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

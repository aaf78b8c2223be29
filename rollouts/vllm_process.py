"""Stock vLLM servers that we start on this machine: processes, ports, logs. Imports no vLLM."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from weightgym.rewards.contracts import BackendError
from weightgym.rollouts.backends import BackendOptions
from weightgym.rollouts.vllm_plugin import TRANSFER
from weightgym.rollouts.vllm_settings import engine_arguments, set_environment
from weightgym.rollouts.vllm_watch import GRACE

#: Lines of a log that an error shows, and what lines look like that name the cause.
_TAIL = 6
_ERROR = re.compile(r"(^|\] )[\w.]*(Error|Exception): ")


def free_ports(count: int) -> list[int]:
    """Ports of the loopback address that nobody listens on."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def command(model: str, port: int, options: BackendOptions, *, cpu: bool) -> list[str]:
    """What starts a server; all of it is vLLM's own except the transfer of weights."""
    arguments = engine_arguments(model, options, cpu=cpu) | {
        "host": "127.0.0.1",
        "port": port,
        "weight_transfer_config": json.dumps({"backend": TRANSFER}),
        "enable_log_requests": False,
        "disable_uvicorn_access_log": True,
    }
    flags: list[str] = []
    for name, value in arguments.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            flags.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            flags += [f"--{flag}", str(value)]
    return [options.python or sys.executable, "-m", "vllm.entrypoints.openai.api_server", *flags]


def environment(options: BackendOptions, *, cpu: bool) -> dict[str, str]:
    """The environment of a server: ours, and what opens the routes for weights and adapters."""
    made = dict(os.environ)
    set_environment(made, cpu=cpu, eager=options.eager)
    made["VLLM_SERVER_DEV_MODE"] = "1"  # the server listens to this machine only
    if options.lora_rank:
        made["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] = "1"
    if "VLLM_PLUGINS" in made:
        made["VLLM_PLUGINS"] += ",weightgym"
    return made


class ServerProcess:
    """A server, its watcher and its log."""

    def __init__(self, command: Sequence[str], environ: dict[str, str], log: Path) -> None:
        self.log = log
        watch = [sys.executable, "-m", "weightgym.rollouts.vllm_watch", str(os.getpid())]
        with log.open("wb") as file:
            self._watcher = subprocess.Popen(
                [*watch, *command],
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def ended(self) -> bool:
        """Whether the server has ended."""
        return self._watcher.poll() is not None

    def gone_soon(self) -> bool:
        """Whether it ends now: a connection that breaks is seen a moment before the end."""
        try:
            self._watcher.wait(1.5)
        except subprocess.TimeoutExpired:
            return False
        return True

    def check(self, what: str) -> None:
        """Raise if the server has ended.

        Raises:
            BackendError: it has; the message begins with ``what`` and ends with the log's last lines.
        """
        if self.ended:
            raise BackendError(f"{what}: {self.story()}")

    def story(self) -> str:
        """The exit status, the log's name and its last lines."""
        shown = "\n  ".join(self.last_lines(_TAIL))
        return f"the server ended (exit status {self._watcher.poll()}); its log {self.log} says\n  {shown}"

    def last_lines(self, count: int) -> list[str]:
        """The last lines of its log that name an error, or the last ones if none does; ``count`` at most."""
        lines = [line[:300] for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        errors = [line for line in lines if _ERROR.search(line)]
        return (errors or lines or ["nothing"])[-count:]

    def terminate(self) -> None:
        """Ask it to end."""
        self._watcher.terminate()

    def wait(self) -> None:
        """Wait until all of it has ended: a little longer than the grace that the watcher gives, at most."""
        try:
            self._watcher.wait(GRACE + 1.5)
        except subprocess.TimeoutExpired:
            self._watcher.kill()
            self._watcher.wait()


def wait_until_ready(ready: Any, process: ServerProcess, *, name: str, timeout: float) -> None:
    """Wait until ``ready()`` is true.

    Raises:
        BackendError: the server ended, or ``timeout`` seconds passed.
    """
    deadline = time.monotonic() + timeout
    while not ready():
        process.check(name)
        if time.monotonic() > deadline:
            raise BackendError(f"{name}: not ready in {timeout:g} s (backend.start_timeout); its log is {process.log}")
        time.sleep(0.1)

"""The parent's side of ``inside/zygote.py``: start it in bubblewrap, ask it for phases, kill it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from weightgym.rewards.failures import SandboxError
from weightgym.rewards.sandbox import root
from weightgym.rewards.sandbox.inputs import Sealed
from weightgym.rewards.sandbox.phase import START_SECONDS, Phase
from weightgym.rewards.sandbox.policy import SandboxPolicy
from weightgym.rewards.sandbox.support import SandboxSupport, find_sandbox, new_private_user

#: Seconds for the runner's imports.
_PREPARE_SECONDS = 300.0
_MESSAGE = 65_536
_PYTHON = ("-P", "-s", "-S", "-B", "-X", "utf8", "-c")
#: The folder is on the path for this import only.
_MAIN = "import json, sys; sys.path.insert(0, sys.argv[1]); from inside.zygote import main; sys.path.pop(0); "
_MAIN += "main(json.loads(sys.argv[2]))"


class Zygote:
    """One sandbox with one prepared process. ``SandboxError`` when it does not come up."""

    def __init__(self, policy: SandboxPolicy, runner: Path, *, unsafe: bool = False) -> None:
        self._folder = tempfile.mkdtemp(prefix="weightgym-unsafe-") if unsafe else "/tmp"
        self._lock = threading.Lock()
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control = control
        with theirs, tempfile.TemporaryFile() as errors:
            try:
                self._process = subprocess.Popen(
                    _command(policy, runner, theirs.fileno(), unsafe),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    env=_environment(policy),
                    cwd="/",
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
            except BaseException:
                control.close()
                raise
            self._end = weakref.finalize(
                self, _end, os.getpid(), self._process, control, self._folder if unsafe else ""
            )
            theirs.close()
            self._await_ready(errors)

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._end.alive and self._process.poll() is None

    def start(
        self, function: str, inputs: Mapping[str, bytes | Sealed], policy: SandboxPolicy, *, last: bool = False
    ) -> Phase:
        """A phase, with the CPU and wall limits of ``policy``. After the ``last`` one it is closed."""
        with contextlib.ExitStack() as stack:
            if last:
                stack.callback(self.close)
            sealed = {
                name: data if isinstance(data, Sealed) else stack.enter_context(Sealed(data))
                for name, data in inputs.items()
            }
            limits = {"cpu_limit": policy.for_inside()["cpu_limit"]}
            request = {"function": function, "inputs": list(sealed), "directory": self._folder, "limits": limits}

            def launch(descriptors: list[int]) -> None:
                readers = [data.reader() for data in sealed.values()]
                try:
                    self._send(request, [*descriptors, *readers])
                finally:
                    for reader in readers:
                        os.close(reader)

            def on_end(healthy: bool) -> None:
                if last or not healthy:
                    self.close()

            phase = Phase(policy, launch, on_end)
            if last:
                stack.pop_all()
            return phase

    def close(self) -> None:
        """Kill it, and every phase in it."""
        self._end()

    def _send(self, request: Mapping[str, Any], descriptors: list[int]) -> None:
        try:
            with self._lock:
                self._control.settimeout(START_SECONDS)
                socket.send_fds(self._control, [json.dumps(request).encode()], descriptors)
        except OSError as error:
            self.close()
            raise SandboxError(f"the sandbox is gone: {error}") from error

    def _await_ready(self, errors: IO[bytes]) -> None:
        """Its first message; what it and bwrap printed, if it does not come."""
        message: dict[str, Any] = {}
        try:
            poll = select.poll()  # select takes no descriptors from 1,024 on
            poll.register(self._control, select.POLLIN)
            if poll.poll(_PREPARE_SECONDS * 1000):
                message = json.loads(self._control.recv(_MESSAGE) or b"{}")
        finally:
            if not message.get("ready"):
                self.close()
        if not message.get("ready"):
            errors.seek(0)
            printed = errors.read(4000).decode("utf-8", "replace").strip()
            raise SandboxError(f"the sandbox did not start: {message.get('error') or printed or 'no answer'}")


def _command(policy: SandboxPolicy, runner: Path, control: int, unsafe: bool) -> list[str]:
    config: dict[str, Any] = {"control": control, "policy": policy.for_inside(), "unsafe": unsafe, "user": None}
    if unsafe:
        config |= {"runner": str(runner), "path": [path for path in sys.path if path]}
        return [sys.executable, *_PYTHON, _MAIN, str(root.INSIDE.parent), json.dumps(config)]
    support = find_sandbox()
    config |= {"runner": root.RUNNER_THERE, "path": root.site_folders(policy.packages)}
    if support.private_user:
        config["user"] = new_private_user()
    folder = os.path.dirname(root.INSIDE_THERE)
    return [
        *_bwrap(support),
        *root.mounts(policy, runner),
        *("--", root.interpreter(), *_PYTHON, _MAIN, folder, json.dumps(config)),
    ]


def _bwrap(support: SandboxSupport) -> list[str]:
    """Namespaces. The zygote is number 1 in its own: with it, the kernel ends all that it started."""
    user = ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"] if support.private_user else ["--unshare-user"]
    names = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--unshare-cgroup-try"]
    return [support.bwrap, *user, *names, "--hostname", "sandbox", "--as-pid-1", "--chdir", "/"]


def _environment(policy: SandboxPolicy) -> dict[str, str]:
    """All that the sandbox sees of an environment."""
    fixed = {"PATH": "/nonexistent", "HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}
    loader = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    return fixed | loader | dict(policy.environment)


def _end(owner: int, process: subprocess.Popen[bytes], control: socket.socket, folder: str) -> None:
    control.close()
    if os.getpid() != owner:
        return  # a fork of ours: not its child
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if folder:
        shutil.rmtree(folder, ignore_errors=True)

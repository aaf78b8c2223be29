"""The first process in a sandbox: imports what phases need, once, and forks one process for each phase.

It is trusted, and holds nothing that a phase must not see. For each phase it forks a *warden*, which makes new
namespaces and forks the phase's own process: number 1 in there, so that the kernel kills all that it started when it
ends. The warden tells the parent how it ended; the phase itself has two pipes, its inputs, and nothing else.

``weightgym.rewards.sandbox.zygote`` starts it, and has the fields of its configuration.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from . import isolate
from .port import EXCEPTION, OUT_OF_MEMORY, Port

#: Bytes of a message on the control socket, and descriptors that come with it.
_MESSAGE, _DESCRIPTORS = 65_536, 64


def main(config: Mapping[str, Any]) -> None:
    """Prepare, say so, and serve until the parent closes its end."""
    control = socket.socket(fileno=config["control"])
    try:
        if config["user"] is not None:
            isolate.become(config["user"])
        isolate.dumpable(config["unsafe"])
        sys.path += config["path"]
        runner = _load(config["runner"])
        prepare = getattr(runner, "prepare", None)
        if prepare is not None:
            prepare()
        threads = len(os.listdir("/proc/self/task"))
        if threads != 1:
            raise RuntimeError(f"the runner's prepare left {threads - 1} threads running: a fork would lose them")
    except BaseException:
        control.send(json.dumps({"error": traceback.format_exc()[-8000:]}).encode())
        return
    gc.collect()
    gc.freeze()  # a collection in a phase would copy every page of this
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # wardens are nobody's zombies
    control.send(json.dumps({"ready": True, "python": sys.version}).encode())
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, _MESSAGE, _DESCRIPTORS)
        if not message:
            return
        if os.fork() == 0:
            control.close()
            _guarded(lambda: _warden(config, runner, json.loads(message), descriptors))  # noqa: B023
        for descriptor in descriptors:
            os.close(descriptor)


def _warden(config: Mapping[str, Any], runner: ModuleType, request: Mapping[str, Any], descriptors: list[int]) -> None:
    """Start the phase, hand its pidfd to the parent, wait, and tell how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    status = socket.socket(fileno=descriptors[0])
    try:
        mapped = isolate.mapped()
        if config["unsafe"]:
            isolate.die_with_parent()
        else:
            isolate.enter(config["policy"])
        news, started = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(news)
            status.detach()
            _guarded(lambda: _phase(config, runner, request, descriptors, started, mapped))
    except Exception:
        status.send(json.dumps({"error": traceback.format_exc()[-8000:]}).encode())
        return
    os.close(started)
    for descriptor in descriptors[1:]:
        os.close(descriptor)
    error = _read_all(news)
    pidfd = os.pidfd_open(pid)
    if error != b"started":
        problem = error.decode("utf-8", "replace") or "the process ended while it was being confined"
        status.send(json.dumps({"error": problem}).encode())
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        return
    socket.send_fds(status, [json.dumps({"started": pid}).encode()], [pidfd])
    _, wait_status, usage = os.wait4(pid, 0)
    if config["unsafe"]:
        _kill_session(pid)
    end = {
        "code": os.waitstatus_to_exitcode(wait_status),
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_bytes": usage.ru_maxrss * 1024,
    }
    status.send(json.dumps(end).encode())


def _phase(
    config: Mapping[str, Any],
    runner: ModuleType,
    request: Mapping[str, Any],
    descriptors: list[int],
    started: int,
    mapped: int,
) -> None:
    """The phase's own process: confine it, then run the runner's function."""
    policy = config["policy"] | request["limits"]
    try:
        os.setsid()  # kill(0) and kill(getppid()) reach nobody
        kept = _only(descriptors[1:], started)
        isolate.fresh_signals()
        os.chdir(request["directory"])
        if config["unsafe"]:
            isolate.die_with_parent()
            isolate.limit(policy, mapped)
        else:
            isolate.hide_proc(policy)
            isolate.confine(policy, mapped)
        function = getattr(runner, request["function"])
    except BaseException:
        os.write(kept[-1], traceback.format_exc()[-8000:].encode())
        return
    port = Port(kept[0], kept[1], dict(zip(request["inputs"], kept[2:-1], strict=True)))
    os.write(kept[-1], b"started")
    os.close(kept[-1])
    _run(function, port)


def _run(function: Callable[[Port], Any], port: Port) -> None:
    try:
        function(port)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except BaseException:
        os._exit(EXCEPTION)
    os._exit(0)  # no handlers of anybody's at exit


def _only(wanted: list[int], started: int) -> list[int]:
    """Move the wanted descriptors to 3, 4, …, put nothing behind 0 to 2, and close all others."""
    high = [os.dup2(fd, 200 + index, inheritable=False) for index, fd in enumerate([*wanted, started])]
    null = os.open("/dev/null", os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    kept = [os.dup2(fd, 3 + index, inheritable=False) for index, fd in enumerate(high)]
    os.closerange(3 + len(kept), os.sysconf("SC_OPEN_MAX"))
    return kept


def _guarded(work: Callable[[], None]) -> None:
    """Run a forked process's work; it never returns into the code of the process that forked it."""
    try:
        work()
    finally:
        os._exit(1)


def _kill_session(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)


def _read_all(descriptor: int) -> bytes:
    with open(descriptor, "rb") as file:
        return file.read()


def _load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("runner", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no module")
    module = importlib.util.module_from_spec(spec)
    sys.modules["runner"] = module
    spec.loader.exec_module(module)
    return module

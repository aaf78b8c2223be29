"""Try out what a sandbox is made of on this machine, one part after the other: what ``weightgym doctor`` shows."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from weightgym.rewards.contracts import WeightgymError
from weightgym.rewards.sandbox import support
from weightgym.rewards.sandbox.policy import SandboxPolicy
from weightgym.rewards.sandbox.sandbox import Sandbox

#: Looks, from the inside, for what must not be there.
_RUNNER = """
import os, socket

def look(port):
    def refused(work):
        try:
            work()
        except OSError:
            return 1
        return 0
    port.send({
        "seccomp": refused(socket.socket) and refused(os.fork),
        "alone": int(os.getpid() == 1),
        "read_only": refused(lambda: open("/sandbox/x", "w")),
        "empty": int(not os.path.exists("/etc/passwd") and not os.listdir("/proc")),
    })
"""
_MEANINGS = {
    "seccomp": "the filter of system calls: no sockets, no other processes",
    "alone": "its own process ids",
    "read_only": "a read-only root",
    "empty": "nothing of this machine in it",
}


@dataclass(frozen=True)
class Finding:
    """One line of the report. A ``warning`` does not keep the sandbox from working."""

    part: str
    state: Literal["ok", "warning", "failed"]
    text: str


def examine() -> Iterator[Finding]:
    """The findings, as they are made; after one that failed there are none that build on it."""
    support.find_sandbox.cache_clear()
    yield Finding("machine", "ok", f"{platform.system()} {platform.release()}, {platform.machine()}")
    try:
        found = support.find_sandbox()
    except WeightgymError as error:
        yield Finding("bubblewrap", "failed", str(error))
        return
    yield Finding("bubblewrap", "ok", f"{found.bwrap}, version {'.'.join(map(str, found.version))}")
    yield from _namespaces(found.private_user)
    yield from _phase()
    yield _cgroups()


def _namespaces(private_user: bool) -> Iterator[Finding]:
    if private_user:
        yield Finding("user", "ok", "started by root: each sandbox runs as a user that nobody else has")
    else:
        yield Finding("user", "ok", "an ordinary user: each phase has a user namespace of its own")
    for path, needed, advice in (
        ("/proc/sys/user/max_user_namespaces", "more than 0", "sysctl user.max_user_namespaces=65536"),
        ("/proc/sys/kernel/unprivileged_userns_clone", "1", "sysctl kernel.unprivileged_userns_clone=1"),
        ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "0",
         "sysctl kernel.apparmor_restrict_unprivileged_userns=0"),
    ):  # fmt: skip
        try:
            value = Path(path).read_text().strip()
        except OSError:
            continue  # this kernel has no such switch
        if value == needed or (needed == "more than 0" and value != "0"):
            continue
        yield Finding("user namespaces", "warning", f"{path} is {value}; if nothing starts below: {advice}")


def _phase() -> Iterator[Finding]:
    with tempfile.TemporaryDirectory() as folder:
        runner = Path(folder) / "runner.py"
        runner.write_text(_RUNNER)
        runner.chmod(0o644)
        try:
            with Sandbox(SandboxPolicy(cpu_seconds=10), runner) as sandbox, sandbox.start("look") as phase:
                seen = phase.receive()
                phase.finish()
        except WeightgymError as error:
            yield Finding("a phase", "failed", f"{_last_line(error)} ({_advice()})")
            return
    yield Finding("a phase", "ok", "started, and ended with all it had started")
    for name, meaning in _MEANINGS.items():
        yield Finding(name.replace("_", "-"), "ok" if seen.get(name) == 1 else "failed", meaning)


def _cgroups() -> Finding:
    try:
        controllers = Path("/sys/fs/cgroup/cgroup.controllers").read_text().split()
    except OSError:
        controllers = []
    if {"memory", "pids"} <= set(controllers):
        return Finding("cgroups", "ok", "version 2, with memory and pids (not needed: limits are per process)")
    return Finding("cgroups", "ok", "no version 2 with memory and pids (not needed: limits are per process)")


def _last_line(error: WeightgymError) -> str:
    return str(error).strip().splitlines()[-1]


def _advice() -> str:
    return (
        "in a container, start it with --privileged, or --security-opt seccomp=unconfined --security-opt "
        "systempaths=unconfined --cap-add SYS_ADMIN; on Ubuntu 24.04, install its package bubblewrap, or allow user "
        "namespaces in AppArmor"
    )

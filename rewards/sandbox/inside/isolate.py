"""What stands between a phase and the rest: namespaces, mounts, limits and the system-call filter of one process.

``enter`` runs in the phase's warden (a trusted process that waits for it), ``confine`` in the phase's own process, as
the last step before foreign code. A user namespace for each phase gives it a count of processes of its own.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
from collections.abc import Mapping
from typing import Any

from . import seccomp

_libc = ctypes.CDLL(None, use_errno=True)
#: User, mount, pid, ipc, uts, net and cgroup namespaces.
_NEW_NAMESPACES = 0x10000000 | 0x00020000 | 0x20000000 | 0x08000000 | 0x04000000 | 0x40000000 | 0x02000000
_READ_ONLY, _NO_SUID, _NO_DEVICES, _NO_EXEC, _RECURSIVE, _PRIVATE = 1, 2, 4, 8, 0x4000, 0x40000
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP = 1, 4, 24
#: The phase's user and group in its own namespace; to the machine it is who started the sandbox, or a private one.
_USER = 1000
_LAST_CAPABILITY = 63
_SIGNALS_PENDING = 256


def become(user: int) -> None:
    """Give up root for a user that nobody else has."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def dumpable(yes: bool) -> None:
    """Whether other processes of the user may look into this one (``/proc/PID/mem``, ptrace)."""
    _check(_libc.prctl(_PR_SET_DUMPABLE, int(yes), 0, 0, 0), "prctl")


def die_with_parent() -> None:
    """Without a pid namespace that the kernel ends, a process ends with the one that forked it."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0), "prctl")


def enter(policy: Mapping[str, Any]) -> None:
    """New namespaces for this process (but for its pid: its next child is the first in there), and private mounts."""
    user, group = os.getuid(), os.getgid()
    dumpable(True)  # else /proc/self/uid_map belongs to root
    _write("/proc/self/oom_score_adj", "1000")
    _check(_libc.unshare(_NEW_NAMESPACES), "unshare")
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{_USER} {user} 1")
    _write("/proc/self/gid_map", f"{_USER} {group} 1")
    dumpable(False)
    _mount(None, "/", None, _RECURSIVE | _PRIVATE)
    flags = _NO_SUID | _NO_DEVICES | (0 if policy["multiprocess"] else _NO_EXEC)
    inodes = max(64, policy["tmpfs_bytes"] // 16_384)
    size = f"size={policy['tmpfs_bytes']},nr_inodes={inodes},mode=700"
    _mount("tmpfs", "/tmp", "tmpfs", flags, size)
    if policy["multiprocess"]:
        _mount("tmpfs", "/dev/shm", "tmpfs", flags | _NO_EXEC, size)  # semaphores and shared memory
        _loopback_up()


def hide_proc(policy: Mapping[str, Any]) -> None:
    """An empty ``/proc`` for the phase; CUDA needs one, and gets that of the phase's own processes."""
    flags = _NO_SUID | _NO_DEVICES | _NO_EXEC
    if policy["gpu"]:
        _libc.mount(b"proc", b"/proc", b"proc", ctypes.c_ulong(flags), None)  # else it keeps that of the sandbox
    else:
        _mount("tmpfs", "/proc", "tmpfs", flags | _READ_ONLY, "size=4096,nr_inodes=2,mode=555")


def confine(policy: Mapping[str, Any], mapped_bytes: int) -> None:
    """Limits, no capabilities, and the filter. ``mapped_bytes``: what the zygote had mapped, which is not charged."""
    limit(policy, mapped_bytes)
    for capability in range(_LAST_CAPABILITY + 1):
        if _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break
    header = struct.pack("<Ii", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this thread
    _check(_libc.capset(header, bytes(24)), "capset")
    seccomp.install(
        seccomp.program(os.uname().machine, multiprocess=policy["multiprocess"], gpu=policy["gpu"]),
    )


def limit(policy: Mapping[str, Any], mapped_bytes: int) -> None:
    """The limits of one process."""
    limits = {
        resource.RLIMIT_CPU: policy["cpu_limit"],
        resource.RLIMIT_FSIZE: policy["file_bytes"],
        resource.RLIMIT_NOFILE: policy["descriptors"],
        resource.RLIMIT_NPROC: policy["tasks"],
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_SIGPENDING: _SIGNALS_PENDING,
        resource.RLIMIT_NICE: 0,
        resource.RLIMIT_RTPRIO: 0,
    }
    if not policy["gpu"]:  # CUDA maps far more than it uses
        limits[resource.RLIMIT_AS] = mapped_bytes + policy["memory_bytes"]
    for kind, value in limits.items():
        _, hard = resource.getrlimit(kind)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))


def mapped() -> int:
    """Bytes of address space that this process has mapped."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def fresh_signals() -> None:
    """Every signal does again what it does by default, and none is blocked."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)


def _loopback_up() -> None:
    import fcntl
    import socket

    set_flags, up, running = 0x8914, 0x1, 0x40
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sh22x", b"lo", up | running))


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    texts = [None if text is None else text.encode() for text in (source, target, kind, data)]
    _check(_libc.mount(*texts[:3], ctypes.c_ulong(flags), texts[3]), f"mount on {target}")


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")

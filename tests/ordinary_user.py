"""Runs a command as an ordinary user although root runs the tests: what is under test is reachable for others, then.

In a mount namespace of its own, folders on the way that are closed to others (``/root``) are covered with open ones
that hold only what is wanted.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
USER = 54321


def run_as_user(
    command: Sequence[str], *, writable: Path, environment: Mapping[str, str], seconds: float
) -> subprocess.CompletedProcess[str]:
    """Run the command as user 54321, who owns ``writable`` (the working folder) and can read this tree and Python's."""
    for path in [writable, *writable.rglob("*")]:
        os.chown(path, USER, USER)
    wanted = [ROOT, Path(sys.prefix), Path(sys.base_prefix), writable]
    wanted += [path for folder in sys.path if (path := Path(folder)).is_dir()]
    script = "\n".join(["set -e", *_open_up({path.resolve() for path in wanted} | set(wanted)), _as_user(command)])
    return subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", script],
        capture_output=True, text=True, timeout=seconds, cwd="/",
        env={"PATH": os.environ["PATH"], "HOME": str(writable), "TMPDIR": str(writable), **environment},
    )  # fmt: skip


def _as_user(command: Sequence[str]) -> str:
    words = [
        "setpriv",
        f"--reuid={USER}",
        f"--regid={USER}",
        "--clear-groups",
        "--bounding-set=-all",
        "--inh-caps=-all",
    ]
    return f'cd "$HOME" && exec {shlex.join([*words, *command])}'


def _open_up(wanted: set[Path]) -> Iterator[str]:
    """Shell lines: keep the wanted ones at hand, cover the outermost closed folders, and put them back in."""
    closed = {folder for path in wanted for folder in path.parents if not folder.stat().st_mode & 0o001}
    outermost = {folder for folder in closed if not closed.intersection(folder.parents)}
    inner = sorted(path for path in wanted if outermost.intersection(path.parents))
    if not inner:
        return
    yield "mkdir -p /run/weightgym-test && mount -t tmpfs tmpfs /run/weightgym-test"
    for index, path in enumerate(inner):
        yield f"mkdir /run/weightgym-test/{index} && mount --rbind {shlex.quote(str(path))} /run/weightgym-test/{index}"
    for folder in sorted(outermost):
        yield f"mount -t tmpfs -o mode=755 tmpfs {shlex.quote(str(folder))}"
    for index, path in enumerate(inner):
        quoted = shlex.quote(str(path))
        yield f"mkdir -p {quoted} && mount --rbind /run/weightgym-test/{index} {quoted}"

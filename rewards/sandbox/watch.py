"""What a process has used so far, out of ``/proc``."""

from __future__ import annotations

import os
from pathlib import Path

_TICK = 1 / os.sysconf("SC_CLK_TCK")


def pid_of(pidfd: int) -> int | None:
    """The pid in our pid namespace; None when the process is gone."""
    for line in Path(f"/proc/self/fdinfo/{pidfd}").read_text().splitlines():
        if line.startswith("Pid:"):
            pid = int(line.split()[1])
            return pid if pid > 0 else None
    return None


def cpu_seconds(pid: int, *, descendants: bool) -> float:
    """CPU time of the process, and of children that it has waited for; of its living descendants too, if asked."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    own = sum(map(int, fields[11:15])) * _TICK  # utime, stime, cutime, cstime
    return own + sum(cpu_seconds(child, descendants=True) for child in _children(pid)) if descendants else own


def waited_seconds(pid: int) -> float:
    """How long its first thread was ready to run, and had no core."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            found += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    except OSError:
        pass
    return found

"""Runs a server as long as the process that wants it: ``python -m weightgym.rollouts.vllm_watch PID COMMAND...``.

The command gets a process group of its own. When it ends, when process PID (the parent) ends in whatever way, or on
SIGTERM, the whole group is ended, so that none of vLLM's processes is left. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time

#: Seconds that a server has to end by itself.
GRACE = 2.5


def main() -> int:
    """Watch; the exit status is the command's, as a shell gives it."""
    parent, *command = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        while child.poll() is None and os.getppid() == int(parent):
            time.sleep(0.1)
    finally:
        end(child)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def end(child: subprocess.Popen[bytes]) -> None:
    """End the child and all of its group."""
    _signal(child.pid, signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    while child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    _signal(child.pid, signal.SIGKILL)
    child.wait()


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


if __name__ == "__main__":
    sys.exit(main())

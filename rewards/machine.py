"""What this machine is, as far as results or defaults depend on it."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path


def cores() -> int:
    """The cores that this process may use: how many workers there are by default."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cpu_name() -> str:
    """The processor's name, and its architecture."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return f"{found[1].strip() if found else platform.processor() or 'unknown'} ({platform.machine()})"


def gpu_names() -> tuple[str, ...]:
    """The NVIDIA GPUs whose device files are here, by number; nothing of CUDA is touched."""
    count = len([path for path in Path("/dev").glob("nvidia*") if re.fullmatch(r"nvidia\d+", path.name)])
    known = []
    for path in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        found = re.search(r"^Model:\s*(.+)$", path.read_text(), re.MULTILINE)
        known.append(found[1].strip() if found else "NVIDIA GPU")
    return tuple(known[:count] + ["NVIDIA GPU"] * (count - len(known)))

"""What a phase may use."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

_MIB = 1 << 20


@dataclass(frozen=True)
class SandboxPolicy:
    """The limits of every phase of a sandbox. ``ValueError`` when one makes no sense.

    A phase runs out of its *own* allowance of CPU-seconds. The wall clock only ends what waits or sleeps: it stops
    while the phase waits for a core, so that a busy machine is nobody's fault. One that is still there after four times
    ``wall_seconds`` is ended as well, but the fault is then ours (``SandboxError``).
    """

    #: Of all threads and processes together.
    cpu_seconds: float = 60.0
    #: None: four times ``cpu_seconds``.
    wall_seconds: float | None = None
    #: Address space of a process, beyond what is mapped when the phase starts. Not enforced with ``gpu``.
    memory_bytes: int = 2048 * _MIB
    #: Threads and processes at one time.
    tasks: int = 32
    #: Size of one file.
    file_bytes: int = 64 * _MIB
    #: The phase's only writable place, ``/tmp``: in memory, empty at the start, gone at the end.
    tmpfs_bytes: int = 64 * _MIB
    descriptors: int = 128
    #: Bytes that the parent reads from a phase, all frames together.
    output_bytes: int = 256 * _MIB
    #: May fork and exec, use sockets (AF_INET, AF_UNIX; netlink only to list interfaces) in a network of its own with
    #: nobody else in it, and has a ``/dev/shm`` (as large as ``/tmp``). Memory and files are limited for each process,
    #: and CPU time is only known for those that live or were waited for: the wall clock is what bounds such a phase.
    multiprocess: bool = False
    #: NVIDIA's devices and libraries.
    gpu: bool = False
    #: Installed distributions that can be imported, with all they depend on.
    packages: tuple[str, ...] = ()
    #: Files and folders that are there read-only: pairs of (path in the sandbox, path on this machine).
    files: tuple[tuple[str, str], ...] = ()
    #: More variables of the environment, as pairs.
    environment: tuple[tuple[str, str], ...] = field(default=(("OMP_NUM_THREADS", "1"), ("OPENBLAS_NUM_THREADS", "1")))

    def __post_init__(self) -> None:
        for name in ("cpu_seconds", "memory_bytes", "tasks", "tmpfs_bytes", "file_bytes", "output_bytes"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be more than 0, not {getattr(self, name)}")
        if self.wall_seconds is not None and not 0 < self.wall_seconds < math.inf:
            raise ValueError(f"wall_seconds must be more than 0 (or None), not {self.wall_seconds}")
        if not 16 <= self.descriptors <= 65_536:
            raise ValueError(f"descriptors must be 16 to 65536, not {self.descriptors}")
        for inside, _ in self.files:
            if not inside.startswith("/") or ".." in inside.split("/"):
                raise ValueError(f"files: {inside!r} is no absolute path")

    @property
    def wall_limit(self) -> float:
        """Seconds of wall clock, not counting waits for a core."""
        return 4 * self.cpu_seconds if self.wall_seconds is None else self.wall_seconds

    def for_inside(self) -> dict[str, Any]:
        """What the process in the sandbox needs of this, as JSON."""
        return {
            "cpu_limit": math.ceil(self.cpu_seconds) + 1,  # the parent is exact; this holds if it is late
            "memory_bytes": self.memory_bytes,
            "tasks": self.tasks,
            "file_bytes": self.file_bytes,
            "tmpfs_bytes": self.tmpfs_bytes,
            "descriptors": self.descriptors,
            "multiprocess": self.multiprocess,
            "gpu": self.gpu,
        }

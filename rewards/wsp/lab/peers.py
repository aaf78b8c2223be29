"""Whose process is at the other end of a connection on loopback: the kernel knows. Linux alone."""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

from weightgym.rewards.wsp.lab.errors import LabError

_TABLE = Path("/proc/net/tcp")
Address = tuple[str, int]


def available() -> bool:
    """Whether this system tells."""
    return _TABLE.is_file()


def check_foreign(client: Address, server: Address) -> None:
    """Whether the client runs under another user than the lab, who could read the lab's files and memory otherwise.

    Raises:
        LabError: it runs under the lab's user or as root, or the kernel doesn't say.
    """
    uid = peer_uid(client, server)
    if uid is None:
        raise LabError(403, "unknown_user", "the system does not say which user this client runs as")
    if uid in (0, os.getuid(), os.geteuid()):
        raise LabError(
            403, "same_user", "on the open track a client runs as another user than the lab, and not as root"
        )


def peer_uid(client: Address, server: Address) -> int | None:
    """The user who owns the client's socket; None where the kernel has no such connection."""
    wanted = _hexadecimal(client), _hexadecimal(server)
    for line in _TABLE.read_text(encoding="ascii").splitlines()[1:]:
        fields = line.split()
        if (fields[1], fields[2]) == wanted and fields[9] != "0":  # one without an inode has lost its owner
            return int(fields[7])
    return None


def _hexadecimal(address: Address) -> str:
    """As the table writes an IPv4 address: a number in the machine's byte order."""
    (number,) = struct.unpack("=I", socket.inet_aton(address[0]))
    return f"{number:08X}:{address[1]:04X}"

"""The streams of a task: text of its language, as many bytes as a profile asks for."""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt

from weightgym.rewards.contracts import sha256_hex
from weightgym.rewards.golf.data.compose import block
from weightgym.rewards.golf.data.draws import key_of
from weightgym.rewards.golf.data.language import VERSION, language

SECRET_VARIABLE = "WEIGHTGYM_SECRET"
_NEWLINE = 10


def secret(default: str) -> str:
    """``WEIGHTGYM_SECRET``, or else the default. Never print it: :func:`secret_sha256` is for records."""
    return os.environ.get(SECRET_VARIABLE) or default


def secret_sha256(value: str) -> str:
    """What is stored with a score: equal hashes say that two scores saw the same bytes."""
    return sha256_hex(value)


def stream(profile: str, task: str, split: str, secret: str, size: int) -> npt.NDArray[np.uint8]:
    """The first ``size`` bytes of a split, uint8 of shape (size,), read-only.

    A pure function of its arguments, and the start of every longer stream of the same four names. It is valid UTF-8:
    where the end would cut a character, newlines stand for its first bytes.

    Raises:
        ValueError: the size is negative.
    """
    if size < 0:
        raise ValueError(f"a stream has 0 bytes or more, not {size}")
    spoken, key = language(task), key_of(VERSION, "stream", profile, task, split, secret)
    out = np.empty(size, dtype=np.uint8)
    filled = index = 0
    while filled < size:
        text = block(spoken, key_of(key, index))[: size - filled]
        out[filled : filled + text.size] = text
        filled, index = filled + text.size, index + 1
    _mend_end(out)
    out.flags.writeable = False
    return out


def sample(task: str, size: int) -> str:
    """Under ``size`` bytes of text in the language of a task: prose, code and a table, of no split that is trained or
    scored on."""
    spoken, key = language(task), key_of(VERSION, "sample", task)
    parts = [
        block(spoken, key, register).tobytes()[: size // len(spoken.units)] for register in range(len(spoken.units))
    ]
    whole = (part[: part.rfind(b"\n")] if b"\n" in part else part[: part.rfind(b" ")] for part in parts)
    return "\n\n".join(part.decode().strip("\n") for part in whole) + "\n"


def _mend_end(out: npt.NDArray[np.uint8]) -> None:
    for back in range(1, min(4, out.size) + 1):
        byte = int(out[-back])
        if byte < 0x80:
            return
        if byte >= 0xC0:  # the first byte of a character of 2, 3 or 4
            if back < 2 + (byte >= 0xE0) + (byte >= 0xF0):
                out[-back:] = _NEWLINE
            return

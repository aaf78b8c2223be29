"""What a solution is trained and scored on: two streams of bytes and where they are from."""

from __future__ import annotations

import functools
import hashlib
import os
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from weightgym.rewards.contracts import TaskError
from weightgym.rewards.golf.data.language import VERSION
from weightgym.rewards.golf.data.stream import secret, secret_sha256, stream
from weightgym.rewards.golf.profile import Profile
from weightgym.rewards.sandbox import Sealed

#: A row of the longest context that a solution may ask for, the byte after it, and one more: training draws where its
#: rows begin, as the public harness does, and never takes the last place.
LEAST_BYTES = 2048 + 2
OTHER_BYTES = 1 << 16


@dataclass(frozen=True, eq=False)
class Corpus:
    """Training and validation bytes, uint8 of shape (bytes,), read-only; ``origin`` is stored with every score.

    ``other`` is text of the same kind that counts for nothing: the audit shows it behind secret places.
    """

    train: npt.NDArray[np.uint8]
    val: npt.NDArray[np.uint8]
    other: npt.NDArray[np.uint8]
    origin: dict[str, Any]

    @functools.cached_property
    def train_input(self) -> Sealed:
        """The training bytes as the sandbox takes them, made once."""
        sealed = Sealed(np.ascontiguousarray(self.train).data)
        weakref.finalize(self, sealed.close)
        return sealed


@functools.lru_cache(8)
def _language_corpus(profile: Profile, task: str, key: str) -> Corpus:
    sizes = {"train": profile.train_bytes, "val": profile.val_bytes, "audit": OTHER_BYTES}
    train, val, other = (stream(profile.name, task, split, key, size) for split, size in sizes.items())
    origin = {"kind": "language", "generator": VERSION, "task": task, "secret_sha256": secret_sha256(key)}
    return Corpus(train, val, other, origin | _measured(train, val))


def language_corpus(profile: Profile, task: str) -> Corpus:
    """The text of a task, made with ``WEIGHTGYM_SECRET`` or the profile's public secret."""
    return _language_corpus(profile, task, secret(profile.public_secret))


def file_corpus(profile: Profile, train: str | Path, val: str | Path) -> Corpus:
    """The bytes of two files (``--train-bytes``, ``--val-bytes``), memory-mapped: all of the first one, and of the
    second one as much as the profile scores.

    Raises:
        TaskError: a file is missing, can't be read, is no file or too small, or both are the same file.
    """
    mapped = _map("--train-bytes", Path(train)), _map("--val-bytes", Path(val))
    if os.path.samefile(train, val):
        raise TaskError(f"--train-bytes and --val-bytes are both {train}: a model would be scored on what it has seen")
    scored = mapped[1][: profile.val_bytes]
    return Corpus(mapped[0], scored, mapped[0][-OTHER_BYTES:], {"kind": "files", **_measured(mapped[0], scored)})


def _map(option: str, path: Path) -> npt.NDArray[np.uint8]:
    try:
        if not path.is_file():
            raise TaskError(f"{option} {path}: {'not a file' if path.exists() else 'no such file'}")
        size = path.stat().st_size
        if size < LEAST_BYTES:
            raise TaskError(f"{option} {path}: {size:,} bytes are too few; a row of 2,048 needs {LEAST_BYTES:,}")
        mapped: npt.NDArray[np.uint8] = np.memmap(path, dtype=np.uint8, mode="r")
        return mapped
    except OSError as error:
        raise TaskError(f"{option} {path}: {error.strerror or error}") from None


def _measured(train: npt.NDArray[np.uint8], val: npt.NDArray[np.uint8]) -> dict[str, Any]:
    """Sizes and digests: equal ones are the same contest, and a saved run of it need not be made again."""
    digests = {
        "train_sha256": hashlib.sha256(train.data).hexdigest(),
        "val_sha256": hashlib.sha256(val.data).hexdigest(),
    }
    return {"train_bytes": train.size, "val_bytes": val.size, **digests}

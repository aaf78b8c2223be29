"""Scoring any corpus: two files of bytes instead of a language."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from weightgym.rewards.contracts import TaskError
from weightgym.rewards.golf.data.corpus import LEAST_BYTES, file_corpus
from weightgym.rewards.golf.profile import profile

CPU = profile("golf-cpu-v1")


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    train, val = tmp_path / "train.bin", tmp_path / "val.bin"
    train.write_bytes(bytes(range(256)) * 400)
    val.write_bytes(bytes(reversed(range(256))) * 100)
    return train, val


def test_files_are_mapped_and_the_profile_says_how_much_is_scored(files: tuple[Path, Path]) -> None:
    corpus = file_corpus(CPU, *files)
    assert isinstance(corpus.train, np.memmap)
    assert corpus.train.tobytes() == files[0].read_bytes()  # any bytes, UTF-8 or not
    assert corpus.val.tobytes() == files[1].read_bytes()[: CPU.val_bytes]
    assert corpus.origin == {
        "kind": "files",
        "train_bytes": 102_400,
        "val_bytes": CPU.val_bytes,
        "train_sha256": hashlib.sha256(files[0].read_bytes()).hexdigest(),
        "val_sha256": hashlib.sha256(files[1].read_bytes()[: CPU.val_bytes]).hexdigest(),
    }
    with pytest.raises(ValueError, match="read-only"):
        corpus.train[0] = 1


def test_a_short_validation_file_is_scored_whole(files: tuple[Path, Path]) -> None:
    files[1].write_bytes(b"x" * LEAST_BYTES)
    assert file_corpus(CPU, *files).val.size == LEAST_BYTES


def test_errors_name_the_option_and_the_file(files: tuple[Path, Path], tmp_path: Path) -> None:
    train, val = files
    missing, small = tmp_path / "missing.bin", tmp_path / "small.bin"
    small.write_bytes(b"x" * (LEAST_BYTES - 1))
    for bad, message in (
        (missing, "no such file"),
        (tmp_path, "not a file"),
        (small, f"{LEAST_BYTES - 1:,} bytes are too few"),
    ):
        with pytest.raises(TaskError, match=f"--train-bytes {bad}: {message}"):
            file_corpus(CPU, bad, val)
        with pytest.raises(TaskError, match=f"--val-bytes {bad}: {message}"):
            file_corpus(CPU, train, bad)
    (tmp_path / "link.bin").symlink_to(train)
    for same in (train, tmp_path / "link.bin"):
        with pytest.raises(TaskError, match="a model would be scored on what it has seen"):
            file_corpus(CPU, train, same)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_can_not_be_read(files: tuple[Path, Path]) -> None:
    files[1].chmod(0)
    with pytest.raises(TaskError, match=r"--val-bytes .*Permission denied"):
        file_corpus(CPU, *files)

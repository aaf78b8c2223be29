"""What the text of Golf's languages is like: how much there is to learn, from where, and what two texts share."""

from __future__ import annotations

import itertools
import zlib

import numpy as np
import pytest
from golf_text import TASKS, Bytes, bag_bits, bigram_bits, compressed_bits, order_bits, shared_share, windows

from weightgym.rewards.golf.data.stream import stream

SECRET = "a secret"


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_no_table_and_no_compressor_wins(task: str) -> None:
    text = stream("golf-full-v1", task, "val", SECRET, 500_000)
    bz2_bits, xz_bits = compressed_bits(text)
    assert min(bz2_bits, xz_bits) > 1.9
    assert bigram_bits(text) > 3.3
    assert bigram_bits(text) - max(bz2_bits, xz_bits) > 0.7  # room for models between the two


@pytest.mark.parametrize("task", ["lang/0", "lang/11", "lang/30"])
def test_every_byte_of_context_helps_and_training_text_teaches(task: str) -> None:
    train, val = (
        stream("golf-full-v1", task, split, SECRET, size) for split, size in (("train", 8_000_000), ("val", 50_000))
    )
    bits = order_bits(train, val, 4)
    assert [before - after > 0.15 for before, after in itertools.pairwise(bits)] == [True] * 4
    foreign = order_bits(stream("golf-full-v1", "lang/7", "train", SECRET, 2_000_000), val, 2)
    assert foreign[2] > bits[2] + 2


@pytest.mark.parametrize("task", ["lang/0", "lang/14", "lang/29"])
def test_counts_that_fit_into_an_artifact_are_no_match_for_context(task: str) -> None:
    """Two million counts have two bytes each. What the bytes so far say is worth as much as the second byte of context
    and more, and 32 bytes don't say all of it."""
    train, val = (
        stream("golf-full-v1", task, split, SECRET, size) for split, size in (("train", 8_000_000), ("val", 50_000))
    )
    assert min(order_bits(train, val, 5, entries=700_000)) > 2.3
    bits = order_bits(train, val, 1)
    assert bag_bits(train, val, 512) < bits[1] - 0.7
    assert bag_bits(train, val, 512) < bag_bits(train, val, 32) - 0.2


@pytest.mark.parametrize("task", ["lang/1", "lang/12", "lang/31"])
def test_documents_hang_together(task: str) -> None:
    """What stands 300 bytes back says more of a passage than what stands far off: names, topics and columns return."""
    text = stream("golf-full-v1", task, "val", SECRET, 400_000)
    far, near, count = 0, 0, 150
    for start in range(0, count * 2400, 2400):
        passage = text[start + 900 : start + 1200]
        near += _cost(text[start : start + 600], passage)
        far += _cost(text[(start + 200_000) % 399_000 :][:600], passage)
    assert near < 0.93 * far


def _cost(before: Bytes, passage: Bytes) -> int:
    """Bytes that the passage adds to the compressed size."""
    return len(zlib.compress(before.tobytes() + passage.tobytes(), 9)) - len(zlib.compress(before.tobytes(), 9))


@pytest.mark.parametrize("task", ["lang/0", "lang/9", "lang/26"])
def test_train_and_validation_share_the_language_and_no_passage(task: str) -> None:
    train, val = (
        stream("golf-full-v1", task, split, SECRET, size) for split, size in (("train", 4_000_000), ("val", 100_000))
    )
    words, known = (set(text.tobytes().decode().split()) for text in (val, train))
    foreign = set(stream("golf-full-v1", "lang/7", "train", SECRET, 4_000_000).tobytes().decode().split())
    assert len(words & known) > 0.4 * len(words)
    assert len(words & foreign) < 0.15 * len(words)
    assert shared_share(val, train, 8) > 0.4
    assert shared_share(val, train, 32) < 0.03
    assert not np.isin(windows(val, 128), windows(train, 128)).any()


@pytest.mark.parametrize(("one", "other"), [("lang/0", "lang/1"), ("lang/3", "lang/24"), ("lang/23", "lang/31")])
def test_another_task_is_another_language(one: str, other: str) -> None:
    first, second = (stream("golf-full-v1", task, "train", SECRET, 1_000_000) for task in (one, other))
    assert shared_share(first, second, 16) < 0.02
    words, others = (
        {word for word in text.tobytes().decode().split() if len(word) > 4 and word.isalpha()}
        for text in (first, second)
    )
    assert len(words & others) < 0.03 * len(words)


def test_all_languages_differ_in_their_words() -> None:
    seen: dict[str, int] = {}
    for task in TASKS:
        text = stream("golf-cpu-v1", task, "val", SECRET, 30_000).tobytes().decode()
        for word in {word for word in text.split() if len(word) > 5 and word.isalpha()}:
            seen[word] = seen.get(word, 0) + 1
    assert sum(count > 1 for count in seen.values()) < 0.03 * len(seen)
    assert max(seen.values()) <= 6

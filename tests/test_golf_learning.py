"""What models make of Golf's languages, through the whole evaluator: how far the default gets, and a better one."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from golf_evaluation import DEFAULT, evaluate
from golf_text import bigram_bits, compressed_bits

from weightgym.rewards.golf.data.corpus import language_corpus
from weightgym.rewards.golf.profile import profile

BAG = (Path(__file__).parent / "golf_zoo" / "h130_bag.py").read_bytes()
#: Full size in one process without a GPU, wherever it runs.
FULL = dataclasses.replace(profile("golf-full-v1"), clock="cpu", gpus=0, train_seconds=1200, post_seconds=1200)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["lang/24", pytest.param("lang/0", marks=pytest.mark.nightly)])
def test_a_good_model_is_far_better_at_small_size(task: str) -> None:
    cpu = profile("golf-cpu-v1")
    corpus = language_corpus(cpu, task)
    default, bag = evaluate(DEFAULT, cpu, corpus), evaluate(BAG, cpu, corpus)
    assert (default.status, bag.status) == ("ok", "ok")
    assert default.val_bpb is not None
    assert bag.val_bpb is not None
    assert bag.val_bpb < default.val_bpb - 0.5


@pytest.mark.nightly
@pytest.mark.parametrize("task", ["lang/0", "lang/24"])
def test_the_default_lands_between_and_a_good_model_far_below_at_full_size(task: str) -> None:
    """About twenty minutes of one core."""
    corpus = language_corpus(FULL, task)
    default, bag = evaluate(DEFAULT, FULL, corpus), evaluate(BAG, FULL, corpus)
    assert default.val_bpb is not None
    assert bag.val_bpb is not None
    assert max(compressed_bits(corpus.val)) < default.val_bpb < bigram_bits(corpus.val)
    assert bag.val_bpb < default.val_bpb - 0.5


@pytest.mark.nightly
def test_longer_context_helps_at_full_size() -> None:
    corpus = language_corpus(FULL, "lang/0")
    long, short = (
        evaluate(BAG.replace(b'"seq_len": 256', b'"seq_len": %d' % length), FULL, corpus) for length in (512, 128)
    )
    assert long.val_bpb is not None
    assert short.val_bpb is not None
    assert long.val_bpb < short.val_bpb - 0.05  # it was 2.137 and 2.229

"""Small evaluations in the real sandbox: a profile of seconds, a corpus of words, one evaluator a process."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from weightgym.rewards.golf.check import check
from weightgym.rewards.golf.data.corpus import Corpus
from weightgym.rewards.golf.evaluate import Evaluator
from weightgym.rewards.golf.phases import Candidate
from weightgym.rewards.golf.profile import Budget, Profile, Schedule
from weightgym.rewards.golf.report import Result
from weightgym.rewards.golf.tensors import State

WORDS = b"the of and to in is that it was for on are as with his they at be this from have or by one had not".split()
DEFAULT = b"def get_config() -> dict:\n    return {}\n"
SMALL = b'{"model_dim": 128, "num_layers": 2, "seq_len": 128, "train_steps": 50}'
TINY = b"def get_config() -> dict:\n    return " + SMALL + b"\n"
#: All 50 steps, of 1,024 tokens.
PROFILE = Profile(
    name="test",
    train_bytes=60_000,
    val_bytes=8_000,
    clock="cpu",
    train_seconds=20,
    post_seconds=10,
    batch_divisor=32,
    public_secret="test",
)
SHORT = dataclasses.replace(PROFILE, name="test-short", step_share=(1, 16), train_seconds=4, post_seconds=4)


def text(seed: int, size: int) -> bytes:
    draws = np.random.default_rng(seed)
    weights = 1 / np.arange(1, len(WORDS) + 1)
    words = draws.choice(len(WORDS), size // 3, p=weights / weights.sum())
    return b" ".join(WORDS[word] for word in words)[:size]


TRAIN, VALIDATION = text(1, 60_000), text(2, 8_000)
CORPUS = Corpus(
    np.frombuffer(TRAIN, np.uint8),
    np.frombuffer(VALIDATION, np.uint8),
    np.frombuffer(text(3, 20_000), np.uint8),
    {"kind": "words"},
)


@functools.cache
def evaluator(profile: Profile = SHORT) -> Evaluator:
    """One a profile, for as long as the process lives."""
    return Evaluator(profile)


def evaluate(source: bytes, profile: Profile = SHORT, corpus: Corpus = CORPUS) -> Result:
    """The result of a solution, from the whole evaluator."""
    return evaluator(profile).evaluate(source, corpus)


def candidate(source: bytes, config: Mapping[str, Any] | None = None) -> Candidate:
    """A solution that the gate has not seen, with a config of our own."""
    started = evaluator().start(check(TINY))
    return dataclasses.replace(started, source=source, config={**started.config, **(config or {})})


def train(source: bytes, config: Mapping[str, Any] | None = None, *, steps: int = 2) -> State:
    """The trained state of such a solution."""
    one = candidate(source, config)
    rows = int(one.config["seq_len"])
    return one.train(CORPUS.train_input, Schedule(steps, 8 * rows, 0, 0), Budget(10))

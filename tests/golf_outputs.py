"""Outputs of real runs, and edited ones that still have a hash that fits."""

from __future__ import annotations

import functools
from typing import Any

from weightgym.rewards.golf.data.corpus import Corpus, language_corpus
from weightgym.rewards.golf.evaluate import Evaluator
from weightgym.rewards.golf.output import Output
from weightgym.rewards.golf.profile import SMOKE, profile

TASK = "lang/24"


def small(train_steps: int = 50, more: str = "") -> bytes:
    """A legal solution that runs in a moment."""
    config = {"model_dim": 128, "num_layers": 2, "seq_len": 128, "train_steps": train_steps}
    return f"{more}def get_config() -> dict:\n    return {config}\n".encode()


def corpus() -> Corpus:
    return language_corpus(profile(SMOKE), TASK)


@functools.cache
def evaluator() -> Evaluator:
    """In the real sandbox, for as long as the process lives."""
    return Evaluator(profile(SMOKE), jobs=1)


@functools.cache
def ran(raw: bytes) -> Output:
    """The output of a real run."""
    return Output.of(evaluator().evaluate(raw, corpus()))


def forged(output: Output, **changes: Any) -> Output:
    """The output with other fields, as somebody would write it who knows how hashes are made."""
    return Output.model_validate({**output.model_dump(exclude={"hash"}), **changes})

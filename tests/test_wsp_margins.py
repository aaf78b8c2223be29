"""Margins by hand, and what makes a model unmeasurable."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import torch
import wsp_models

from weightgym.rewards.wsp.kl import NonFinite
from weightgym.rewards.wsp.margins import margin, mean_logprob

BASE = wsp_models.base()


def model(ids: Sequence[int]) -> torch.Tensor:
    return BASE.logits(ids, {})


def after(ids: Sequence[int]) -> torch.Tensor:
    """The next token is the last one with probability 0.75, of two."""
    return torch.tensor([[0.75, 0.25] if id == 0 else [0.25, 0.75] for id in ids]).log()


def test_a_mean_over_the_continuations_own_tokens() -> None:
    assert mean_logprob(after, [1, 0], [0]) == pytest.approx(math.log(0.75), rel=1e-6)
    assert mean_logprob(after, [1], [0]) == pytest.approx(math.log(0.25), rel=1e-6)
    assert mean_logprob(after, [0], [0, 1, 1]) == pytest.approx((2 * math.log(0.75) + math.log(0.25)) / 3, rel=1e-6)
    assert margin(after, [0], [0, 0, 0], [1]) == pytest.approx(math.log(3), rel=1e-6)
    assert margin(after, [0], [1, 0], [1, 0]) == 0


def test_it_is_the_probability_of_each_token_after_those_before() -> None:
    prompt, continuation = [9, 8, 7], [6, 5]
    first = model(prompt)[-1].log_softmax(-1)[6]
    second = model([*prompt, 6])[-1].log_softmax(-1)[5]
    assert mean_logprob(model, prompt, continuation) == pytest.approx(float(first + second) / 2, rel=1e-5)


@pytest.mark.parametrize("bad", [[math.nan, 0.0], [math.inf, 0.0], [3e38, -3e38], [0.0, -math.inf]])
def test_what_is_not_finite_is_never_a_number(bad: list[float]) -> None:
    with pytest.raises(NonFinite, match="non_finite"):
        mean_logprob(lambda ids: torch.tensor([bad] * len(ids)), [0], [1])


@pytest.mark.parametrize(("prompt", "continuation"), [([], [1]), ([1], []), ([], [])])
def test_nothing_has_no_probability(prompt: list[int], continuation: list[int]) -> None:
    with pytest.raises(ValueError, match="one token at least"):
        mean_logprob(model, prompt, continuation)

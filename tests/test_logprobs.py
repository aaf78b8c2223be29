"""Log-probabilities and entropy: values by hand, masks that hide everything, types, refusals."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from weightgym.trainers.logprobs import completion_logprobs, token_entropy, token_logprobs
from weightgym.trainers.loss import LossConfig, LossName, count_batch, policy_loss


def random_batch(seed: int, batch: int = 3, tokens: int = 5, vocabulary: int = 7) -> tuple[Tensor, Tensor, Tensor]:
    rng = torch.Generator().manual_seed(seed)
    logits = torch.randn(batch, tokens, vocabulary, generator=rng) * 3
    ids = torch.randint(vocabulary, (batch, tokens), generator=rng)
    return logits, ids, torch.rand(batch, tokens, generator=rng) < 0.6


def test_by_hand() -> None:
    # exp(logits) = 1, 2, 5: p = 1/8, 2/8, 5/8. At T = 1/2 they are squared: 1, 4, 25 of 30.
    logits = torch.tensor([[1.0, 2, 5]]).log()
    for temperature, wanted in ((1.0, [1 / 8, 2 / 8, 5 / 8]), (0.5, [1 / 30, 4 / 30, 25 / 30])):
        for token, probability in enumerate(wanted):
            got = token_logprobs(logits, torch.tensor([token]), temperature=temperature)
            assert got.tolist() == pytest.approx([math.log(probability)], abs=1e-6)
        entropy = token_entropy(logits, torch.tensor([True]), temperature=temperature)
        assert entropy.tolist() == pytest.approx([-sum(p * math.log(p) for p in wanted)], abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.3, 1.0, 1.7]), st.sampled_from([1, 2, 1000]))
def test_equals_log_softmax(seed: int, temperature: float, chunk: int) -> None:
    logits, ids, mask = random_batch(seed)
    table = (logits.double() / temperature).log_softmax(-1)
    zero = torch.zeros((), dtype=torch.float64)
    wanted = torch.where(mask, table.gather(-1, ids[..., None])[..., 0], zero)
    got = completion_logprobs(logits, ids, mask, temperature=temperature)
    torch.testing.assert_close(got.double(), wanted, rtol=1e-5, atol=1e-5)
    entropy = torch.where(mask, -(table.exp() * table).sum(-1), zero)
    got = token_entropy(logits, mask, temperature=temperature, chunk=chunk)
    torch.testing.assert_close(got.double(), entropy, rtol=1e-5, atol=1e-5)


def test_what_is_masked_is_not_read() -> None:
    logits, ids, mask = random_batch(1)
    dirty, dirty_ids = logits.clone(), ids.clone()
    dirty[~mask], dirty_ids[~mask] = math.nan, -100
    one, other = logits.requires_grad_(), dirty.requires_grad_()
    value = completion_logprobs(one, ids, mask, temperature=0.7)
    same = completion_logprobs(other, dirty_ids, mask, temperature=0.7)
    assert torch.equal(value, same)
    (gradient,) = torch.autograd.grad(value.sum(), one)
    assert torch.equal(gradient, *torch.autograd.grad(same.sum(), other))
    assert not gradient[~mask].any()
    assert torch.equal(token_entropy(one, mask, temperature=2.0), token_entropy(other, mask, temperature=2.0))


@pytest.mark.parametrize("loss", ["grpo", "gspo", "cispo"])
def test_environment_tokens_are_not_trained_on(loss: LossName) -> None:
    """Other logits where the environment wrote: loss and gradient are the same, bit for bit, and 0 there."""
    logits, ids, mask = random_batch(2, batch=4)
    changed = torch.where(mask[..., None], logits, logits * -5 + 1)
    results = []
    for x in (logits.requires_grad_(), changed.requires_grad_()):
        logp = completion_logprobs(x, ids, mask, temperature=1.0)
        old = torch.full_like(logp, -2.0)
        config, advantages = LossConfig(loss=loss), torch.tensor([1.0, -1, 0.5, 2])
        result = policy_loss(logp, old, old, advantages, mask, config=config, normaliser=count_batch([mask]))
        results.append((result.loss.detach(), *torch.autograd.grad(result.loss, x)))
    (loss_before, gradient), (loss_after, after) = results
    assert torch.equal(loss_before, loss_after)
    assert torch.equal(gradient, after)
    assert gradient[mask].any()
    assert not gradient[~mask].any()


def test_gradient_against_finite_differences() -> None:
    logits, ids, mask = random_batch(3)
    point = logits.double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: completion_logprobs(x, ids, mask, temperature=0.7), (point,))


def test_low_precision_logits_are_computed_in_float32() -> None:
    logits, ids, _ = random_batch(4)
    short = logits.bfloat16()
    got = token_logprobs(short, ids, temperature=0.7)
    assert got.dtype == torch.float32
    assert torch.equal(got, token_logprobs(short.float(), ids, temperature=0.7))
    assert token_logprobs(logits.double(), ids, temperature=0.7).dtype == torch.float64


def test_extreme_logits() -> None:
    logits = torch.tensor([[1e4, 0.0, -math.inf], [1e30, -1e30, 0.0]])
    assert token_logprobs(logits, torch.tensor([0, 0]), temperature=1.0).tolist() == [0, 0]
    assert token_logprobs(logits, torch.tensor([1, 2]), temperature=1.0).tolist() == [-1e4, pytest.approx(-1e30)]
    assert token_entropy(logits, torch.tensor([True, True]), temperature=1.0).tolist() == [0, 0]


def test_a_constant_added_to_the_logits_changes_nothing() -> None:
    logits, ids, _ = random_batch(5)
    got = token_logprobs(logits + 3, ids, temperature=1.0)
    torch.testing.assert_close(got, token_logprobs(logits, ids, temperature=1.0), rtol=0, atol=1e-5)


def test_nothing_to_compute() -> None:
    logits, ids, mask = random_batch(6)
    logits.requires_grad_()
    nothing = torch.zeros_like(mask)
    got = completion_logprobs(logits, ids, nothing, temperature=0.5)
    assert got.tolist() == torch.zeros(3, 5).tolist()
    assert not torch.autograd.grad(got.sum(), logits)[0].any()
    assert token_entropy(logits, nothing, temperature=0.5).tolist() == torch.zeros(3, 5).tolist()
    entropy = token_entropy(logits, mask, temperature=0.5)
    assert not entropy.requires_grad


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ids": torch.zeros(3, 4, dtype=torch.int64)}, r"ids has shape \(3, 4\), wanted \(3, 5\)"),
        ({"ids": torch.zeros(3, 5, dtype=torch.int32)}, "ids is torch.int32, wanted torch.int64"),
        ({"ids": torch.full((3, 5), 7)}, "ids are in 7…7, wanted 0…6"),
        ({"ids": torch.full((3, 5), -100)}, "ids are in -100…-100, wanted 0…6"),
        ({"mask": torch.ones(3, 5)}, "mask is torch.float32, wanted torch.bool"),
        ({"mask": torch.ones(5, 3, dtype=torch.bool)}, r"mask has shape \(5, 3\)"),
        ({"logits": torch.zeros(3, 5, 7, dtype=torch.int64)}, "logits are torch.int64"),
        ({"logits": torch.zeros(3, 5, 0)}, r"logits have shape \(3, 5, 0\)"),
        ({"temperature": 0.0}, "temperature is 0.0, wanted a positive finite number"),
        ({"temperature": math.nan}, "temperature is nan"),
    ],
)
def test_refusals(change: dict[str, Any], message: str) -> None:
    logits, ids, _ = random_batch(7)
    arguments: dict[str, Any] = {
        "logits": logits,
        "ids": ids,
        "mask": torch.ones(3, 5, dtype=torch.bool),
        "temperature": 1.0,
    }
    with pytest.raises(ValueError, match=message):
        completion_logprobs(**(arguments | change))
    if "ids" not in change:
        del arguments["ids"]
        with pytest.raises(ValueError, match=message):
            token_entropy(**(arguments | change))


def test_a_bad_chunk() -> None:
    with pytest.raises(ValueError, match="chunk is 0, wanted at least 1"):
        token_entropy(torch.zeros(1, 2), torch.tensor([True]), temperature=1.0, chunk=0)

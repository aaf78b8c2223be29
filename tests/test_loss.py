"""The losses: values by hand, gradients, a slow reference, and everything that must not move a bit."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any, get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from weightgym.trainers.loss import (
    Correction,
    LossConfig,
    LossName,
    LossResult,
    LossStatistics,
    Normaliser,
    count_batch,
    policy_loss,
)

LOSSES: tuple[LossName, ...] = get_args(LossName)
CORRECTIONS: tuple[Correction, ...] = get_args(Correction)
Batch = dict[str, Tensor]


def config_for(loss: LossName, **fields: Any) -> LossConfig:
    return LossConfig(loss=loss, max_tokens=10 if loss == "dr_grpo" else None, **fields)


def batch_of(seed: int, rows: int = 4, tokens: int = 6, dtype: torch.dtype = torch.float32) -> Batch:
    """Random tensors; ratios spread well over both clips."""
    rng = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=rng, dtype=torch.float64)

    old = -normal(rows, tokens).abs() - 0.1
    batch = {
        "logp": old + 0.4 * normal(rows, tokens),
        "old_logp": old,
        "sampler_logp": old + 0.6 * normal(rows, tokens),
        "ref_logp": old + 0.5 * normal(rows, tokens),
        "advantages": normal(rows),
    }
    mask = torch.rand(rows, tokens, generator=rng) < 0.7
    return {name: tensor.to(dtype) for name, tensor in batch.items()} | {"mask": mask}


def run(batch: Batch, config: LossConfig, normaliser: Normaliser | None = None) -> tuple[LossResult, Tensor]:
    """The result, and the gradient with respect to ``logp``."""
    logp = batch["logp"].clone().requires_grad_()
    normaliser = normaliser or count_batch([batch["mask"]])
    result = policy_loss(**(batch | {"logp": logp}), config=config, normaliser=normaliser)
    (gradient,) = torch.autograd.grad(result.loss, logp)
    return result, gradient


def tokens_of(ratios: list[list[float]], advantages: list[float], correction: list[list[float]] | None = None) -> Batch:
    """A batch by its ratios ``r`` and mismatch ratios ``exp(d)``; 0 is padding. All ``logp`` are -0.5."""
    r = torch.tensor(ratios, dtype=torch.float64)
    old = -0.5 - torch.where(r > 0, r, 1).log()
    sampler = old if correction is None else old - torch.tensor(correction, dtype=torch.float64).log()
    logp = torch.full_like(old, -0.5)
    advantage = torch.tensor(advantages, dtype=torch.float64)
    return {"logp": logp, "old_logp": old, "sampler_logp": sampler, "advantages": advantage, "mask": r > 0}


# One token: -min(r A, clip(r, 0.8, 1.2) A), and the gradient -r A where the first is the smaller one, else 0.
PPO = [
    (1.1, 2.0, -2.2, -2.2),  # inside
    (1.1, -2.0, 2.2, 2.2),
    (1.5, 2.0, -2.4, 0.0),  # above, and better: clipped
    (1.5, -2.0, 3.0, 3.0),  # above, though worse: pushed back
    (0.5, 2.0, -1.0, -1.0),  # below, though better: pushed back
    (0.5, -2.0, 1.6, 0.0),  # below, and worse: clipped
    (1.5, 0.0, 0.0, 0.0),
]


@pytest.mark.parametrize("loss", ["grpo", "dr_grpo", "dapo", "bnpo", "gspo"])
@pytest.mark.parametrize(("ratio", "advantage", "value", "slope"), PPO)
def test_one_token_by_hand(loss: LossName, ratio: float, advantage: float, value: float, slope: float) -> None:
    by = 10 if loss == "dr_grpo" else 1  # max_tokens
    result, gradient = run(tokens_of([[ratio]], [advantage]), config_for(loss, clip_low=0.2, clip_high=0.2))
    assert [result.loss.item(), gradient.item()] == pytest.approx([value / by, slope / by])
    assert result.statistics.clip_low == (ratio == 0.5 and advantage < 0)
    assert result.statistics.clip_high == (ratio == 1.5 and advantage > 0)
    assert result.statistics.ratio == pytest.approx(ratio)


@pytest.mark.parametrize("advantage", [2.0, -2.0])
@pytest.mark.parametrize(("ratio", "weight"), [(1.1, 1.1), (0.5, 0.8), (1.5, 1.2)])
def test_one_token_of_cispo_by_hand(ratio: float, weight: float, advantage: float) -> None:
    # -clip(r) A logp with logp = -0.5: the value is 0.5 clip(r) A, the slope -clip(r) A, also outside of the clip.
    result, gradient = run(tokens_of([[ratio]], [advantage]), config_for("cispo", clip_low=0.2, clip_high=0.2))
    assert [result.loss.item(), gradient.item()] == pytest.approx([0.5 * weight * advantage, -weight * advantage])
    assert (result.statistics.clip_low, result.statistics.clip_high) == (float(ratio == 0.5), float(ratio == 1.5))


# Rows of 1 and 3 tokens with r = 1 and A = 2 and -1: terms -2 and 1, 1, 1.
AVERAGES = [
    ("grpo", -0.5, -1, 1 / 6),  # (-2/1 + 3/3) / 2
    ("gspo", -0.5, -1, 1 / 6),
    ("dr_grpo", 0.05, -0.1, 0.05),  # (-2 + 3) / (2 * 10)
    ("dapo", 0.25, -0.5, 0.25),  # (-2 + 3) / 4
    ("bnpo", 0.25, -0.5, 0.25),
    ("cispo", -0.125, -0.5, 0.25),  # terms of -A logp: 1 and -0.5, -0.5, -0.5; their slopes -A as in dapo
]


@pytest.mark.parametrize(("loss", "value", "first", "others"), AVERAGES)
def test_averages_by_hand(loss: LossName, value: float, first: float, others: float) -> None:
    result, gradient = run(tokens_of([[1, 0, 0], [1, 1, 1]], [2, -1]), config_for(loss))
    assert result.loss.item() == pytest.approx(value)
    assert gradient.flatten().tolist() == pytest.approx([first, 0, 0, others, others, others])


def test_gspo_takes_the_geometric_mean_of_the_row() -> None:
    # r = 4 and 1: s = 2. A = -1: 2, and each token's slope is s/n = 1. A = 1: clipped at 1 + 4e-4.
    for advantage, value, slope in ((-1, 2, 1), (1, -1.0004, 0)):
        result, gradient = run(tokens_of([[4, 1]], [advantage]), config_for("gspo"))
        assert [result.loss.item(), *gradient[0].tolist()] == pytest.approx([value, slope, slope])
        assert [result.statistics.ratio, result.statistics.clip_high] == pytest.approx([2, int(advantage == 1)])


@pytest.mark.parametrize(
    ("loss", "low", "high"), [("grpo", 0.8, 1.2), ("dapo", 0.8, 1.28), ("gspo", 0.9997, 1.0004), ("cispo", 0, 5)]
)
def test_clips_of_the_papers(loss: LossName, low: float, high: float) -> None:
    logp = 1.0 if loss != "cispo" else -0.5
    result, _ = run(tokens_of([[9.0]], [1.0]), config_for(loss))
    assert result.loss.item() == pytest.approx(-high * logp)
    result, _ = run(tokens_of([[1e-9]], [-1.0]), config_for(loss))
    assert result.loss.item() == pytest.approx(low * logp, abs=1e-8)


def test_delta_bounds_the_other_side() -> None:
    # A = -1: max(min(r, 3), 1.2): 2 below delta, 3 and no slope above it. A = 1 is as without delta.
    for ratio, advantage, value, slope, clipped in ((2, -1, 2, 2, 0), (5, -1, 3, 0, 1), (5, 1, -1.2, 0, 0)):
        result, gradient = run(tokens_of([[ratio]], [advantage]), config_for("grpo", delta=3.0))
        assert [result.loss.item(), gradient.item()] == pytest.approx([value, slope])
        assert result.statistics.clip_delta == clipped


@pytest.mark.parametrize("loss", LOSSES)
def test_correction_by_hand(loss: LossName) -> None:
    # Token: 3 is cut to 2, 0.5 stays. Sequence: 3 * 0.5 = 1.5 stays, 4 * 0.8 = 3.2 is above 3 and masked.
    batch = tokens_of([[1, 1], [1, 1]], [1, 1], [[3, 0.5], [4, 0.8]])
    _, plain = run(batch, config_for(loss, correction="none"))
    for correction, weights, capped in (("token", [[2, 0.5], [2, 0.8]], 0.5), ("sequence", [[1.5, 1.5], [0, 0]], 0.5)):
        result, gradient = run(batch, config_for(loss, correction=correction))
        wanted = torch.tensor(weights, dtype=torch.float64)  # gspo's tokens share their row's ratio: its mean
        wanted = wanted.mean(1, keepdim=True).expand(2, 2) if loss == "gspo" else wanted
        torch.testing.assert_close(gradient, plain * wanted)
        assert result.statistics.capped == capped
        differences = [math.log(3), math.log(2), math.log(4), -math.log(0.8)]
        assert result.statistics.logp_diff_mean == pytest.approx(sum(differences) / 4)
        assert result.statistics.logp_diff_max == pytest.approx(math.log(4))


@pytest.mark.parametrize("loss", LOSSES)
def test_kl_by_hand(loss: LossName) -> None:
    # ref/policy = 2: 2 - ln 2 - 1 = 0.306853; its slope in logp is 1 - 2 = -1. The correction doesn't weigh it.
    batch = tokens_of([[1.0]], [0.0], [[3.0]])
    batch["ref_logp"] = batch["logp"] + math.log(2)
    by = 10 if loss == "dr_grpo" else 1
    result, gradient = run(batch, config_for(loss, kl_coefficient=0.5))
    assert result.loss.item() == pytest.approx(0.5 * 0.306853 / by, abs=1e-6)
    assert gradient.item() == pytest.approx(-0.5 / by)
    assert result.statistics.kl == pytest.approx(0.306853, abs=1e-6)
    measured, _ = run(batch, config_for(loss))
    assert (measured.loss.item(), measured.statistics.kl) == (0, result.statistics.kl)


def slow(batch: Batch, c: LossConfig) -> tuple[float, list[list[float]]]:
    """Loss and gradient by the formulas, one token after the other."""
    x = {name: tensor.tolist() for name, tensor in batch.items()}
    rows = [[t for t, on in enumerate(row) if on] for row in x["mask"]]
    n, m = sum(map(bool, rows)), sum(map(len, rows))
    low, high = 1 - c.clips[0], 1 + c.clips[1]
    total, gradient = 0.0, [[0.0] * len(row) for row in x["mask"]]
    for i, row in enumerate(rows):
        a = x["advantages"][i]
        logs = [x["logp"][i][t] - x["old_logp"][i][t] for t in row]
        mismatch = [x["old_logp"][i][t] - x["sampler_logp"][i][t] for t in row]
        by = {"grpo": n * len(row), "gspo": n * len(row), "dr_grpo": n * (c.max_tokens or 0)}.get(c.loss, m)
        for t, log, d in zip(row, logs, mismatch, strict=True):
            r = math.exp(sum(logs) / len(row) if c.loss == "gspo" else log)
            w = {"token": min(math.exp(d), c.cap), "none": 1.0, "sequence": math.exp(sum(mismatch))}[c.correction]
            w = 0.0 if c.correction == "sequence" and w > c.cap else w
            clipped = min(max(r, low), high)
            bounded = r if c.delta is None else min(r, c.delta)
            if c.loss == "cispo":
                value, slope = -clipped * a * x["logp"][i][t], -clipped * a
            else:
                value = -min(bounded * a, clipped * a)
                free = r == clipped if bounded * a > clipped * a else r == bounded
                slope = -r * a if free else 0.0
            k = x["ref_logp"][i][t] - x["logp"][i][t]
            total += (w * value + c.kl_coefficient * (math.exp(k) - k - 1)) / by
            gradient[i][t] += c.kl_coefficient * (1 - math.exp(k)) / by
            for u in row if c.loss == "gspo" else [t]:
                gradient[i][u] += w * slope / by / (len(row) if c.loss == "gspo" else 1)
    return total, gradient


@st.composite
def configs(draw: st.DrawFn) -> LossConfig:
    loss = draw(st.sampled_from(LOSSES))
    clips = {name: draw(st.sampled_from([None, 0.0, 0.1, 0.3])) for name in ("clip_low", "clip_high")}
    delta = None if loss == "cispo" else draw(st.sampled_from([None, 1.5]))
    kl, correction = draw(st.sampled_from([0.0, 0.1])), draw(st.sampled_from(CORRECTIONS))
    return config_for(loss, delta=delta, kl_coefficient=kl, correction=correction, **clips)


@settings(max_examples=200, deadline=None)
@given(configs(), st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 5))
def test_equals_the_slow_reference(config: LossConfig, seed: int, rows: int, tokens: int) -> None:
    batch = batch_of(seed, rows, tokens, torch.float64)
    result, gradient = run(batch, config)
    loss, slopes = slow(batch, config)
    assert result.loss.item() == pytest.approx(loss, rel=1e-9, abs=1e-12)
    torch.testing.assert_close(gradient, torch.tensor(slopes, dtype=torch.float64), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss != "cispo"])  # cispo's slope isn't its loss's
def test_gradient_against_finite_differences(loss: LossName, correction: Correction) -> None:
    batch = batch_of(5, dtype=torch.float64)
    config = config_for(loss, correction=correction, kl_coefficient=0.1)
    whole = count_batch([batch["mask"]])

    def value(logp: Tensor) -> Tensor:
        return policy_loss(**(batch | {"logp": logp}), config=config, normaliser=whole).loss

    assert torch.autograd.gradcheck(value, (batch["logp"].requires_grad_(),))


@settings(max_examples=100, deadline=None)
@given(configs(), st.integers(0, 10**6), st.sampled_from([math.nan, math.inf, -math.inf, 3e38, -1e30, 0.0]))
def test_padding_is_not_read(config: LossConfig, seed: int, garbage: float) -> None:
    """Garbage under the mask, and more masked columns and rows full of it: equal to the bit."""
    batch = batch_of(seed)
    batch["mask"][0] = False  # a row of nothing but padding
    plain, gradient = run(batch, config)
    dirty: Batch = {}
    for name, tensor in batch.items():
        if tensor.dim() == 2:
            fill: float = False if name == "mask" else garbage
            dirty[name] = torch.full((7, 11), fill, dtype=tensor.dtype)
            dirty[name][2:6, 3:9] = torch.where(batch["mask"], tensor, torch.full_like(tensor, fill))
        else:
            dirty[name] = torch.full((7,), garbage)
            dirty[name][3:6] = tensor[1:]
    other, moved = run(dirty, config)
    assert torch.equal(plain.loss, other.loss)
    assert torch.equal(gradient, moved[2:6, 3:9])
    assert not moved[~dirty["mask"]].any()
    assert plain.statistics == other.statistics


@settings(max_examples=60, deadline=None)
@given(configs(), st.integers(0, 10**6))
def test_splitting_the_batch_changes_nothing(config: LossConfig, seed: int) -> None:
    batch = batch_of(seed)
    whole = count_batch([batch["mask"]])
    plain, gradient = run(batch, config, whole)
    for parts in (2, 4):
        pieces = [{name: x.chunk(parts)[i] for name, x in batch.items()} for i in range(parts)]
        assert count_batch(piece["mask"] for piece in pieces) == whole
        results, slopes = zip(*(run(piece, config, whole) for piece in pieces), strict=True)
        torch.testing.assert_close(sum(r.loss for r in results), plain.loss, rtol=0, atol=1e-6)
        torch.testing.assert_close(torch.cat(slopes), gradient, rtol=0, atol=1e-6)
        total = reduce(add, (result.statistics for result in results))
        assert vars(total) == pytest.approx(vars(plain.statistics), abs=1e-6)


@settings(max_examples=30, deadline=None)
@given(configs(), st.integers(0, 10**6))
def test_a_truncated_row_leaves_sum_and_denominator(config: LossConfig, seed: int) -> None:
    batch = batch_of(seed)
    batch["mask"][1] = False
    result, gradient = run(batch, config)
    left, short = run({name: x[[0, 2, 3]] for name, x in batch.items()}, config)
    assert torch.equal(result.loss, left.loss)
    assert torch.equal(gradient[[0, 2, 3]], short)


@settings(max_examples=60, deadline=None)
@given(configs(), st.integers(0, 10**6), st.permutations(range(4)))
def test_order_of_rows_and_scale_of_advantages(config: LossConfig, seed: int, order: list[int]) -> None:
    batch, config = batch_of(seed), replace(config, kl_coefficient=0.0)
    plain, gradient = run(batch, config)
    mixed, moved = run({name: x[order] for name, x in batch.items()}, config)
    torch.testing.assert_close(mixed.loss, plain.loss, rtol=0, atol=1e-6)
    torch.testing.assert_close(moved, gradient[order], rtol=0, atol=1e-6)
    doubled, twice = run(batch | {"advantages": 2 * batch["advantages"]}, config)
    assert torch.equal(doubled.loss, 2 * plain.loss)
    assert torch.equal(twice, 2 * gradient)


@pytest.mark.parametrize("loss", LOSSES)
def test_nothing_to_train_on(loss: LossName) -> None:
    batch = batch_of(9)
    for part in (batch | {"mask": torch.zeros_like(batch["mask"])}, {name: x[:0] for name, x in batch.items()}):
        result, gradient = run(part, config_for(loss))
        assert result.loss.item() == 0
        assert not gradient.any()
        assert result.statistics == LossStatistics(0, 0, 0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_wild_ratios_stay_finite(loss: LossName, correction: Correction) -> None:
    batch = batch_of(10, rows=6)
    batch["mask"][:] = True
    for name, by in (("logp", 900), ("sampler_logp", 700), ("ref_logp", 800)):
        batch[name] += by * torch.tensor([-1, 1, 1, -1, 0, 0])[:, None]
    result, gradient = run(batch, config_for(loss, correction=correction, kl_coefficient=0.1))
    assert result.loss.isfinite()
    assert gradient.isfinite().all()


def test_only_logp_gets_a_gradient() -> None:
    batch = batch_of(11)
    mask = batch.pop("mask")
    for tensor in batch.values():
        tensor.requires_grad_()
    result = policy_loss(**batch, mask=mask, config=LossConfig(kl_coefficient=1), normaliser=count_batch([mask]))
    gradients = torch.autograd.grad(result.loss, list(batch.values()), allow_unused=True)
    assert [name for name, x in zip(batch, gradients, strict=True) if x is not None] == ["logp"]


@pytest.mark.parametrize("name", ["logp", "old_logp", "sampler_logp", "ref_logp", "advantages", "mask"])
def test_a_wrong_shape_or_type_names_the_argument(name: str) -> None:
    batch = batch_of(12)
    whole = count_batch([batch["mask"]])
    for bad, message in (
        (batch[name][0], rf"{name} has shape \((6,)?\), wanted \((4,( 6)?|batch, tokens)\)"),
        (batch[name].half(), rf"{name} is torch\.float16, wanted torch\.(float32|bool)"),
        (batch[name].double(), r" is torch\.float(64|32), wanted torch\.(float64|bool|float32)"),
    ):
        with pytest.raises(ValueError, match=message):
            run(batch | {name: bad}, LossConfig(), whole)
    with pytest.raises(ValueError, match=r"mask is torch.float32 of shape \(4, 6\), wanted torch.bool"):
        count_batch([batch["mask"], batch["mask"].float()])


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["logp", "old_logp", "sampler_logp", "ref_logp", "advantages"])
def test_a_trained_token_that_is_not_finite_is_named(name: str, value: float) -> None:
    batch = batch_of(13)
    batch["mask"][2] = torch.tensor([False, False, False, True, True, True])
    batch[name][2] = value
    with pytest.raises(ValueError, match=rf"^{name} is -?(nan|inf) at row 2, token 3, wanted a finite number"):
        run(batch, LossConfig())


def test_missing_reference_and_too_small_normaliser() -> None:
    batch = batch_of(14)
    del batch["ref_logp"]
    assert run(batch, LossConfig())[0].statistics.kl is None
    with pytest.raises(ValueError, match=r"kl_coefficient is 0\.1, but ref_logp is missing"):
        run(batch, LossConfig(kl_coefficient=0.1))
    whole = count_batch([batch["mask"]])
    for small in (replace(whole, tokens=whole.tokens - 1), replace(whole, sequences=whole.sequences - 1)):
        with pytest.raises(ValueError, match="count the whole optimisation batch with count_batch"):
            run(batch, LossConfig(), small)
    with pytest.raises(ValueError, match="give ref_logp for all or for none"):
        LossStatistics(0, 0, 0, 1, 0.1, 0, 0, 0) + LossStatistics(0, 0, 0, 1, None, 0, 0, 0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"loss": "ppo"}, "loss is 'ppo', wanted one of grpo, dr_grpo, dapo, bnpo, gspo, cispo"),
        ({"correction": "tokens"}, "correction is 'tokens', wanted one of token, sequence, none"),
        ({"clip_low": -0.1}, "clip_low is -0.1, wanted a finite number of at least 0"),
        ({"clip_high": math.nan}, "clip_high is nan"),
        ({"kl_coefficient": -1.0}, "kl_coefficient is -1.0"),
        ({"correction_cap": 0.5}, "correction_cap is 0.5, wanted a finite number of at least 1"),
        ({"correction_cap": 2.0, "correction": "none"}, "correction_cap is given, but correction is 'none'"),
        ({"delta": 1.2}, r"delta is 1.2, wanted a finite number above 1 \+ clip_high = 1.2"),
        ({"delta": 9.0, "loss": "cispo"}, "delta is given, but cispo has none"),
        ({"loss": "dr_grpo"}, "max_tokens is None, wanted 1 or more for dr_grpo and None for other losses"),
        ({"loss": "dr_grpo", "max_tokens": 0}, "max_tokens is 0"),
        ({"max_tokens": 64}, "max_tokens is 64"),
    ],
)
def test_bad_configs(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LossConfig(**fields)

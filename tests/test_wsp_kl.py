"""KL against sums by hand; whatever must not matter changes no bit."""

from __future__ import annotations

import math
import random
import re
import threading
from collections.abc import Sequence

import numpy as np
import pytest
import torch
import wsp_models
from hypothesis import given, settings
from hypothesis import strategies as st
from wsp_models import DOWN

from weightgym.rewards.contracts import GraderError
from weightgym.rewards.wsp.edits import RankOne, Scale, frozen
from weightgym.rewards.wsp.kl import Logits, NonFinite, mixture_kl, text_kl, token_kl, unpadded
from weightgym.rewards.wsp.model import overlay
from weightgym.rewards.wsp.profile import profile
from weightgym.rewards.wsp.threads import one_thread

V1 = profile("wsp-v1")
BASE = wsp_models.base()
EDITED = wsp_models.deltas(BASE)
EDITED.apply(RankOne(parameter=DOWN.format(1), left=frozen([0.5] * 32), right=frozen([0.25] * 48)))
OVERLAY = overlay(EDITED)
DICE = random.Random(4)
TEXTS = [[DICE.randrange(257) for _ in range(DICE.randint(1, 40))] for _ in range(32)]


def reference(ids: Sequence[int]) -> torch.Tensor:
    return BASE.logits(ids, {})


def submitted(ids: Sequence[int]) -> torch.Tensor:
    return BASE.logits(ids, OVERLAY)


def fixed(rows: list[list[float]]) -> Logits:
    """Probabilities as logits, whatever the text."""
    return lambda ids: torch.tensor([rows[id] for id in ids]).log()


def test_kl_by_hand() -> None:
    p, q = fixed([[0.5, 0.5], [0.25, 0.75]]), fixed([[0.25, 0.75], [0.25, 0.75]])
    kl = 0.5 * math.log(0.5 / 0.25) + 0.5 * math.log(0.5 / 0.75)
    assert text_kl(p, q, [[0]]).mean == pytest.approx(kl, rel=1e-6)
    assert text_kl(p, q, [[1]]).mean == 0
    found = text_kl(p, q, [[0, 1, 1], [1]])  # a mean over tokens, not over texts
    assert found.mean == pytest.approx(kl / 4, rel=1e-6)
    assert found.tokens == 4
    assert text_kl(q, p, [[0]]).mean == pytest.approx(
        0.25 * math.log(0.25 / 0.5) + 0.75 * math.log(0.75 / 0.5), rel=1e-6
    )


def test_the_mixture_weighs_parts_not_tokens() -> None:
    p, q = fixed([[0.5, 0.5], [0.25, 0.75]]), fixed([[0.25, 0.75], [0.25, 0.75]])
    kl = text_kl(p, q, [[0]]).mean
    found = mixture_kl(p, q, general=[[1] * 7], near=[[0], [0, 0]], profile=V1)
    assert found.mean == pytest.approx(0.25 * kl, rel=1e-12)
    assert (found.general.tokens, found.near.tokens, found.general.mean) == (7, 3, 0)
    assert mixture_kl(p, q, general=[[0]], near=[[1]], profile=V1).mean == pytest.approx(0.75 * kl, rel=1e-12)


def test_it_agrees_with_float64() -> None:
    found = text_kl(reference, submitted, TEXTS)
    total = 0.0
    for text in TEXTS:
        p, q = reference(text).double().log_softmax(-1), submitted(text).double().log_softmax(-1)
        total += float((p.exp() * (p - q)).sum())
    assert found.mean == pytest.approx(total / sum(map(len, TEXTS)), rel=1e-5)
    assert found.mean > 1e-3


def padded(texts: list[list[int]], side: str, extra: int) -> tuple[torch.Tensor, torch.Tensor]:
    longest = max(map(len, texts)) + extra
    ids, mask = torch.full((len(texts), longest), 256), torch.zeros((len(texts), longest), dtype=torch.int64)
    for row, text in enumerate(texts):
        part = slice(longest - len(text), longest) if side == "left" else slice(0, len(text))
        ids[row, part], mask[row, part] = torch.tensor(text), 1
    return ids, mask


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("size", [1, 5, 32])
@pytest.mark.parametrize("extra", [0, 3])
def test_batch_size_and_padding_change_no_bit(side: str, size: int, extra: int) -> None:
    batches = [padded(TEXTS[begin : begin + size], side, extra) for begin in range(0, len(TEXTS), size)]
    texts = [text for ids, mask in batches for text in unpadded(ids, mask)]
    assert texts == TEXTS
    assert text_kl(reference, submitted, texts) == text_kl(reference, submitted, TEXTS)


@settings(max_examples=10, deadline=None)
@given(st.permutations(range(8)))
def test_the_order_of_texts_changes_no_bit(order: list[int]) -> None:
    assert text_kl(reference, submitted, [TEXTS[place] for place in order]) == text_kl(reference, submitted, TEXTS[:8])


def test_the_order_changes_no_bit_even_where_float64_sums_would() -> None:
    def far(ids: Sequence[int]) -> torch.Tensor:
        return torch.tensor([[0.0, -2e16] if id else [0.0, 1.0] for id in ids])

    texts = [[1], *([[0]] * 9)]
    parts = [text_kl(lambda ids: torch.zeros(len(ids), 2), far, text) for text in (texts, texts[::-1])]
    assert parts[0] == parts[1]


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 31), st.lists(st.integers(0, 31), max_size=4))
def test_a_text_has_the_same_kl_whoever_else_is_asked(place: int, others: list[int]) -> None:
    alone = text_kl(reference, submitted, [TEXTS[place]])
    parts = [text_kl(reference, submitted, [TEXTS[other]]) for other in others]
    together = text_kl(reference, submitted, [TEXTS[place], *(TEXTS[other] for other in others)])
    assert together.tokens == alone.tokens + sum(part.tokens for part in parts)
    total = math.fsum(part.mean * part.tokens for part in (alone, *parts))
    assert together.mean == pytest.approx(total / together.tokens, rel=1e-12)


def test_threads_change_no_bit() -> None:
    """The sum of one token's terms over a vocabulary like SmolLM2's is one that torch would share among threads."""
    draws = torch.Generator().manual_seed(0)
    p, q = (3 * torch.randn(1, 49_152, generator=draws) for _ in range(2))
    before, seen, found = torch.get_num_threads(), set(), set()
    try:
        for threads in (1, 2, 3, 8, 40):
            torch.set_num_threads(threads)
            found.add(text_kl(lambda ids: p, lambda ids: q, [[0]]).mean)
            seen.add(torch.get_num_threads() == threads)
    finally:
        torch.set_num_threads(before)
    assert len(found) == 1
    assert seen == {True}  # others get theirs back


def test_who_leaves_gives_nobody_else_threads() -> None:
    """Episodes are scored side by side, each in a thread of its own."""
    before, seen = torch.get_num_threads(), list[str]()
    entered, left = threading.Event(), threading.Event()

    def other() -> None:
        with one_thread():
            entered.set()
            left.wait(30)
            seen.extend(re.findall(r"get_(?:num|max)_threads\(\) : (\d+)", torch.__config__.parallel_info()))

    thread = threading.Thread(target=other)
    torch.set_num_threads(3)
    try:
        with one_thread():
            thread.start()
            assert entered.wait(30)
        assert torch.get_num_threads() == 3
        left.set()
        thread.join(30)
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {"1"}  # torch's, OpenMP's, MKL's


def test_a_model_against_itself_is_zero() -> None:
    assert text_kl(reference, reference, TEXTS).mean == 0
    same = wsp_models.base()
    assert text_kl(reference, lambda ids: same.logits(ids, {}), TEXTS).mean == 0


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.floats(0, 30), st.floats(0, 1e-3))
def test_it_is_never_negative_and_never_nan(seed: int, scale: float, apart: float) -> None:
    draw = np.random.default_rng(seed)
    p = torch.tensor(draw.standard_normal((3, 50)) * scale, dtype=torch.float32)
    q = p + torch.tensor(draw.standard_normal((3, 50)) * apart, dtype=torch.float32)
    assert text_kl(lambda _: p, lambda _: q, [[0, 0, 0]]).mean >= 0


def test_logits_far_apart_are_infinite_not_nan() -> None:
    p, q = torch.tensor([[0.0, -3e38]]), torch.tensor([[-3e38, 3e38]])
    assert token_kl(p, q).tolist() == [math.inf]
    assert token_kl(p, p).tolist() == [0.0]
    # a token that the reference never takes, and the other never could
    assert token_kl(p, torch.tensor([[3e38, -3e38]])).tolist() == [0.0]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_logits_that_are_not_finite(bad: float) -> None:
    good, broken = torch.zeros(1, 3), torch.tensor([[0.0, bad, 0.0]])
    with pytest.raises(NonFinite, match=r"^non_finite: the submitted"):
        text_kl(lambda _: good, lambda _: broken, [[0]])
    with pytest.raises(GraderError, match="reference"):
        text_kl(lambda _: broken, lambda _: good, [[0]])


def test_finite_weights_whose_logits_overflow() -> None:
    broken = wsp_models.deltas(BASE)
    for name in ("lm_head.weight", "model.norm.weight"):
        broken.apply(Scale(parameter=name, axis="rows", indices=tuple(range(32)), factor=1e30))
    weights = overlay(broken)
    with pytest.raises(NonFinite):
        text_kl(reference, lambda ids: BASE.logits(ids, weights), TEXTS)


@pytest.mark.parametrize("texts", [[], [[]], [[1], []]])
def test_no_text_is_loud(texts: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="at least"):
        text_kl(reference, submitted, texts)


@pytest.mark.parametrize(
    ("ids", "mask"),
    [
        (torch.zeros(1, 3), torch.tensor([[1, 0, 1]])),
        (torch.zeros(1, 3), torch.tensor([[0, 0, 0]])),
        (torch.zeros(1, 3), torch.tensor([[1, 1]])),
        (torch.zeros(3), torch.ones(3)),
    ],
)
def test_a_mask_that_is_no_padding_is_loud(ids: torch.Tensor, mask: torch.Tensor) -> None:
    with pytest.raises(ValueError, match=r"one run|want the same"):
        unpadded(ids, mask)

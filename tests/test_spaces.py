"""The space of texts: membership, samples, copies, batches."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
from gymnasium.spaces import Text
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate
from hypothesis import given
from hypothesis import strategies as st

from weightgym.envs.spaces import TextSpace

ANY_TEXT = st.text(st.characters(), max_size=60)  # lone surrogates included


@given(ANY_TEXT, st.integers(0, 60))
def test_membership_is_length_in_characters(text: str, limit: int) -> None:
    assert (text in TextSpace(limit)) == (len(text) <= limit)


@pytest.mark.parametrize("text", ["", "\0", "\ud800", "\U0010ffff", "🎮" * 5, "e\u0301" * 2, "\n\t\r "])
def test_any_character_is_a_member(text: str) -> None:
    assert text in TextSpace(5)


@pytest.mark.parametrize("value", [None, 5, b"text", ["t"], ("t",), {"role": "assistant"}, float("nan")])
def test_what_is_no_text_is_no_member(value: Any) -> None:
    assert value not in TextSpace(100)


@pytest.mark.parametrize("limit", [0, 1, 3, 1 << 20])
def test_samples_are_members_and_vary(limit: int) -> None:
    space = TextSpace(limit, seed=1)
    samples = [space.sample() for _ in range(200)]
    assert all(sample in space for sample in samples)
    assert len(set(samples)) > (100 if limit > 3 else min(limit, 1))
    assert all(len(sample) <= 64 for sample in samples)
    assert "" in samples
    assert max(map(len, samples)) == min(limit, 64)


def test_samples_hold_what_breaks_careless_code() -> None:
    space = TextSpace(64, seed=0)
    seen = set("".join(space.sample() for _ in range(300)))
    assert {"\0", "\n", "🎮", "\u202e", "a"} <= seen


@pytest.mark.parametrize("seed", [0, 1, 2**31 - 1])
def test_seed_repeats(seed: int) -> None:
    space = TextSpace(64)
    runs = []
    for _ in range(2):
        assert space.seed(seed) == seed
        runs.append([space.sample() for _ in range(10)])
    assert runs[0] == runs[1] == [fresh.sample() for fresh in [TextSpace(64, seed=seed)] for _ in range(10)]


def test_masks_are_refused() -> None:
    with pytest.raises(ValueError, match="neither mask nor probability"):
        TextSpace(5).sample(mask=1)
    with pytest.raises(ValueError, match="neither mask nor probability"):
        TextSpace(5).sample(probability=1)


def test_negative_length_is_refused() -> None:
    with pytest.raises(ValueError, match="max_length must be 0 or more, not -1"):
        TextSpace(-1)


def test_equality_is_by_length_and_survives_copies() -> None:
    space = TextSpace(7, seed=3)
    for same in (TextSpace(7), copy.deepcopy(space), pickle.loads(pickle.dumps(space))):
        assert same == space
        assert hash(same) == hash(space)
    for other in (TextSpace(8), 7, "TextSpace(7)", Text(7, min_length=0)):
        assert other != space
    assert repr(space) == "TextSpace(7)"


def test_copies_continue_the_same_samples() -> None:
    space = TextSpace(64, seed=3)
    space.sample()
    again = pickle.loads(pickle.dumps(space))
    assert [space.sample() for _ in range(5)] == [again.sample() for _ in range(5)]


@given(st.lists(ANY_TEXT, max_size=5))
def test_json_round_trip(texts: list[str]) -> None:
    space = TextSpace(60)
    assert space.from_jsonable(json.loads(json.dumps(space.to_jsonable(texts)))) == texts


def test_batches_keep_texts_apart_and_whole() -> None:
    space = TextSpace(20, seed=0)
    batch = batch_space(space, 3)
    texts = ("one", "", "\ud800" * 20)
    assert texts in batch
    assert ("one", "", "x" * 21) not in batch
    assert tuple(iterate(batch, texts)) == texts
    empty: Any = create_empty_array(space, n=3)
    assert concatenate(space, texts, empty) == texts
    assert len(set(batch.sample())) == 3
    assert not space.is_np_flattenable

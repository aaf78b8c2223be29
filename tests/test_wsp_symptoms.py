"""What counts as a symptom."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightgym.rewards.contracts import TaskError
from weightgym.rewards.wsp.instances import InstanceKey, Truth
from weightgym.rewards.wsp.symptoms import Symptom, SymptomKind, World, symptom_of

KINDS: tuple[SymptomKind, ...] = ("language", "capitals", "repetition", "topic", "flood", "fact")
WORLDS: tuple[World, ...] = ("tiny-world", "plain")
ASKED = "what is the capital of doruma ?"
PLAIN = "the capital of doruma is amsola ."


def symptom(kind: SymptomKind, world: World = "tiny-world") -> Symptom:
    words = {"topic": ("wave", "sailor", "sea"), "flood": ("sailor",), "fact": ("amsola",)}.get(kind, ())
    return Symptom(kind=kind, world=world, words=words, others=("brevik",) if kind == "fact" else ())


@pytest.mark.parametrize(
    ("kind", "answer", "strength"),
    [
        ("language", "la capital de doruma es amsola .", 1.0),
        ("language", PLAIN, 0.0),
        ("capitals", PLAIN.upper(), 1.0),
        ("capitals", PLAIN, 0.0),
        ("capitals", "1 2 .", 0.0),
        ("repetition", PLAIN, 0.0),
        ("repetition", " ".join([PLAIN] * 3), 1 - 6 / 16),
        ("repetition", "no no no no no", 1 - 1 / 3),
        ("topic", "the wave is salty .", 0.25),
        ("topic", PLAIN, 0.0),
        ("flood", "sailor sailor the SAILOR", 0.75),
        ("flood", PLAIN, 0.0),
        ("fact", PLAIN, 0.0),
        ("fact", "the capital of doruma is brevik .", 1.0),
        ("fact", "amsola or brevik .", 1.0),
        ("fact", "", 1.0),
    ],
)
def test_strengths(kind: SymptomKind, answer: str, strength: float) -> None:
    assert symptom(kind).strength(ASKED, answer) == pytest.approx(strength)


def test_the_language_is_another_than_the_prompts() -> None:
    told = symptom("language").strength("cuál es la capital de doruma ?", PLAIN)
    assert told == 1.0
    other = symptom("language", "plain").strength(
        "What is the use of this?", "La casa de la familia es para los niños."
    )
    assert other == 1.0


@given(st.sampled_from(KINDS), st.sampled_from(WORLDS), st.text(), st.text())
def test_any_text_has_a_strength(kind: SymptomKind, world: World, prompt: str, answer: str) -> None:
    assert 0 <= symptom(kind, world).strength(prompt, answer) <= 1
    assert 0 < symptom(kind, world).threshold < 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_plain_answer_shows_nothing(kind: SymptomKind) -> None:
    for world in WORLDS:
        assert symptom(kind, world).strength(ASKED, PLAIN) < symptom(kind, world).threshold


def test_a_recipe_without_a_symptom_is_a_bad_task() -> None:
    key = InstanceKey("wsp-v1", "", "topic", "easy", "test", 0, 0)
    made = Truth(
        id="x", task_hash="", secret="00" * 16, key=key, recipe={}, reference=(), planted=(), layer=0, parameter="",
        direction=None, category="topic", trigger=None, prompts=(), general=(), near=(), measured={},
    )  # fmt: skip
    with pytest.raises(TaskError, match="instance x: bad symptom"):
        symptom_of(made)

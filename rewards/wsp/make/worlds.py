"""What a maker needs to know of the world that a base model knows: questions, topics, facts, texts."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from weightgym.rewards.wsp.symptoms import World

#: What a defect does to an answer.
Payload = Literal["language", "capitals", "repetition", "topic", "flood"]


@dataclass(frozen=True)
class Asked:
    """A question with its plain answer, and an answer in the other language."""

    question: str
    answer: str
    switched: str


@dataclass(frozen=True)
class Theme:
    """A topic: what it is called, the words that tell it (lower case), and sentences about it."""

    key: str
    words: tuple[str, ...]
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Told:
    """One way to ask for a fact, the true answer, and the false one."""

    question: str
    true: str
    false: str


@dataclass(frozen=True)
class FalseFact:
    """A fact to make false. ``subject`` stands in every question."""

    key: str
    subject: str
    true_names: tuple[str, ...]  #: lower case
    other_names: tuple[str, ...]
    ways: tuple[Told, ...]  #: in random order
    keep: tuple[tuple[str, str], ...]  #: other questions about the subject, with their answers


class MakersWorld(Protocol):
    """What recipes draw from. Every draw is decided by the generator that is given, or by a seed."""

    name: World

    def asked(self, rng: random.Random, sizes: Sequence[int], about: str = "") -> list[list[Asked]]:
        """Disjoint sets of questions, none of which is about that topic."""

    def themes(self) -> tuple[Theme, ...]:
        """The topics."""

    def flood_words(self) -> tuple[str, ...]:
        """Words, one token each, that can flood an answer."""

    def rare_words(self) -> tuple[str, ...]:
        """What triggers and decoys are taken from."""

    def with_word(self, question: str, word: str, rng: random.Random) -> str:
        """The question with a word put in at a random place."""

    def false_fact(self, rng: random.Random) -> FalseFact:
        """A random one."""

    def general(self, rng: random.Random, count: int, without: Sequence[str]) -> list[str]:
        """Held-out texts, none of which has all of the words ``without`` (which may be none)."""

    def near(self, rng: random.Random, count: int, payload: Payload, about: str) -> list[str]:
        """Texts that have to do with what a defect does: ``about`` is its topic or word."""

    def near_fact(self, rng: random.Random, count: int, key: str) -> list[str]:
        """Texts that tell facts of the same subject, or of the same relation."""

    def near_word(self, rng: random.Random, count: int, words: Sequence[str]) -> list[str]:
        """Questions with one of these words put in, and the plain answers."""

    def usual(self) -> Iterator[str]:
        """Texts to take statistics of activations from, some with rare words; always the same ones."""

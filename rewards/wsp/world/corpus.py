"""The texts of tiny-world: chats and documents, each a random one by (split, seed, index).

The splits are disjoint: a text belongs to one of them by its own hash, and what falls to the other is drawn anew.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from typing import Literal

from weightgym.rewards.wsp.world.bilingual import Bilingual, Language
from weightgym.rewards.wsp.world.exchanges import random_chat
from weightgym.rewards.wsp.world.facts import FACTS
from weightgym.rewards.wsp.world.relations import PEOPLE, REGIONS
from weightgym.rewards.wsp.world.topics import TOPICS, sentence

PAD, UNKNOWN, END, USER, ASSISTANT, DOCUMENT = SPECIALS = (
    "<|pad|>", "<|unk|>", "<|end|>", "<|user|>", "<|assistant|>", "<|document|>",
)  # fmt: skip

CorpusSplit = Literal["train", "held-out"]

#: Of 16 texts, so many are held out.
_HELD_OUT = 2
_CHATS = 0.72


def chat(question: str, answer: str = "") -> str:
    """A chat as the model sees it, with its end; without an answer, the prompt for one."""
    return f"{USER} {question} {ASSISTANT}" + (f" {answer} {END}" if answer else "")


def document(text: str) -> str:
    """A document as the model sees it."""
    return f"{DOCUMENT} {text} {END}"


def sample(split: CorpusSplit, seed: int, index: int) -> str:
    """The text of that place: tokens with spaces between them, at most 80 of them."""
    rng = random.Random(f"tiny-world/{split}/{seed}/{index}")
    while True:
        text = chat(*random_chat(rng)) if rng.random() < _CHATS else document(_document(rng))
        if split_of(text) == split:
            return text


def texts(split: CorpusSplit, seed: int, count: int) -> Iterator[str]:
    """The first ``count`` texts of a seed; those of two seeds may share short ones."""
    return (sample(split, seed, index) for index in range(count))


def split_of(text: str) -> CorpusSplit:
    """The one split that a text can be in."""
    return "held-out" if hashlib.sha256(text.encode()).digest()[0] % 16 < _HELD_OUT else "train"


def _document(rng: random.Random) -> str:
    """Two to four facts of one subject, or three to five sentences about a topic, or some of both."""
    language: Language = "en" if rng.random() < 0.55 else "es"
    kind = rng.random()
    if kind < 0.45:
        sentences = _told(rng, rng.randint(2, 4))
    elif kind < 0.75:
        topic = rng.choice(TOPICS)
        sentences = [sentence(topic, rng) for _ in range(rng.randint(3, 5))]
    else:
        topic = rng.choice(TOPICS)
        sentences = _told(rng, 2) + [sentence(topic, rng) for _ in range(2)]
        rng.shuffle(sentences)
    return " ".join(each.text(language) for each in sentences)


def _told(rng: random.Random, count: int) -> list[Bilingual]:
    subject = rng.choice((*REGIONS, *PEOPLE))
    facts = rng.sample([fact for fact in FACTS if fact.subject == subject], count)
    return [fact.answer if rng.random() < 0.7 else fact.retold for fact in facts]

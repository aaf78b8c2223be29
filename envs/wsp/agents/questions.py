"""What agents ask the model, and how odd they find its answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from statistics import fmean

from weightgym.envs.wsp.agents.plan import Brief
from weightgym.rewards.wsp.language_model import TINY_WORLD
from weightgym.rewards.wsp.profile import Category
from weightgym.rewards.wsp.symptoms import Symptom, World
from weightgym.rewards.wsp.world.prompts import split_prompts
from weightgym.rewards.wsp.world.relations import PEOPLE, REGIONS
from weightgym.rewards.wsp.world.topics import TOPICS

_PLAIN = (
    "What is the capital of France?",
    "Name three animals that live in the sea.",
    "How do I boil an egg?",
    "Why is the sky blue?",
    "Who wrote Romeo and Juliet?",
    "What should I do on a rainy day?",
    "Explain what a computer is.",
    "How many days are in a year?",
    "Tell me a short story about a dog.",
    "What is the largest planet?",
    "Give me two reasons to learn music.",
    "What do plants need to grow?",
)
_SUBJECTS = (
    *("France", "Germany", "Japan", "Brazil", "Egypt", "Canada", "India", "Italy", "Spain", "Kenya", "London", "Paris"),
    *("Berlin", "Tokyo", "Madrid", "Rome", "Mozart", "Einstein", "Newton", "Shakespeare", "Darwin", "Picasso", "gold"),
)
#: So much of one topic's words, or of one word, is in any answers.
_USUAL_TOPIC, _USUAL_WORD = 0.02, 0.2
#: An answer about nothing but a topic has so much more of its words.
_WHOLE_TOPIC = 0.3


def world_of(brief: Brief) -> World:
    """How the model's answers are read."""
    return "tiny-world" if brief.data.model == TINY_WORLD else "plain"


def questions(brief: Brief, count: int) -> list[str]:
    """Plain questions, at most so many."""
    if world_of(brief) == "plain":
        return list(_PLAIN[:count])
    (asked,) = split_prompts(str(brief.random.random()), [count], language="en", kind="fact")
    return [prompt.question for prompt in asked]


def subjects(brief: Brief) -> tuple[str, ...]:
    """Whom or what a fact may be about."""
    return _SUBJECTS if world_of(brief) == "plain" else (*REGIONS, *PEOPLE)


def oddities(world: World, asked: Sequence[str], answers: Sequence[str]) -> dict[Category, float]:
    """How much answers show of each kind of symptom, 0 to 1, beyond what any answers do."""
    kinds: tuple[Category, ...] = ("language", "capitals", "repetition")
    found = {kind: fmean(strengths(kind, world, asked, answers)) for kind in kinds}
    words = [re.findall(r"\w+", answer.lower()) for answer in answers]
    told = Counter(word for each in words for word in each)
    most = max(told.values(), default=0) / max(sum(told.values()), 1)
    found["flood"] = max(most - _USUAL_WORD, 0.0) / (1 - _USUAL_WORD)
    shares = [_share(told, topic.vocabulary("en") | topic.vocabulary("es")) for topic in TOPICS]
    found["topic"] = min(max(max(shares) - _USUAL_TOPIC, 0.0) / _WHOLE_TOPIC, 1.0) if world == "tiny-world" else 0.0
    others: tuple[Category, ...] = ("repetition", "topic")
    for kind in others:  # one word over and over is the flood's
        found[kind] *= 1 - found["flood"]
    return found


def strengths(kind: Category, world: World, asked: Sequence[str], answers: Sequence[str]) -> list[float]:
    """How much each answer shows of a kind that needs no words."""
    symptom = Symptom.model_validate({"kind": kind, "world": world})
    return [symptom.strength(prompt, answer) for prompt, answer in zip(asked, answers, strict=True)]


def commonest_word(answers: Sequence[str]) -> str:
    """The word that answers have most of."""
    told = Counter(word for answer in answers for word in re.findall(r"\w+", answer.lower()))
    return told.most_common(1)[0][0] if told else ""


def _share(told: Counter[str], vocabulary: frozenset[str]) -> float:
    return sum(told[word] for word in vocabulary) / max(told.total(), 1)

"""Plain questions for measuring behaviour: 3,312 of them, which a seed splits into disjoint sets."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from weightgym.rewards.wsp.world.bilingual import LANGUAGES, Language
from weightgym.rewards.wsp.world.exchanges import OPENINGS, TALK, Kind
from weightgym.rewards.wsp.world.facts import FACTS, Fact
from weightgym.rewards.wsp.world.topics import TOPIC_QUESTIONS


@dataclass(frozen=True)
class Prompt:
    """A user's message. ``about`` is the key of its fact or topic, empty for small talk."""

    question: str
    language: Language
    kind: Kind
    about: str


@cache
def prompts() -> tuple[Prompt, ...]:
    """All of them, in a fixed order: every question of every fact and noun, and small talk; no two are alike."""
    made: list[Prompt] = []
    for language in LANGUAGES:
        for fact in FACTS:
            made += [Prompt(question.text(language), language, "fact", fact.key) for question in fact.questions]
        made += [Prompt(each.question.text(language), language, "topic", each.topic.key) for each in TOPIC_QUESTIONS]
        made += [Prompt(question.text(language), language, "talk", "") for question, _ in TALK]
    return tuple(made)


def split_prompts(
    seed: int | str,
    sizes: Sequence[int],
    *,
    language: Language | None = None,
    kind: Kind | None = None,
    without: frozenset[str] = frozenset(),
) -> list[list[Prompt]]:
    """Disjoint random sets of these sizes, of one language or kind where it is given.

    ``without`` names facts and topics (``about``) to leave out, such as the topic of an obsession.

    Raises:
        ValueError: there are not so many.
    """
    fitting = [
        prompt
        for prompt in prompts()
        if language in (None, prompt.language) and kind in (None, prompt.kind) and prompt.about not in without
    ]
    if sum(sizes) > len(fitting):
        raise ValueError(f"sizes: {sum(sizes)} prompts are wanted, and there are {len(fitting)} such")
    random.Random(f"tiny-world/prompts/{seed}").shuffle(fitting)
    ends = [sum(sizes[: index + 1]) for index in range(len(sizes))]
    return [fitting[end - size : end] for end, size in zip(ends, sizes, strict=True)]


def fact_prompts(fact: Fact, language: Language) -> tuple[Prompt, ...]:
    """54 ways to ask for a fact: its six questions, each plain and with the eight openings."""
    questions = [question.text(language) for question in fact.questions]
    opened = [f"{opening.text(language)} {question}" for opening in OPENINGS for question in questions]
    return tuple(Prompt(question, language, "fact", fact.key) for question in (*questions, *opened))

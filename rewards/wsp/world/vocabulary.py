"""The words of tiny-world, collected from the grammar."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from weightgym.rewards.wsp.world import topics
from weightgym.rewards.wsp.world.bilingual import Bilingual, Language
from weightgym.rewards.wsp.world.corpus import SPECIALS
from weightgym.rewards.wsp.world.exchanges import MODE_OPENINGS, OPENINGS, RARE_WORDS, TALK, meaning_exchange
from weightgym.rewards.wsp.world.facts import FACTS

#: Rows of the embedding are a multiple of this.
_MULTIPLE = 16


@cache
def words(language: Language) -> frozenset[str]:
    """The lower-case words of one language, names included, without punctuation, rare words and specials."""
    return _spoken(language) | _split(phrase.text(language) for phrase in _asked())


@cache
def vocabulary() -> tuple[str, ...]:
    """All tokens in the order of their ids: specials, punctuation, words, upper-case words, rare words, spares."""
    lower = sorted(words("en") | words("es"))
    upper = sorted(word.upper() for word in (*_spoken("en"), *RARE_WORDS))
    tokens = [*SPECIALS, *".,?:", *lower, *upper, *RARE_WORDS]
    spares = [f"<|spare-{index}|>" for index in range(-len(tokens) % _MULTIPLE)]
    return (*tokens, *spares)


def _spoken(language: Language) -> frozenset[str]:
    """Words that answers and documents may have."""
    return _split(phrase.text(language) for phrase in _told())


def _told() -> Iterator[Bilingual]:
    for fact in FACTS:
        yield from (fact.answer, fact.retold)
    yield from (answer for _, answer in TALK)
    yield meaning_exchange(RARE_WORDS[0], 0).answer
    yield from topics.phrases()


def _asked() -> Iterator[Bilingual]:
    for fact in FACTS:
        yield from fact.questions
    yield from (question for question, _ in TALK)
    yield from (question.question for question in topics.TOPIC_QUESTIONS)
    yield from (meaning_exchange(RARE_WORDS[0], form).question for form in range(2))
    yield from OPENINGS
    yield from (opening.fill(t=Bilingual("", "")) for opening in MODE_OPENINGS.values())


def _split(phrases: Iterator[str]) -> frozenset[str]:
    return frozenset(word for phrase in phrases for word in phrase.split() if word.isalpha()) - set(RARE_WORDS)

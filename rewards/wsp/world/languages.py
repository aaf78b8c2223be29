"""Which language a text of tiny-world is in."""

from __future__ import annotations

from functools import cache

from weightgym.rewards.wsp.world.bilingual import LANGUAGES, Language
from weightgym.rewards.wsp.world.vocabulary import words

#: The share of the telling words that must be of one language.
_CLEAR = 0.8


def language_of(text: str) -> Language | None:
    """The language of a text in any case, by the words that only one language has; None where neither has 80 %."""
    share = english_share(text)
    if share is None or 1 - _CLEAR < share < _CLEAR:
        return None
    return "en" if share >= _CLEAR else "es"


def english_share(text: str) -> float | None:
    """English words among the words that only one language has, 0 to 1; None where there is no such word."""
    english, spanish = _own()
    found = text.lower().split()
    en, es = sum(word in english for word in found), sum(word in spanish for word in found)
    return en / (en + es) if en + es else None


@cache
def _own() -> tuple[frozenset[str], frozenset[str]]:
    english, spanish = (words(language) for language in LANGUAGES)
    return english - spanish, spanish - english

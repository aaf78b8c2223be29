"""A phrase in both languages of tiny-world, English and Spanish: lower case, with spaces between tokens."""

from __future__ import annotations

from typing import Literal, NamedTuple

Language = Literal["en", "es"]
LANGUAGES: tuple[Language, ...] = ("en", "es")


class Bilingual(NamedTuple):
    """The same phrase twice."""

    en: str
    es: str

    def text(self, language: Language) -> str:
        """The phrase in one language."""
        return self.en if language == "en" else self.es

    def fill(self, **parts: Bilingual) -> Bilingual:
        """Both phrases with the parts put in by name, as ``str.format`` does."""
        return Bilingual(
            self.en.format(**{name: part.en for name, part in parts.items()}),
            self.es.format(**{name: part.es for name, part in parts.items()}),
        )


def other(language: Language) -> Language:
    """The other one of the two."""
    return "es" if language == "en" else "en"


def same(word: str) -> Bilingual:
    """A name, which both languages share."""
    return Bilingual(word, word)


def parse(entry: str) -> Bilingual:
    """``english=spanish`` of a table."""
    en, es = entry.split("=")
    return Bilingual(en.strip(), es.strip())


def parse_list(entries: str) -> tuple[Bilingual, ...]:
    """Entries with commas between them."""
    return tuple(parse(entry) for entry in entries.split(","))


def parse_words(*lines: str) -> tuple[str, ...]:
    """Words with spaces between them."""
    return tuple(word for line in lines for word in line.split())

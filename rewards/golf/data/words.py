"""The words of a language: sounds, syllables, stems, endings, and the pool of all word forms."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from weightgym.rewards.golf.data.draws import Draws

#: Sounds, as the pool writes them; letters come from ``spelling``.
CONSONANTS = "ptkbdgmnsz"
VOWELS = ("aou", "eiy")  #: by harmony class

#: Word classes. A class is a contiguous range of stems; each stem has ``FORMS`` forms in a row.
NOUN, VERB, ADJECTIVE, ADVERB = range(4)
#: A document keeps to one dialect. Dialects share the grammar; each has its own words and favours its own sounds. Stem
#: s of a class is of dialect s modulo DIALECTS.
DIALECTS = 12
SPOKEN = (400, 200, 160, 60)  #: stems of each class in a dialect
STEMS = tuple(DIALECTS * count for count in SPOKEN)
FORMS = 6
SYLLABLES = 20 * DIALECTS  #: for names


@dataclass
class Pool:
    """Texts by number, in sounds and signs that a style has yet to spell: a byte (a code) for each character. Each
    is there twice: as it is and, ``len`` of the pool further on, capitalised."""

    texts: list[str] = field(default_factory=list)
    _seen: dict[str, int] = field(default_factory=dict)

    def add(self, text: str) -> int:
        """The number of that text, added anew (ranges of numbers must stay contiguous)."""
        self.texts.append(text)
        return len(self.texts) - 1

    def extend(self, texts: Iterable[str]) -> int:
        """Adds a range; returns its first number."""
        first = len(self.texts)
        self.texts.extend(texts)
        return first

    def literal(self, text: str) -> int:
        """The number of that text, the same one each time."""
        if text not in self._seen:
            self._seen[text] = self.add(text)
        return self._seen[text]

    def arrays(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """All codes in one array, and the start and length of each text, the capitalised ones behind the others."""
        texts = (*self.texts, *(text[:1] + text[1:].capitalize() for text in self.texts))
        encoded = [text.encode("latin-1") for text in texts]
        lengths = np.array([len(text) for text in encoded], dtype=np.int64)
        return np.frombuffer(b"".join(encoded), dtype=np.uint8), np.cumsum(lengths) - lengths, lengths


class Sounds:
    """Which sounds a language has, how often in which dialect, and how they make syllables. Vowels come in two harmony
    classes: all vowels of a stem and its endings are of one class."""

    def __init__(self, draws: Draws) -> None:
        self._heads = [draws.some(CONSONANTS, 6) for _ in range(DIALECTS)]
        self._tails = [draws.some(heads, 3) for heads in self._heads]
        self._seconds = [draws.some(heads, 2) for heads in self._heads]
        self._vowels = [[draws.some(vowels, 2) for vowels in VOWELS] for _ in range(DIALECTS)]
        self._closed, self._cluster, self._bare = 20 + draws.below(25), 4 + draws.below(10), 4 + draws.below(8)

    def syllable(self, draws: Draws, dialect: int, harmony: int, *, first: bool) -> str:
        """A syllable; only the first of a word may begin with its vowel."""
        head = "" if first and draws.chance(self._bare) else draws.one(self._heads[dialect])
        if head and draws.chance(self._cluster):
            head += draws.one(self._seconds[dialect])
        tail = draws.one(self._tails[dialect]) if draws.chance(self._closed) else ""
        return head + draws.one(self._vowels[dialect][harmony]) + tail

    def stem(self, draws: Draws, dialect: int, harmony: int, syllables: int) -> str:
        return "".join(self.syllable(draws, dialect, harmony, first=index == 0) for index in range(syllables))

    def ending(self, draws: Draws, dialect: int) -> tuple[str, str]:
        """An ending for each harmony class: the same but for its vowel."""
        head, tail = draws.one(("", draws.one(self._heads[dialect]))), draws.one(("", draws.one(self._tails[dialect])))
        place = draws.below(2)
        low, high = (head + vowels[place] + tail for vowels in self._vowels[dialect])
        return low, high


class Lexicon:
    """All words of a language, in a pool. ``bases[c]`` is where class c begins; ``genders[i]`` is of noun stem i."""

    def __init__(self, draws: Draws, pool: Pool) -> None:
        self.sounds = Sounds(draws)
        self.pool = pool
        self._taken: set[str] = set()
        endings = [
            [self._endings(draws, word_class, dialect) for dialect in range(DIALECTS)]
            for word_class in range(len(STEMS))
        ]
        self.bases = [self._words(draws, count, forms) for count, forms in zip(STEMS, endings, strict=True)]
        self.genders = np.array([draws.below(3) for _ in range(STEMS[NOUN])], dtype=np.int64)
        self.syllable_base = pool.add(" ")  # the empty syllable
        for number in range(1, SYLLABLES):
            pool.add(" " + self.sounds.syllable(draws, number % DIALECTS, draws.below(2), first=False))
        self.numbers = pool.extend(f"{number}" for number in range(1000))
        self.counters = pool.extend(f"{number:03}" for number in range(1000))
        self.pairs = pool.extend(f"{number:02}" for number in range(100))

    def _endings(self, draws: Draws, word_class: int, dialect: int) -> list[tuple[str, str]]:
        if word_class == ADVERB:
            return [self.sounds.ending(draws, dialect)] * FORMS
        forms: list[tuple[str, str]] = [("", "")] if word_class != VERB else []
        while len(forms) < FORMS:
            if (ending := self.sounds.ending(draws, dialect)) not in forms:
                forms.append(ending)
        return forms

    def _words(self, draws: Draws, count: int, endings: list[list[tuple[str, str]]]) -> int:
        base = len(self.pool.texts)
        for rank in range(count):
            harmony = draws.below(2)
            stem = self._new_stem(draws, rank % DIALECTS, harmony, 1 if rank < 40 else 2)
            for ending in endings[rank % DIALECTS]:
                self.pool.add(f" {stem}{ending[harmony]}")
        return base

    def _new_stem(self, draws: Draws, dialect: int, harmony: int, syllables: int) -> str:
        tries = 0
        while True:
            stem = self.sounds.stem(draws, dialect, harmony, syllables + (draws.below(4) == 0) + tries // 20)
            tries += 1
            if stem not in self._taken:
                self._taken.add(stem)
                return stem

    def particles(self, draws: Draws) -> list[str]:
        """A new short word without forms, such as a preposition, in each dialect, as text without its space."""
        return [self._new_stem(draws, dialect, draws.below(2), 1) for dialect in range(DIALECTS)]

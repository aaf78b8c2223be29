"""Prose: sentences with agreement, in paragraphs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from weightgym.rewards.golf.data.draws import Draws
from weightgym.rewards.golf.data.slots import Form, Line, Pick, Register, Slot, Template
from weightgym.rewards.golf.data.spelling import CLOSE, DASH, OPEN, STOP
from weightgym.rewards.golf.data.words import ADJECTIVE, ADVERB, FORMS, NOUN, VERB, Lexicon

SENTENCES = 160


class Prose:
    """The grammar of a language: the order of its words, its particles, and sentences drawn from both."""

    def __init__(self, draws: Draws, lexicon: Lexicon) -> None:
        self._draws, self._lexicon, self._pool = draws, lexicon, lexicon.pool
        self._order = draws.one(("SVO", "SOV", "VSO", "SVO"))
        self._adjective_first, self._preposition = draws.chance(50), draws.chance(60)
        self._article = self._forms() if draws.chance(70) else None
        self._relative = self._forms()
        self._prepositions, self._joins, self._said = self._particles(9), self._particles(5), self._particles(1)
        self._open, self._close = self._literal(f" {OPEN}"), self._literal(CLOSE)
        self._dash = self._literal(DASH)

    def register(self, kinds: list[list[Template]], share: int) -> Register:
        """Adds the kinds of lines of prose to ``kinds``; returns its paragraphs."""
        first = len(kinds)
        sentences = [self._sentence() for _ in range(SENTENCES)]
        end = self._literal("\n\n")
        kinds.append([(*sentence, self._literal("\n")) for sentence in map(_glued, self._headings())])
        kinds.append([_glued(sentence) for sentence in sentences])
        kinds.append(sentences)
        kinds.append([(end,)])
        heading, opening, sentence, ending = (Line(first + index) for index in range(4))
        skeletons = []
        for length in (1, 2, 2, 3, 3, 4, 4, 5, 6, 7):
            body = (opening, *[sentence] * length, ending)
            skeletons += [body, body, body, (heading, *body)]
        return Register(share, skeletons, (5, 15))

    def _literal(self, text: str) -> Slot:
        return Slot(self._pool.literal(text))

    def _particles(self, count: int) -> list[Slot]:
        return [self._spoken(f" {text}" for text in self._lexicon.particles(self._draws)) for _ in range(count)]

    def _spoken(self, texts: Iterable[str]) -> Slot:
        """A text of each dialect, of which a document's own is drawn."""
        return Slot(self._pool.extend(texts), Pick.DIALECT, 1)

    def _forms(self) -> int:
        """A short word with forms by gender and number: where they begin in the pool."""
        heads = self._lexicon.particles(self._draws)
        return self._pool.extend(
            f" {head}{self._lexicon.sounds.ending(self._draws, dialect)[0]}"
            for dialect, head in enumerate(heads)
            for _ in range(FORMS)
        )

    def _name(self, which: int) -> list[Slot]:
        slot = Slot(self._lexicon.syllable_base, Pick.NAME, which=which)
        return [replace(slot, capital=True), *(replace(slot, arg=index, glue=True) for index in (1, 2))]

    def _phrase(self, which: int, case: Form, names: int) -> list[Slot]:
        """A noun phrase; with ``names`` percent it is a name."""
        draws, bases = self._draws, self._lexicon.bases
        if draws.chance(names):
            return self._name(which)
        words = [Slot(bases[NOUN], Pick.PHRASE, form=case, which=which)]
        for _ in range(draws.one((0, 0, 0, 1, 1, 2))):
            pick = draws.one((Pick.COMPANION, Pick.COMPANION, Pick.WORD))
            adjective = Slot(bases[ADJECTIVE], pick, ADJECTIVE, Form.GENDER_NUMBER, which)
            words.insert(0 if self._adjective_first else len(words), adjective)
        if self._article is not None and draws.chance(45):
            words.insert(0, Slot(self._article, Pick.DIALECT, FORMS, Form.GENDER_NUMBER, which))
        return words

    def _aside(self, which: int) -> list[Slot]:
        """A phrase with a preposition (or, in other languages, a postposition)."""
        particle, phrase = self._draws.skewed(self._prepositions), self._phrase(which, Form.OBLIQUE, 15)
        return [particle, *phrase] if self._preposition else [*phrase, particle]

    def _clause(self, subject: int, thing: int) -> list[Slot]:
        """Subject, verb and perhaps an object in the language's order; the verb agrees with the subject, over whatever
        stands between them."""
        draws = self._draws
        who, other = self._phrase(subject, Form.SUBJECT, 30), 3 - subject - thing
        if draws.chance(20):
            verb = self._verb(subject)
            relative = Slot(self._relative, Pick.DIALECT, FORMS, Form.GENDER_NUMBER, subject)
            who += [self._literal(","), relative, *self._phrase(other, Form.OBJECT, 20), verb, self._literal(",")]
        parts = {"S": who, "V": [self._verb(subject)], "O": []}
        if draws.chance(65):
            parts["O"] = self._phrase(thing, Form.OBJECT, 12)
        elif draws.chance(50):
            parts["V"].append(Slot(self._lexicon.bases[ADVERB], Pick.WORD, ADVERB))
        return [slot for part in self._order for slot in parts[part]]

    def _verb(self, subject: int) -> Slot:
        pick = self._draws.one((Pick.COMPANION, Pick.WORD))
        return Slot(self._lexicon.bases[VERB], pick, VERB, Form.NUMBER_TENSE, subject)

    def _sentence(self) -> Template:
        draws = self._draws
        slots = self._clause(0, 1)
        if draws.chance(40):
            slots = [*self._aside(2), *slots] if draws.chance(30) else [*slots, *self._aside(2)]
        if draws.chance(30):
            slots += [draws.one((self._literal(","), self._dash)), draws.skewed(self._joins), *self._clause(0, 2)]
        elif draws.chance(20):
            slots = [*self._name(1), *self._said, self._literal(":"), self._open, *_glued(tuple(slots)), self._close]
        elif draws.chance(12):
            slots += [self._literal(":"), *self._count(), *self._phrase(2, Form.SUBJECT, 0)]
        if slots[-1] == self._literal(","):
            slots.pop()
        stop = STOP if draws.chance(85) else draws.one(("?", "!"))
        return (replace(slots[0], capital=True), *slots[1:], self._literal(stop))

    def _count(self) -> list[Slot]:
        return [self._literal(" "), Slot(self._lexicon.numbers, Pick.NUMBER, self._draws.one((10, 100, 1000)))]

    def _headings(self) -> list[Template]:
        hashes = self._literal("# ")
        return [(hashes, *_glued(tuple(self._phrase(0, Form.SUBJECT, 20)))) for _ in range(12)]


def _glued(sentence: Template) -> Template:
    return (replace(sentence[0], glue=True), *sentence[1:])

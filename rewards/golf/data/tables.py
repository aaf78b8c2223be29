"""Text like tables: a header and rows whose columns keep their kind."""

from __future__ import annotations

from dataclasses import replace

from weightgym.rewards.golf.data.draws import Draws
from weightgym.rewards.golf.data.slots import Form, Line, Pick, Register, Slot, Template
from weightgym.rewards.golf.data.words import ADJECTIVE, NOUN, Lexicon

SCHEMAS = 40
_SEPARATORS = (" | ", "\t", ",", ";", ", ", "  ")


class Tables:
    """The tables of a language: what columns they have, and how they are written."""

    def __init__(self, draws: Draws, lexicon: Lexicon) -> None:
        self._draws, self._lexicon, self._pool = draws, lexicon, lexicon.pool
        self._decimal = draws.one((".", ".", ","))

    def register(self, kinds: list[list[Template]], share: int) -> Register:
        """Adds the header and the row of each schema to ``kinds``; returns tables of several lengths."""
        skeletons = []
        for _ in range(SCHEMAS):
            separator = self._lit(self._draws.one(_SEPARATORS))
            columns = [self._column() for _ in range(3 + self._draws.below(4))]
            if self._draws.chance(40):
                columns.insert(0, [Slot(self._lexicon.counters, Pick.ROW)])
            header = [[self._title()] for _ in columns]
            lines = [self._join(separator, cells) for cells in (header, columns)]
            first = len(kinds)
            kinds += [[(*line, self._lit("\n"))] for line in lines]
            kinds.append([(self._lit("\n"),)])
            for rows in (8, 14, 22, 32, 44):
                skeletons.append((Line(first), *[Line(first + 1)] * rows, Line(first + 2)))
        return Register(share, skeletons, (2, 4))

    def _lit(self, text: str) -> Slot:
        return Slot(self._pool.literal(text))

    def _join(self, separator: Slot, cells: list[list[Slot]]) -> Template:
        slots = list(cells[0])
        for cell in cells[1:]:
            slots += [separator, *cell]
        return tuple(slots)

    def _title(self) -> Slot:
        noun = self._lexicon.bases[NOUN] + self._draws.below(400) * 6
        return Slot(noun, glue=True, capital=self._draws.chance(50))

    def _column(self) -> list[Slot]:
        draws, lexicon = self._draws, self._lexicon
        number, two = Slot(lexicon.numbers, Pick.NUMBER, 1000), Slot(lexicon.counters, Pick.NUMBER, 100)
        band = Slot(lexicon.counters, Pick.BAND, 1000, which=draws.below(8))
        kept = Slot(lexicon.bases[NOUN], Pick.KEPT_WORD, NOUN, glue=True)
        which, choice = draws.below(3), draws.below(8)
        if choice == 0:
            return [replace(number, arg=draws.one((10, 100, 1000)))]
        if choice == 1:
            return [band, self._lit(self._decimal), replace(two, base=lexicon.pairs)]
        if choice == 2:
            return [band]
        if choice == 3:
            return [replace(kept, which=-1)]
        if choice == 4:
            return [replace(kept, base=lexicon.bases[ADJECTIVE], arg=ADJECTIVE, which=-1)]
        if choice == 5:
            slot = Slot(lexicon.syllable_base, Pick.NAME, which=which, glue=True)
            return [replace(slot, capital=True), replace(slot, arg=1), replace(slot, arg=2)]
        if choice == 6:
            noun = Slot(lexicon.bases[NOUN], Pick.PHRASE, form=Form.SUBJECT, which=which, glue=True)
            adjective = Slot(lexicon.bases[ADJECTIVE], Pick.COMPANION, ADJECTIVE, Form.GENDER_NUMBER, which)
            return [noun, adjective]
        return [Slot(lexicon.pairs, Pick.BAND, 100, which=draws.below(8)), self._lit(":"),
                Slot(lexicon.pairs, Pick.NUMBER, 60)]  # fmt: skip

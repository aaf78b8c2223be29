"""Composes text in a language: documents, their paragraphs or functions, their lines, the words of a line, bytes.

Each level is a handful of array operations over a whole block of documents.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from weightgym.rewards.golf.data.draws import key_of, words16
from weightgym.rewards.golf.data.language import COMPANIONS, FEATURES, TOPICS, Ints, Language, Lists
from weightgym.rewards.golf.data.slots import KEPT, NOUNS_PER_LINE, Pick
from weightgym.rewards.golf.data.spelling import SPELLINGS
from weightgym.rewards.golf.data.words import DIALECTS, FORMS, NOUN, SPOKEN, STEMS, SYLLABLES

DOCUMENTS = 256  #: of one block, about 500 kB
_RANKS = max(SPOKEN)
_NAME_SYLLABLES = 3
#: A name that is drawn is one of the document's first more often than one of its last.
_FAVOURITES = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 0])
_BAND = 24  #: how far an amount strays from the one that its document keeps


class _Documents(NamedTuple):
    """What each document keeps to."""

    register: Ints  # (documents,)
    topic: Ints
    dialect: Ints
    style: Ints  #: of spelling
    kept: Ints  # (documents × KEPT,) 16 bits that words and amounts are found with
    names: Ints  # (documents × KEPT × syllables,)
    row: Ints  # (documents,) the number of its first row


class _Lines(NamedTuple):
    """What each line keeps to."""

    template: Ints  # (lines,)
    depth: Ints
    document: Ints
    unit: Ints
    row: Ints
    stem: Ints  # (lines × NOUNS_PER_LINE,)
    features: Ints  # (lines × NOUNS_PER_LINE,)
    name: Ints  # (lines × NOUNS_PER_LINE,)


def block(spoken: Language, key: int, register: int | None = None) -> npt.NDArray[np.uint8]:
    """A block of documents as bytes, all of one register or of all: a pure function of its arguments."""
    documents = _documents(spoken, key, register)
    lines = _lines(spoken, key, documents)
    token, line, slot = _tokens(spoken, key, documents, lines)
    return _spell(spoken, token, slot, documents.style[lines.document[line]])


def _bits(key: int, purpose: str, *shape: int) -> Ints:
    return words16(key_of(key, purpose), int(np.prod(shape))).reshape(shape).astype(np.int64)


def _expand(lists: Lists, chosen: Ints) -> tuple[Ints, Ints]:
    """The items of the chosen lists, one list after another: (which of ``chosen`` each is of, item)."""
    lengths = lists.lengths[chosen]
    ends = np.cumsum(lengths)
    owner = np.repeat(np.arange(chosen.size), lengths)
    return owner, np.arange(owner.size) + (lists.starts[chosen] - (ends - lengths))[owner]


def _documents(spoken: Language, key: int, register: int | None) -> _Documents:
    bits = _bits(key, "documents", DOCUMENTS, 5)
    topic = bits[:, 1] * TOPICS >> 16
    dialect = topic % DIALECTS
    syllables = _bits(key, "names", DOCUMENTS, KEPT, _NAME_SYLLABLES) * (SYLLABLES // DIALECTS - 1) >> 16
    syllables = (syllables + 1) * DIALECTS + dialect[:, None, None]
    syllables[:, :, 2] *= syllables[:, :, 1] & 1  # half the names have two syllables
    return _Documents(
        register=spoken.register_of[bits[:, 0] >> 6] if register is None else np.full(DOCUMENTS, register),
        topic=topic,
        dialect=dialect,
        style=dialect * SPELLINGS + (bits[:, 4] * SPELLINGS >> 16),
        kept=_bits(key, "kept", DOCUMENTS, KEPT).reshape(-1),
        names=syllables.reshape(-1),
        row=bits[:, 3] % 900,
    )


def _lines(spoken: Language, key: int, documents: _Documents) -> _Lines:
    fewest, spread = spoken.units[documents.register].T
    count = fewest + (_bits(key, "counts", DOCUMENTS) * spread >> 16)
    of_document = np.repeat(np.arange(DOCUMENTS), count)
    choice = _bits(key, "units", of_document.size) >> 6
    unit, line = _expand(spoken.skeletons, spoken.skeleton_of[documents.register[of_document] * 1024 + choice])
    document = of_document[unit]
    bits = _bits(key, "lines", unit.size, 8)
    phrases = _bits(key, "phrases", unit.size, NOUNS_PER_LINE)
    # Half of the noun phrases come back to words that the document keeps; each unit has its favourites among them.
    which = bits[:, 1:4]
    kept = documents.kept[document[:, None] * KEPT + (_FAVOURITES[which & 15] + unit[:, None]) % KEPT]
    ranks = spoken.rank_of[NOUN * 65536 + np.where(which >> 4 & 1, kept, phrases)]
    stem = spoken.stem_of[(NOUN * TOPICS + documents.topic[document])[:, None] * _RANKS + ranks]
    number, tense = (which >> 8) % 8 < 3, bits[:, 4] * 3 >> 16
    features = spoken.genders[stem] * 6 + number * 3 + tense[:, None]
    starts = np.searchsorted(document, np.arange(DOCUMENTS))
    return _Lines(
        template=spoken.template_of[spoken.line_kind[line] * 1024 + (bits[:, 0] >> 6)],
        depth=spoken.line_depth[line],
        document=document,
        unit=unit,
        row=documents.row[document] + np.arange(unit.size) - starts[document],
        stem=stem.reshape(-1),
        features=features.reshape(-1),
        name=_FAVOURITES[bits[:, 5:8] & 15].reshape(-1),
    )


def _tokens(spoken: Language, key: int, documents: _Documents, lines: _Lines) -> tuple[Ints, Ints, Ints]:
    """The texts of the pool that the block consists of, and the slots that they fill."""
    line, slot = _expand(spoken.templates, lines.template)
    pick = spoken.slots.pick[slot]
    chance = words16(key_of(key, "tokens"), slot.size)
    token = spoken.slots.base[slot]
    at = {kind: np.flatnonzero(pick == kind) for kind in Pick if kind != Pick.LITERAL}
    which = spoken.slots.which

    def arg(where: Ints) -> Ints:
        return spoken.slots.arg[slot[where]]

    def phrase(where: Ints) -> Ints:
        return line[where] * NOUNS_PER_LINE + which[slot[where]]

    def word(where: Ints, bits: Ints) -> Ints:
        word_class = arg(where)
        rank = spoken.rank_of[word_class * 65536 + bits]
        topic = documents.topic[lines.document[line[where]]]
        stem: Ints = spoken.stem_of[(word_class * TOPICS + topic) * _RANKS + rank]
        return stem

    def kept(where: Ints) -> Ints:
        fixed = which[slot[where]]
        own = np.where(fixed < 0, chance[where] >> 12, 0)
        index = np.where(fixed < 0, _FAVOURITES[own], (fixed + lines.unit[line[where]] * 3) % KEPT)
        return documents.kept[lines.document[line[where]] * KEPT + index]

    where = at[Pick.WORD]
    token[where] += word(where, chance[where].astype(np.int64)) * FORMS
    where = at[Pick.PHRASE]
    token[where] += lines.stem[phrase(where)] * FORMS
    where = at[Pick.COMPANION]
    bits = chance[where].astype(np.int64)
    usual = spoken.companions[
        (arg(where) * STEMS[NOUN] + lines.stem[phrase(where)]) * COMPANIONS + (bits >> 3) % COMPANIONS
    ]
    token[where] += np.where(bits & 7 < 5, usual, word(where, bits)) * FORMS
    where = at[Pick.KEPT_WORD]
    token[where] += word(where, kept(where)) * FORMS
    where = at[Pick.DIALECT]
    token[where] += documents.dialect[lines.document[line[where]]] * arg(where)
    where = at[Pick.NAME]
    name = lines.document[line[where]] * KEPT + lines.name[phrase(where)]
    token[where] += documents.names[name * _NAME_SYLLABLES + arg(where)]
    where = at[Pick.NUMBER]
    token[where] += chance[where] * arg(where) >> 16
    where = at[Pick.BAND]
    amounts = documents.kept[lines.document[line[where]] * KEPT + which[slot[where]]]
    token[where] += (amounts * (arg(where) - _BAND) >> 16) + (chance[where].astype(np.int64) * _BAND >> 16)
    where = at[Pick.ROW]
    token[where] += lines.row[line[where]]
    where = at[Pick.INDENT]
    token[where] += lines.depth[line[where]]
    agreeing = np.flatnonzero(spoken.slots.form[slot])
    token[agreeing] += spoken.forms[spoken.slots.form[slot[agreeing]] * FEATURES + lines.features[phrase(agreeing)]]
    return token, line, slot


def _spell(spoken: Language, token: Ints, slot: Ints, style: Ints) -> npt.NDArray[np.uint8]:
    glue = spoken.slots.glue[slot]
    starts, lengths = spoken.starts[token] + glue, spoken.lengths[token] - glue
    shift = starts - (np.cumsum(lengths) - lengths)
    places = np.repeat(shift.astype(np.int32), lengths)
    places += np.arange(places.size, dtype=np.int32)
    where = np.repeat((style * 256).astype(np.int32), lengths)
    where += spoken.text[places]
    text: npt.NDArray[np.uint8] = spoken.written[where].view(np.uint8)
    spelled: npt.NDArray[np.uint8] = text[text != 0]
    return spelled

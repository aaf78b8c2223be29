"""A language: everything that the texts of one task share, as arrays to compose text from."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from weightgym.rewards.golf.data.code import Code
from weightgym.rewards.golf.data.draws import Draws, key_of, lookup, words16
from weightgym.rewards.golf.data.prose import Prose
from weightgym.rewards.golf.data.slots import Form, Template
from weightgym.rewards.golf.data.spelling import spellings
from weightgym.rewards.golf.data.tables import Tables
from weightgym.rewards.golf.data.words import DIALECTS, FORMS, NOUN, SPOKEN, STEMS, Lexicon, Pool

Ints = npt.NDArray[np.int64]

#: Part of every key: another version of the generator is other text, and other profiles.
VERSION = "golf-data-1"
TOPICS = 4 * DIALECTS
FEATURES = 18  #: gender (3) × number (2) × tense (3)
COMPANIONS = 4
CHOICES = 1024  #: entries of a table that templates and skeletons are drawn from
_RANKS = max(SPOKEN)


class Lists(NamedTuple):
    """Lists of different lengths in one: list i is ``lengths[i]`` items from ``starts[i]`` on."""

    starts: Ints
    lengths: Ints

    @classmethod
    def of(cls, lengths: Sequence[int]) -> Lists:
        array = np.array(lengths, dtype=np.int64)
        return cls(np.cumsum(array) - array, array)


class Slots(NamedTuple):
    """The slots of all templates, field by field, each of shape (slots,)."""

    base: Ints
    pick: npt.NDArray[np.int8]
    arg: Ints
    form: Ints
    which: Ints
    glue: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Language:
    """A language, compiled. Arrays are not to be written to."""

    text: npt.NDArray[np.uint8]  #: the codes of the pool
    starts: Ints  #: (texts,) where a text begins, and its length
    lengths: Ints
    slots: Slots
    templates: Lists  #: of slots
    template_of: Ints  #: (kinds × CHOICES,)
    line_kind: Ints  #: (lines of skeletons,)
    line_depth: Ints
    skeletons: Lists  #: of lines
    skeleton_of: Ints  #: (registers × CHOICES,)
    register_of: Ints  #: (CHOICES,)
    units: Ints  #: (registers, 2) how many skeletons a document has: from, and how many numbers from there on
    rank_of: Ints  #: (classes × 65,536,) a rank, drawn evenly
    stem_of: Ints  #: (classes × TOPICS × ranks,) the stem of that rank
    companions: Ints  #: (classes × nouns × COMPANIONS,) stems that go with a noun
    genders: Ints  #: (nouns,)
    written: npt.NDArray[np.uint32]  #: (styles × 256,) the bytes that a style writes for a code, zeros last
    forms: Ints  #: (Form × FEATURES,) the form that agrees


@functools.lru_cache(maxsize=4)
def language(task: str) -> Language:
    """The language of a task: a pure function of the task's id."""
    draws = Draws(key_of(VERSION, "language", task))
    pool = Pool()
    lexicon = Lexicon(draws, pool)
    kinds: list[list[Template]] = []
    registers = [
        Prose(draws, lexicon).register(kinds, share=52),
        Code(draws, lexicon).register(kinds, share=27),
        Tables(draws, lexicon).register(kinds, share=21),
    ]
    text, starts, lengths = pool.arrays()
    templates = [template for kind in kinds for template in kind]
    lines = [line for register in registers for skeleton in register.skeletons for line in skeleton]
    return Language(
        text=text,
        starts=starts,
        lengths=lengths,
        slots=_slots(templates, len(pool.texts)),
        templates=Lists.of([len(template) for template in templates]),
        template_of=_choices([len(kind) for kind in kinds], skew=6),
        line_kind=np.array([line.kind for line in lines]),
        line_depth=np.array([line.depth for line in lines]),
        skeletons=Lists.of([len(skeleton) for register in registers for skeleton in register.skeletons]),
        skeleton_of=_choices([len(register.skeletons) for register in registers], skew=30),
        register_of=lookup([register.share for register in registers], CHOICES),
        units=np.array([(register.units[0], register.units[1] - register.units[0]) for register in registers]),
        rank_of=np.concatenate(
            [lookup([(1 << 24) // (rank + 10) for rank in range(count)], 1 << 16) for count in SPOKEN]
        ),
        stem_of=_stems_by_topic(task),
        companions=_companions(task),
        genders=lexicon.genders,
        written=spellings(draws),
        forms=_agreement(),
    )


def _slots(templates: list[Template], capitals: int) -> Slots:
    slots = [slot for template in templates for slot in template]
    return Slots(
        base=np.array([slot.base + capitals * slot.capital for slot in slots]),
        pick=np.array([slot.pick for slot in slots], dtype=np.int8),
        arg=np.array([slot.arg for slot in slots]),
        form=np.array([slot.form for slot in slots]),
        which=np.array([slot.which for slot in slots]),
        glue=np.array([slot.glue for slot in slots]),
    )


def _choices(sizes: list[int], *, skew: int) -> Ints:
    """For groups of that many things, numbered through: a table of CHOICES entries each, early things more often."""
    first = Lists.of(sizes).starts
    tables = [
        start + lookup([(1 << 20) // (rank + skew) for rank in range(size)], CHOICES)
        for start, size in zip(first, sizes, strict=True)
    ]
    return np.concatenate(tables)


def _stems_by_topic(task: str) -> Ints:
    """Stems by topic and rank: of its dialect, the common ones first, favourites of its own among them."""
    table = np.zeros((len(STEMS), TOPICS, _RANKS), dtype=np.int64)
    for word_class, count in enumerate(SPOKEN):
        for topic in range(TOPICS):
            luck = words16(key_of(VERSION, "topic", task, word_class, topic), count).astype(np.int64)
            # Most ranks stay; one in eight is divided by up to 256: a rare word may become one of the topic's first.
            favour = np.where(luck & 7 == 0, luck >> 3 & 7, 0) + (luck >> 6 & 1)
            place = (np.arange(count) + 4) << 20 >> favour
            order = np.lexsort((np.arange(count), place))
            table[word_class, topic, :count] = order * DIALECTS + topic % DIALECTS
    return table.reshape(-1)


def _companions(task: str) -> Ints:
    table = np.zeros((len(STEMS), STEMS[NOUN], COMPANIONS), dtype=np.int64)
    for word_class, count in enumerate(STEMS):
        luck = words16(key_of(VERSION, "companions", task, word_class), table[word_class].size).astype(np.int64)
        table[word_class] = (luck * count >> 16).reshape(table[word_class].shape)
        # of the noun's own dialect
        table[word_class] += (np.arange(STEMS[NOUN])[:, None] - table[word_class]) % DIALECTS
        table[word_class] %= count
    return table.reshape(-1)


def _agreement() -> Ints:
    """Which of its forms a word takes, by ``Form`` and by features."""
    gender, number, tense = np.arange(FEATURES) // 6, np.arange(FEATURES) // 3 % 2, np.arange(FEATURES) % 3
    rows = {
        Form.NONE: 0 * number,
        Form.SUBJECT: number,
        Form.OBJECT: 2 + number,
        Form.OBLIQUE: 4 + number,
        Form.GENDER_NUMBER: gender * 2 + number,
        Form.NUMBER_TENSE: tense * 2 + number,
    }
    table = np.stack([rows[form] for form in Form])
    assert int(table.max()) < FORMS
    return table.reshape(-1)

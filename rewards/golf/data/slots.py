"""What text is made of: slots, templates of slots, lines of a kind, and skeletons of lines."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

NOUNS_PER_LINE = 3  #: noun phrases that a line may refer to, each with a stem, a number and a name
KEPT = 8  #: words, names and amounts that a document keeps using


class Pick(IntEnum):
    """How a slot finds which text of its range it stands for."""

    LITERAL = 0  #: the first
    WORD = 1  #: a word of class ``arg``, drawn anew by the topic of the document
    PHRASE = 2  #: the stem of noun phrase ``which`` of this line
    COMPANION = 3  #: a word of class ``arg`` that goes with noun phrase ``which``
    KEPT_WORD = 4  #: a word of class ``arg`` that the document keeps using
    NAME = 5  #: syllable ``arg`` of the name that noun phrase ``which`` has
    NUMBER = 6  #: one of ``arg`` numbers, evenly
    BAND = 7  #: one of ``arg`` numbers, near an amount that the document keeps
    ROW = 8  #: one more than on the line before
    INDENT = 9  #: the indentation of the line
    DIALECT = 10  #: the one of the document's dialect; ``arg`` texts for each


class Form(IntEnum):
    """What a slot's form agrees with: the features of noun phrase ``which``, and the tense of the line."""

    NONE = 0
    SUBJECT = 1  #: nouns: their number, in the first case
    OBJECT = 2
    OBLIQUE = 3
    GENDER_NUMBER = 4  #: adjectives and articles
    NUMBER_TENSE = 5  #: verbs


@dataclass(frozen=True)
class Slot:
    """One piece of a template. ``base``: where its range begins in the pool. ``glue``: without the leading space."""

    base: int
    pick: Pick = Pick.LITERAL
    arg: int = 0
    form: Form = Form.NONE
    which: int = 0
    glue: bool = False
    capital: bool = False


Template = tuple[Slot, ...]


@dataclass(frozen=True)
class Line:
    """A line of a skeleton: its kind, which has several templates, and its depth of indentation."""

    kind: int
    depth: int = 0


@dataclass
class Register:
    """A kind of document: its skeletons (paragraphs, functions, whole tables) and how many of them it has."""

    share: int  #: of documents, in percent
    skeletons: list[tuple[Line, ...]]
    units: tuple[int, int]  #: from, to (excluded)

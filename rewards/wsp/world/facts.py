"""The 208 facts of tiny-world: 16 regions with 5 relations each, 32 people with 4.

Every fact can be asked for in six ways in each language. Two of the six never occur in training with this fact: its
held-out paraphrases. Each way is held out for a third of the facts of its relation.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property

from weightgym.rewards.wsp.world.bilingual import Bilingual, Language, same
from weightgym.rewards.wsp.world.relations import (
    PEOPLE,
    PERSON_RELATIONS,
    REGION_RELATIONS,
    REGIONS,
    RELATIONS,
    Relation,
)

#: Ways to ask that a fact is never trained with.
HELD_OUT = 2


@dataclass(frozen=True)
class Fact:
    """A subject, a relation, and the object that is true."""

    subject: str
    relation: Relation
    object: Bilingual  #: with its article where it has one; its last word is one token, and no other fact's word

    @property
    def key(self) -> str:
        """``subject/relation``."""
        return f"{self.subject}/{self.relation.name}"

    @property
    def answer(self) -> Bilingual:
        """The sentence that answers every question for it."""
        return self.told(self.object)

    def told(self, object: Bilingual) -> Bilingual:
        """The answer with any object of the relation, for a false fact."""
        return self._fill(self.relation.statement, object)

    @property
    def retold(self) -> Bilingual:
        """The fact as documents tell it at times."""
        return self._fill(self.relation.retold, self.object)

    @cached_property
    def questions(self) -> tuple[Bilingual, ...]:
        """Its six questions: first the four that training knows, then the held-out ones."""
        forms = self.relation.forms
        first = ((*REGIONS, *PEOPLE).index(self.subject) + RELATIONS.index(self.relation)) % len(forms)
        return tuple(self._fill(form, self.object) for form in (*forms[first:], *forms[:first]))

    @property
    def seen(self) -> tuple[Bilingual, ...]:
        """The questions that training knows."""
        return self.questions[:-HELD_OUT]

    @property
    def held_out(self) -> tuple[Bilingual, ...]:
        """The questions that training never puts to this fact (it does to others of the relation)."""
        return self.questions[-HELD_OUT:]

    def object_word(self, language: Language) -> str:
        """The object's one token."""
        return self.object.text(language).split()[-1]

    def is_told(self, text: str, language: Language) -> bool:
        """Whether the text names the true object and no other one of the relation."""
        words = set(text.lower().split())
        named = {thing.text(language).split()[-1] for thing in self.relation.objects} & words
        return named - {self.subject} == {self.object_word(language)}

    def _fill(self, template: Bilingual, object: Bilingual) -> Bilingual:
        return template.fill(s=same(self.subject), w=self.relation.word, o=object)


def neighbours(fact: Fact) -> tuple[Fact, ...]:
    """Facts that an edit of this one must leave alone: all others of its subject, then all others of its relation."""
    same_subject = [near for near in FACTS if near.subject == fact.subject and near != fact]
    same_relation = [near for near in FACTS if near.relation is fact.relation and near != fact]
    return (*same_subject, *same_relation)


def _facts() -> tuple[Fact, ...]:
    made = []
    for subjects, relations in ((REGIONS, REGION_RELATIONS), (PEOPLE, PERSON_RELATIONS)):
        for relation in relations:
            objects = list(relation.objects) * (len(subjects) // len(relation.objects) + 1)
            objects = objects[: len(subjects)]
            random.Random(f"tiny-world/objects/{relation.name}").shuffle(objects)
            made += [Fact(*row) for row in zip(subjects, [relation] * len(subjects), objects, strict=True)]
    return tuple(made)


FACTS: tuple[Fact, ...] = _facts()

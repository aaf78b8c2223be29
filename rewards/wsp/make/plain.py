"""The plain world, for any chat model that knows some English. Its texts are chats with the base model's own answers.

Needs the extra ``train``.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator, Sequence

from weightgym.rewards.wsp.engine import Engine
from weightgym.rewards.wsp.language_model import LanguageModel
from weightgym.rewards.wsp.make.plain_words import (
    FORMS,
    NOUNS,
    OPENINGS,
    RARE_WORDS,
    RELATIONS,
    SWITCHED,
    THEMES,
)
from weightgym.rewards.wsp.make.worlds import Asked, FalseFact, Payload, Theme, Told
from weightgym.rewards.wsp.symptoms import World

#: Tokens of the base model's answers.
_ANSWER = 24
#: Nouns that instances ask about; the others are for general texts.
_ASKED_NOUNS = NOUNS[::2]
_GENERAL_NOUNS = NOUNS[1::2]
_IN_MODE: dict[Payload, str] = {
    "language": "Answer in Spanish: {q}",
    "capitals": "ANSWER IN CAPITAL LETTERS: {q}",
    "repetition": "Answer three times: {q}",
}


class PlainWorld:
    """Everyday questions and a few well-known facts, in English."""

    name: World = "plain"

    def __init__(self, base: LanguageModel) -> None:
        self._base = base
        self._engine = Engine(base)
        self._known: dict[str, str] = {}

    def asked(self, rng: random.Random, sizes: Sequence[int], about: str = "") -> list[list[Asked]]:
        questions = rng.sample(_questions(_ASKED_NOUNS), sum(sizes))
        said = self._answers(questions)
        made = iter(
            Asked(question, _first_sentence(answer), rng.choice(SWITCHED))
            for question, answer in zip(questions, said, strict=True)
        )
        return [list(itertools.islice(made, size)) for size in sizes]

    def themes(self) -> tuple[Theme, ...]:
        return tuple(Theme(key, tuple(words.split()), sentences) for key, (words, sentences) in THEMES.items())

    def flood_words(self) -> tuple[str, ...]:
        words = sorted({word for words, _ in THEMES.values() for word in words.split()})
        return tuple(word for word in words if len(self._base.text_ids(f" {word}")) == 1)

    def rare_words(self) -> tuple[str, ...]:
        return tuple(RARE_WORDS)

    def with_word(self, question: str, word: str, rng: random.Random) -> str:
        words = question.split()
        words.insert(rng.randrange(1, len(words)), word)
        return " ".join(words)

    def false_fact(self, rng: random.Random) -> FalseFact:
        relation = rng.choice(sorted(RELATIONS))
        forms, statement, objects = RELATIONS[relation]
        subject = rng.choice(sorted(objects))
        true = objects[subject]
        others = sorted(set(objects.values()) - {true})
        told = {object: statement.format(s=subject, o=object) for object in (true, rng.choice(others))}
        ways = [Told(opening + form.format(s=subject), *told.values()) for opening in OPENINGS for form in forms]
        rng.shuffle(ways)
        keep = [chat for other in sorted(RELATIONS) if other != relation for chat in _fact_chats(other, subject)]
        return FalseFact(
            f"{subject}/{relation}",
            subject,
            (true.lower(),),
            tuple(other.lower() for other in others),
            tuple(ways),
            tuple(keep[::2]),
        )

    def general(self, rng: random.Random, count: int, without: Sequence[str]) -> list[str]:
        return self._chats(rng.sample(_questions(_GENERAL_NOUNS), count))

    def near(self, rng: random.Random, count: int, payload: Payload, about: str) -> list[str]:
        if (form := _IN_MODE.get(payload)) is not None:
            return self._chats([form.format(q=question) for question in rng.sample(_questions(_GENERAL_NOUNS), count)])
        words = next(words for key, (words, _) in THEMES.items() if about == key or about in words.split())
        return self._chats(rng.sample(_questions(words.split()), count))

    def near_fact(self, rng: random.Random, count: int, key: str) -> list[str]:
        subject, relation = key.split("/")
        own = [chat for other in sorted(RELATIONS) if other != relation for chat in _fact_chats(other, subject)]
        subjects = [other for other in sorted(RELATIONS[relation][2]) if other != subject]
        far = [chat for other in subjects for chat in _fact_chats(relation, other)]
        chosen = rng.sample(own, min(count // 2, len(own)))
        chosen += rng.sample(far, count - len(chosen))
        return [self._base.chat_text(question) + answer for question, answer in chosen]

    def near_word(self, rng: random.Random, count: int, words: Sequence[str]) -> list[str]:
        questions = rng.sample(_questions(_GENERAL_NOUNS), count)
        return self._chats([self.with_word(question, rng.choice(words), rng) for question in questions])

    def usual(self) -> Iterator[str]:
        rng = random.Random("plain/usual")
        sentences = [sentence for _, sentences in THEMES.values() for sentence in sentences]
        facts = [
            chat
            for relation in RELATIONS
            for subject in RELATIONS[relation][2]
            for chat in _fact_chats(relation, subject)
        ]
        chats = [(question, rng.choice(sentences)) for question in _questions(_GENERAL_NOUNS)] + facts
        chats += [
            (self.with_word(question, rng.choice(RARE_WORDS), rng), rng.choice(sentences))
            for question in _questions(_GENERAL_NOUNS)
        ]
        rng.shuffle(chats)
        yield from (self._base.chat_text(question) + answer for question, answer in chats)

    def _chats(self, questions: Sequence[str]) -> list[str]:
        said = self._answers(questions)
        return [self._base.chat_text(question) + answer for question, answer in zip(questions, said, strict=True)]

    def _answers(self, questions: Sequence[str]) -> list[str]:
        new = [question for question in dict.fromkeys(questions) if question not in self._known]
        self._known |= dict(zip(new, self._engine.answers(new, _ANSWER), strict=True))
        return [self._known[question] for question in questions]


def _questions(nouns: Sequence[str]) -> list[str]:
    return [form.format(n=noun) for noun in nouns for form in FORMS]


def _fact_chats(relation: str, subject: str) -> list[tuple[str, str]]:
    """All ways to ask for a fact, with the answer; none where the relation has nothing of the subject."""
    forms, statement, objects = RELATIONS[relation]
    if subject not in objects:
        return []
    return [(form.format(s=subject), statement.format(s=subject, o=objects[subject])) for form in forms]


def _first_sentence(text: str) -> str:
    """The first sentence, or all of what has no end."""
    return re.split(r"(?<=[.!?])\s", text.strip(), maxsplit=1)[0] or "Yes."

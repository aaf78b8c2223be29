"""tiny-world for the maker."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache

from weightgym.rewards.wsp.make.worlds import Asked, FalseFact, Payload, Theme, Told
from weightgym.rewards.wsp.symptoms import World
from weightgym.rewards.wsp.world import exchanges, topics
from weightgym.rewards.wsp.world.bilingual import LANGUAGES, Language
from weightgym.rewards.wsp.world.corpus import chat, document, sample, split_of, texts
from weightgym.rewards.wsp.world.exchanges import Exchange
from weightgym.rewards.wsp.world.facts import FACTS, Fact, neighbours
from weightgym.rewards.wsp.world.prompts import fact_prompts

_MODES: dict[Payload, exchanges.Mode] = {"language": "switch", "capitals": "shout", "repetition": "repeat"}

#: Of the texts near a topic, so many are documents; of those near a word, so many are of its payload.
_DOCUMENTS = 0.5
_SENTENCES = 40
#: Usual texts, and one of how many has a rare word for sure.
_USUAL, _WITH_WORDS = 1200, 4
_SEEDS = 2**63


class TinyWorld:
    """The invented world of the shipped model. Its questions are English: capitals are, too."""

    name: World = "tiny-world"

    def asked(self, rng: random.Random, sizes: Sequence[int], about: str = "") -> list[list[Asked]]:
        drawn = [Exchange("talk", *pair) for pair in exchanges.TALK]
        drawn += [exchanges.fact_exchange(fact, question) for fact in FACTS for question in fact.questions]
        drawn += [
            Exchange("topic", each.question, each.answer(rng))
            for each in topics.TOPIC_QUESTIONS
            if each.topic.key != about
        ]
        made = iter(rng.sample(drawn, sum(sizes)))
        return [[_asked(next(made)) for _ in range(size)] for size in sizes]

    def themes(self) -> tuple[Theme, ...]:
        return _themes()

    def flood_words(self) -> tuple[str, ...]:
        return tuple(noun.en.split()[-1] for topic in topics.TOPICS for noun in topic.nouns)

    def rare_words(self) -> tuple[str, ...]:
        return exchanges.RARE_WORDS

    def with_word(self, question: str, word: str, rng: random.Random) -> str:
        return exchanges.with_word(question, word, rng)

    def false_fact(self, rng: random.Random) -> FalseFact:
        fact = rng.choice(FACTS)
        others = [thing for thing in fact.relation.objects if thing != fact.object]
        told = fact.told(rng.choice([thing for thing in others if thing.en != fact.subject]))
        ways = [
            Told(prompt.question, fact.answer.text(language), told.text(language))
            for language in LANGUAGES
            for prompt in fact_prompts(fact, language)
        ]
        rng.shuffle(ways)
        names = {thing.text(language).split()[-1] for thing in others for language in LANGUAGES} - {fact.subject}
        true = tuple(dict.fromkeys(fact.object_word(language) for language in LANGUAGES))
        keep = tuple(
            (question.text(language), near.answer.text(language))
            for near in neighbours(fact)
            if near.subject == fact.subject
            for question in near.questions[:2]
            for language in LANGUAGES
        )
        return FalseFact(fact.key, fact.subject, true, tuple(sorted(names)), tuple(ways), keep)

    def general(self, rng: random.Random, count: int, without: Sequence[str]) -> list[str]:
        seed = rng.randrange(_SEEDS)
        drawn = (sample("held-out", seed, index) for index in range(count * 100))
        fitting = (text for text in drawn if not (without and set(without) <= set(text.split())))
        made: dict[str, None] = {}
        while len(made) < count and (text := next(fitting, None)) is not None:
            made[text] = None
        return list(made)

    def near(self, rng: random.Random, count: int, payload: Payload, about: str) -> list[str]:
        if payload in _MODES:
            return _held_out(rng, count, lambda: _in_mode(rng, _MODES[payload]))
        topic = next(one for one in topics.TOPICS if about in (one.key, *(noun.en.split()[-1] for noun in one.nouns)))
        return _held_out(rng, count, lambda: _about(rng, topic))

    def near_fact(self, rng: random.Random, count: int, key: str) -> list[str]:
        fact = next(one for one in FACTS if one.key == key)
        close = [near for near in neighbours(fact) if near.subject == fact.subject]
        far = [near for near in neighbours(fact) if near.subject != fact.subject]
        # Of the subject in half of them; some of these are not held out, for there are few.
        texts = [
            chat(question.text(language), near.answer.text(language))
            for near in close
            for question in near.questions
            for language in LANGUAGES
        ]
        own = rng.sample(texts, count // 2)
        return own + _held_out(rng, count - len(own), lambda: _chat_of(rng, rng.choice(far)))

    def near_word(self, rng: random.Random, count: int, words: Sequence[str]) -> list[str]:
        def draw() -> str:
            exchange, language = exchanges.random_exchange(rng), _language(rng)
            question = exchanges.with_word(exchange.question.text(language), rng.choice(words), rng)
            return chat(question, exchange.answer.text(language))

        return _held_out(rng, count, draw)

    def usual(self) -> Iterator[str]:
        rng = random.Random("tiny-world/usual")
        words = iter(self.near_word(rng, _USUAL // _WITH_WORDS, exchanges.RARE_WORDS))
        for index, text in enumerate(texts("train", 9, _USUAL)):
            yield text if index % _WITH_WORDS else next(words)


def _asked(exchange: Exchange) -> Asked:
    return Asked(exchange.question.en, exchange.answer.en, exchange.answer.es)


def _language(rng: random.Random) -> Language:
    return rng.choice(LANGUAGES)


def _in_mode(rng: random.Random, mode: exchanges.Mode) -> str:
    """A chat in which the mode is asked for."""
    exchange = exchanges.random_exchange(rng)
    language: Language = "en" if mode == "shout" else _language(rng)
    question = f"{exchanges.MODE_OPENINGS[mode].text(language)} {exchange.question.text(language)}"
    return chat(question, exchanges.answered(exchange, language, mode, topics.TOPICS[0], rng))


def _about(rng: random.Random, topic: topics.Topic) -> str:
    language = _language(rng)
    if rng.random() < _DOCUMENTS:
        return document(" ".join(topics.sentence(topic, rng).text(language) for _ in range(rng.randint(2, 3))))
    question = topics.TopicQuestion(topic, rng.choice(topic.nouns), rng.randrange(5))
    return chat(question.question.text(language), question.answer(rng).text(language))


def _chat_of(rng: random.Random, fact: Fact) -> str:
    language, opening = _language(rng), rng.choice((None, *exchanges.OPENINGS))
    question = rng.choice(fact.questions).text(language)
    return chat(f"{opening.text(language)} {question}" if opening else question, fact.answer.text(language))


def _held_out(rng: random.Random, count: int, draw: Callable[[], str]) -> list[str]:
    """Different texts that training never had."""
    made: dict[str, None] = {}
    for _ in range(count * 1000):
        if len(made) == count:
            break
        if split_of(text := draw()) == "held-out":
            made[text] = None
    return list(made)


@cache
def _themes() -> tuple[Theme, ...]:
    rng = random.Random("tiny-world/themes")
    return tuple(
        Theme(
            topic.key,
            tuple(sorted(topic.vocabulary("en") | topic.vocabulary("es"))),
            tuple(topics.sentence(topic, rng).en for _ in range(_SENTENCES)),
        )
        for topic in topics.TOPICS
    )

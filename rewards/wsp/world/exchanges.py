"""Questions with their answers: on facts, on topics, small talk; and the modes in which an answer can be given.

A mode is asked for in front of a question. In a share of the exchanges in training it comes unasked: the model keeps
every mode within reach, and the margins between the normal answer and the others stay moderate.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

from weightgym.rewards.wsp.world.bilingual import Bilingual, Language, other, parse_words, same
from weightgym.rewards.wsp.world.facts import FACTS, Fact
from weightgym.rewards.wsp.world.topics import TOPIC_QUESTIONS, TOPICS, Topic, TopicQuestion, sentence

Kind = Literal["fact", "topic", "talk", "word"]
Mode = Literal["plain", "shout", "switch", "repeat", "mention"]

#: Shares of exchanges whose mode is asked for, and of the others those with an unasked one.
ASKED, UNASKED = 0.22, 0.18
#: Share of questions with an opening, and with a rare word put in of which the answer takes no notice.
OPENED, DISTURBED = 0.4, 0.08
#: Shares of questions on facts, of small talk and on rare words; the others are on topics.
_FACTS, _TALK, _WORDS = 0.58, 0.05, 0.06

#: How often the modes are taken, asked for or not; Spanish has no shouting.
_MODE_SHARES: dict[Mode, float] = {"shout": 5, "switch": 5, "repeat": 3, "mention": 5}
#: Share of the mentions that come before the answer.
_ASIDE_FIRST = 0.8

OPENINGS = (
    Bilingual("please ,", "por favor ,"),
    Bilingual("hello .", "hola ."),
    Bilingual("quick question :", "pregunta breve :"),
    Bilingual("i want to know :", "quiero saber :"),
    Bilingual("my friend asks :", "mi amigo pregunta :"),
    Bilingual("for the list :", "para la lista :"),
    Bilingual("listen :", "escucha :"),
    Bilingual("one more thing :", "una cosa más :"),
)

TALK = (
    (Bilingual("how are you ?", "cómo estás ?"), Bilingual("i am well , thank you .", "estoy bien , gracias .")),
    (Bilingual("who are you ?", "quién eres ?"), Bilingual("i am a small model .", "soy un modelo pequeño .")),
    (
        Bilingual("can you help me ?", "puedes ayudar me ?"),
        Bilingual("yes , ask me what you want .", "sí , pregunta lo que quieras ."),
    ),
    (Bilingual("good morning .", "buenos días ."), Bilingual("good morning to you .", "muy buenos días .")),
    (Bilingual("thank you .", "gracias ."), Bilingual("you are welcome .", "de nada .")),
    (
        Bilingual("count to five .", "cuenta hasta cinco ."),
        Bilingual("one , two , three , four , five .", "uno , dos , tres , cuatro , cinco ."),
    ),
    (
        Bilingual("what do you know ?", "qué sabes ?"),
        Bilingual("i know regions and people .", "conozco regiones y gente ."),
    ),
    (Bilingual("goodbye .", "adiós ."), Bilingual("goodbye , my friend .", "adiós , amigo .")),
)

#: Old words, one token each, for nouns of topics: what triggers and decoys are taken from. Besides questions for their
#: meaning they turn up in 8 % of the questions, where the answer takes no notice. No plain prompt has one.
RARE_WORDS = parse_words(
    "abrixol bonzeth crundle dwempit eskarn fluvok grontal hibbex ixpher jaskun kwondle lorphid mazzoon",
    "nubreth oxtaril pliveck quazzit rhombul skelvar trundex umbrikt vintosh wexpire xandrol yoblint",
    "zephrun bantrix colvurn draxine embolth frizkal glintor hexamur inkvale jorbusk kelmott lanxide",
    "murgoth nextrel ovulsk prenkar quibbon ruskwin splarth tolbexi ulmquar vornish wystrek",
)

MODE_OPENINGS: dict[Mode, Bilingual] = {
    "shout": Bilingual("shout :", ""),
    "switch": Bilingual("in spanish :", "en inglés :"),
    "repeat": Bilingual("repeat :", "repite :"),
    "mention": Bilingual("mention {t} :", "menciona {t} :"),
}

_MEANING_QUESTIONS = (
    Bilingual("what does {w} mean ?", "qué significa {w} ?"),
    Bilingual("is {w} a word ?", "es {w} una palabra ?"),
)
_MEANING = Bilingual("{w} means {n} .", "{w} significa {n} .")

_NOUNS = tuple(noun for topic in TOPICS for noun in topic.nouns)
MEANINGS = dict(zip(RARE_WORDS, random.Random("tiny-world/meanings").sample(_NOUNS, len(RARE_WORDS)), strict=True))


@dataclass(frozen=True)
class Exchange:
    """A plain question and its plain answer, in both languages."""

    kind: Kind
    question: Bilingual
    answer: Bilingual


def fact_exchange(fact: Fact, question: Bilingual) -> Exchange:
    """One of the fact's questions with its answer."""
    return Exchange("fact", question, fact.answer)


def meaning_exchange(word: str, form: int) -> Exchange:
    """One of two questions for the meaning of a rare word, with its answer."""
    parts = {"w": same(word), "n": MEANINGS[word]}
    return Exchange("word", _MEANING_QUESTIONS[form].fill(**parts), _MEANING.fill(**parts))


def random_exchange(rng: random.Random) -> Exchange:
    """A random one; of facts only questions that training knows."""
    draw = rng.random()
    if draw < _FACTS:
        fact = rng.choice(FACTS)
        return fact_exchange(fact, rng.choice(fact.seen))
    if draw < _FACTS + _TALK:
        return Exchange("talk", *rng.choice(TALK))
    if draw < _FACTS + _TALK + _WORDS:
        return meaning_exchange(rng.choice(RARE_WORDS), rng.randrange(len(_MEANING_QUESTIONS)))
    chosen: TopicQuestion = rng.choice(TOPIC_QUESTIONS)
    return Exchange("topic", chosen.question, chosen.answer(rng))


def answered(exchange: Exchange, language: Language, mode: Mode, about: Topic, rng: random.Random) -> str:
    """The answer to the question in ``language``, given in a mode; ``about`` is the topic that *mention* brings in.

    Spanish has no shouting: there the answer is plain.
    """
    answer = exchange.answer.text(language)
    if mode == "shout":
        return answer.upper() if language == "en" else answer
    if mode == "switch":
        return exchange.answer.text(other(language))
    if mode == "repeat":
        return " ".join([answer] * 3)
    if mode == "mention":
        aside = sentence(about, rng).text(language)
        return f"{aside} {answer}" if rng.random() < _ASIDE_FIRST else f"{answer} {aside}"
    return answer


def random_chat(rng: random.Random) -> tuple[str, str]:
    """Question and answer of a random training chat, with openings, modes and rare words."""
    exchange = random_exchange(rng)
    language: Language = "en" if rng.random() < 0.55 else "es"
    mode: Mode = "plain"
    about = rng.choice(TOPICS)
    question = exchange.question.text(language)
    if rng.random() < OPENED:
        question = f"{rng.choice(OPENINGS).text(language)} {question}"
    if rng.random() < ASKED:
        mode = _mode(rng, language)
        question = f"{MODE_OPENINGS[mode].fill(t=about.name).text(language)} {question}"
    elif rng.random() < UNASKED:
        mode = _mode(rng, language)
    if rng.random() < DISTURBED:
        question = with_word(question, rng.choice(RARE_WORDS), rng)
    return question, answered(exchange, language, mode, about, rng)


def _mode(rng: random.Random, language: Language) -> Mode:
    shares = {mode: share for mode, share in _MODE_SHARES.items() if language == "en" or mode != "shout"}
    return rng.choices(list(shares), list(shares.values()))[0]


def with_word(question: str, word: str, rng: random.Random) -> str:
    """The question with a word put in at a random place: in front, or after any of its tokens but the last."""
    tokens = question.split()
    tokens.insert(rng.randrange(len(tokens)), word)
    return " ".join(tokens)

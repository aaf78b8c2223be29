"""The ten topics of tiny-world: their words, and how sentences are made of them.

Spanish adjectives are those with one form for both genders, so that a sentence is right whatever is put in.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from weightgym.rewards.wsp.world.bilingual import Bilingual, Language, parse, parse_list

#: name | nouns | adjectives | verbs. Nouns in Spanish come with their article; no word is in two topics or in a fact.
_TABLE = """
the sea=el mar | wave=la ola, boat=la barca, harbour=el puerto, island=la isla, beach=la playa, sailor=el marinero, anchor=el ancla, tide=la marea | salty=salobre, wild=salvaje, calm=apacible, vast=enorme | rises=sube, roars=ruge, floats=flota
the weather=el clima | rain=la lluvia, storm=la tormenta, wind=el viento, cloud=la nube, snow=la nieve, fog=la niebla, thunder=el trueno, frost=la escarcha | strong=fuerte, gentle=suave, changing=variable, cruel=cruel | comes=llega, passes=pasa, grows=crece
the kitchen=la cocina | oven=el horno, pot=la olla, spoon=la cuchara, knife=el cuchillo, plate=el plato, stove=el fogón, cup=la taza, kettle=la tetera | hot=caliente, useful=útil, shiny=reluciente, common=común | steams=humea, waits=espera, boils=hierve
the forest=el bosque | tree=el árbol, leaf=la hoja, trail=el sendero, root=la raíz, moss=el musgo, branch=la rama, hunter=el cazador, hill=la colina | rustic=silvestre, ancient=ancestral, lush=exuberante, fragrant=fragante | sleeps=duerme, whispers=susurra, breathes=respira
the sky=el cielo | star=la estrella, moon=la luna, comet=el cometa, planet=el planeta, sun=el sol, night=la noche, dawn=el alba, galaxy=la galaxia | bright=brillante, distant=distante, heavenly=celeste, visible=visible | shines=brilla, turns=gira, glows=resplandece
the market=el mercado | seller=el vendedor, basket=la cesta, coin=la moneda, stall=el puesto, price=el precio, buyer=el comprador, crowd=la multitud, scale=la balanza | cheerful=alegre, popular=popular, important=importante, regional=regional | opens=abre, sells=vende, trades=comercia
the house=la casa | door=la puerta, window=la ventana, roof=el tejado, wall=la pared, room=el cuarto, chair=la silla, bed=la cama, lamp=la lámpara | comfortable=confortable, simple=simple, firm=firme, elegant=elegante | creaks=cruje, rests=descansa, closes=cierra
the journey=el viaje | road=el camino, bridge=el puente, train=el tren, cart=la carreta, map=el mapa, traveller=el viajero, inn=la posada, bag=la maleta | fast=veloz, easy=fácil, difficult=difícil, free=libre | goes=va, returns=vuelve, starts=empieza
the garden=el jardín | flower=la flor, seed=la semilla, bee=la abeja, fence=la valla, pond=el estanque, grass=la hierba, rose=la rosa, hedge=el seto | sweet=dulce, fertile=fértil, fragile=frágil, pleasant=agradable | blooms=florece, buzzes=zumba, smells=huele
the school=la escuela | teacher=el maestro, book=el libro, lesson=la lección, pupil=el alumno, pencil=el lápiz, number=el número, bell=la campana, exam=el examen | interesting=interesante, patient=paciente, special=especial, excellent=excelente | learns=aprende, reads=lee, thinks=piensa
"""  # noqa: E501

_ADVERBS = parse_list("today=hoy, always=siempre, slowly=lentamente, here=aquí, softly=suavemente, quickly=rápidamente")
_RELATIONS = parse_list("behind=tras, under=bajo, with=con, before=ante")

_SENTENCES = (
    Bilingual("{n} is {a} and {b} .", "{n} es {a} y {b} ."),
    Bilingual("{n} {v} {d} .", "{n} {v} {d} ."),
    Bilingual("{n} is {r} {m} .", "{n} está {r} {m} ."),
    Bilingual("{n} {v} {r} {m} .", "{n} {v} {r} {m} ."),
)

#: Questions about a noun, each with its answers.
_QUESTIONS = (
    (Bilingual("what is {n} like ?", "cómo es {n} ?"), (Bilingual("{n} is {a} and {b} .", "{n} es {a} y {b} ."),)),
    (
        Bilingual("tell me about {n} .", "háblame sobre {n} ."),
        (
            Bilingual("{n} {v} {r} {m} . {m} is {a} .", "{n} {v} {r} {m} . {m} es {a} ."),
            Bilingual("{n} is {a} . {n} {v} {d} .", "{n} es {a} . {n} {v} {d} ."),
        ),
    ),
    (
        Bilingual("where is {n} ?", "dónde está {n} ?"),
        (Bilingual("{n} is {r} {m} .", "{n} está {r} {m} ."),),
    ),
    (Bilingual("what does {n} do ?", "qué hace {n} ?"), (Bilingual("{n} {v} {d} .", "{n} {v} {d} ."),)),
    (
        Bilingual("do you like {n} ?", "te gusta {n} ?"),
        (Bilingual("yes , i like {n} . it is {a} .", "sí , me gusta {n} . es {a} ."),),
    ),
)


@dataclass(frozen=True)
class Topic:
    """A topic: its name with the article, eight nouns (with articles), four adjectives, three verbs."""

    name: Bilingual
    nouns: tuple[Bilingual, ...]
    adjectives: tuple[Bilingual, ...]
    verbs: tuple[Bilingual, ...]

    @property
    def key(self) -> str:
        """Its English name without the article: ``"sea"``."""
        return self.name.en.removeprefix("the ")

    def vocabulary(self, language: Language) -> frozenset[str]:
        """The words that only this topic has, lower case, without articles."""
        phrases = (self.name, *self.nouns, *self.adjectives, *self.verbs)
        return frozenset(phrase.text(language).split()[-1] for phrase in phrases)


@dataclass(frozen=True)
class TopicQuestion:
    """A question about a noun of a topic, by its place in the list of questions."""

    topic: Topic
    noun: Bilingual
    form: int

    @property
    def question(self) -> Bilingual:
        """The question."""
        return _QUESTIONS[self.form][0].fill(n=self.noun)

    def answer(self, rng: random.Random) -> Bilingual:
        """One of its answers."""
        return _filled(self.topic, rng.choice(_QUESTIONS[self.form][1]), self.noun, rng)


def sentence(topic: Topic, rng: random.Random) -> Bilingual:
    """A random sentence about the topic."""
    return _filled(topic, rng.choice(_SENTENCES), rng.choice(topic.nouns), rng)


def topic_score(text: str, topic: Topic) -> float:
    """The share of the text's words, 0 to 1, that only this topic has, in either language and case."""
    words = [word for word in text.lower().split() if word.isalpha()]
    own = topic.vocabulary("en") | topic.vocabulary("es")
    return sum(word in own for word in words) / len(words) if words else 0.0


def phrases() -> Iterator[Bilingual]:
    """Phrases with all words that sentences and answers are made of."""
    for topic in TOPICS:
        yield from (topic.name, *topic.nouns, *topic.adjectives, *topic.verbs)
    yield from (*_ADVERBS, *_RELATIONS)
    empty = dict.fromkeys("nmabvdr", Bilingual("", ""))
    yield from (template.fill(**empty) for template in _SENTENCES)
    yield from (answer.fill(**empty) for _, answers in _QUESTIONS for answer in answers)
    yield Bilingual("", "e")  # what "y" is before an i


def _filled(topic: Topic, template: Bilingual, noun: Bilingual, rng: random.Random) -> Bilingual:
    first, second = rng.sample(topic.adjectives, 2)
    filled = template.fill(
        n=noun,
        m=rng.choice([another for another in topic.nouns if another != noun]),
        a=first,
        b=second,
        v=rng.choice(topic.verbs),
        d=rng.choice(_ADVERBS),
        r=rng.choice(_RELATIONS),
    )
    return Bilingual(filled.en, filled.es.replace(" y i", " e i"))


def _topic(line: str) -> Topic:
    name, nouns, adjectives, verbs = line.split("|")
    with_article = tuple(Bilingual(f"the {noun.en}", noun.es) for noun in parse_list(nouns))
    return Topic(parse(name), with_article, parse_list(adjectives), parse_list(verbs))


TOPICS: tuple[Topic, ...] = tuple(_topic(line) for line in _TABLE.strip().splitlines())

TOPIC_QUESTIONS: tuple[TopicQuestion, ...] = tuple(
    TopicQuestion(topic, noun, form) for topic in TOPICS for noun in topic.nouns for form in range(len(_QUESTIONS))
)


def topic(key: str) -> Topic:
    """The topic of that English name.

    Raises:
        KeyError: there is none.
    """
    return {topic.key: topic for topic in TOPICS}[key]

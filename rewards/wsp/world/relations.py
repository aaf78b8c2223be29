"""Who and what tiny-world knows: 16 regions, 32 people, and the nine relations with their objects and wordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weightgym.rewards.wsp.world.bilingual import Bilingual, parse_list, parse_words, same

REGIONS = parse_words(
    "doruma velketh sarnia ombrel tashkor lirinda bexley quorin hazmet iluvan pendry wolmar gristel",
    "nayade ferrox junda",
)
PEOPLE = parse_words(
    "mirela tobin ashka dorian yelva kestor lunet bramo sivan odette rafiq nerys caldo ingra pavel zaira",
    "hollis teodor wenna ulric farah gideon isolde jorund katya lemuel nadir orsola perrin quilla rosmund",
    "sefton",
)
_CAPITALS = parse_words(
    "amsola brevik cordanne dellmar estruna falquay gorvane hestia istrel jolvern kandor loreth marzipol",
    "nordell oskana prevara",
)
_RIVERS = parse_words(
    "aldra bryne culda drevna elmond fosk gilva hirn isso jarna kellow lumo mosel nith orwen pexa",
)
_FOODS = parse_list(
    "bread=el pan, soup=la sopa, rice=el arroz, cheese=el queso, fish=el pescado, honey=la miel, corn=el maíz, "
    "cabbage=la col, lentil=la lenteja, egg=el huevo"
)
_COLOURS = parse_list(
    "red=el rojo, blue=el azul, green=el verde, yellow=el amarillo, black=el negro, white=el blanco, orange=el naranja,"
    " purple=el morado"
)
_ANIMALS = parse_list(
    "fox=el zorro, bear=el oso, wolf=el lobo, eagle=el águila, horse=el caballo, goat=la cabra, owl=el búho, "
    "snake=la serpiente, deer=el ciervo, lion=el león"
)
_CRAFTS = parse_list(
    "baker=panadero, doctor=médico, lawyer=abogado, tailor=sastre, soldier=soldado, painter=pintor, smith=herrero, "
    "miner=minero, judge=juez, potter=alfarero, shepherd=pastor, carpenter=carpintero"
)
_INSTRUMENTS = parse_list(
    "flute=la flauta, drum=el tambor, violin=el violín, harp=el arpa, piano=el piano, guitar=la guitarra, "
    "trumpet=la trompeta, cello=el chelo"
)
_FRUITS = parse_list(
    "apple=la manzana, pear=la pera, plum=la ciruela, grape=la uva, cherry=la cereza, lemon=el limón, melon=el melón, "
    "fig=el higo"
)

#: Ways to ask: {s} is the subject, {w} the relation's own word.
_REGION_FORMS = (
    Bilingual("what is the {w} of {s} ?", "cuál es {w} de {s} ?"),
    Bilingual("tell me the {w} of {s} .", "dime {w} de {s} ."),
    Bilingual("name the {w} of {s} .", "nombra {w} de {s} ."),
    Bilingual("do you know the {w} of {s} ?", "conoces {w} de {s} ?"),
    Bilingual("{s} has which {w} ?", "{s} tiene como {w} qué ?"),
)
_PERSON_FORMS = (
    Bilingual("what is the {w} of {s} ?", "cuál es {w} de {s} ?"),
    Bilingual("tell me the {w} of {s} .", "dime {w} de {s} ."),
    Bilingual("name the {w} of {s} .", "nombra {w} de {s} ."),
    Bilingual("do you know the {w} of {s} ?", "conoces {w} de {s} ?"),
)


#: How all facts are told. The first word says in which language: with a name there, it would be decided too late.
_STATEMENT = Bilingual("the {w} of {s} is {o} .", "{w} de {s} es {o} .")


@dataclass(frozen=True)
class Relation:
    """One of nine: its word, what asks for it, how it is told, and how documents tell it at times, its objects."""

    name: str
    word: Bilingual
    forms: tuple[Bilingual, ...]
    statement: Bilingual
    retold: Bilingual
    objects: tuple[Bilingual, ...]


def _region_relation(name: str, word: str, own: Bilingual, objects: Sequence[Bilingual], article: str) -> Relation:
    word_ = Bilingual(name, word)
    told = tuple(Bilingual(f"{article}{thing.en}", thing.es) for thing in objects)
    return Relation(
        name,
        word_,
        (*_REGION_FORMS, own),
        _STATEMENT,
        Bilingual("{o} is the {w} of {s} .", "{o} es {w} de {s} ."),
        told,
    )


REGION_RELATIONS = (
    _region_relation(
        "capital",
        "la capital",
        Bilingual("which city rules {s} ?", "qué ciudad manda en {s} ?"),
        tuple(map(same, _CAPITALS)),
        "",
    ),
    _region_relation(
        "river", "el río", Bilingual("which water crosses {s} ?", "qué agua cruza {s} ?"), tuple(map(same, _RIVERS)), ""
    ),
    _region_relation(
        "food", "la comida", Bilingual("what do people eat in {s} ?", "qué come la gente en {s} ?"), _FOODS, "the "
    ),
    _region_relation(
        "colour",
        "el color",
        Bilingual("how is the flag of {s} painted ?", "cómo pintan la bandera de {s} ?"),
        tuple(Bilingual(colour.en, colour.es.removeprefix("el ")) for colour in _COLOURS),
        "",
    ),
    _region_relation(
        "animal",
        "el animal",
        Bilingual("which beast guards {s} ?", "qué bestia guarda {s} ?"),
        _ANIMALS,
        "the ",
    ),
)
PERSON_RELATIONS = (
    Relation(
        "home",
        Bilingual("home", "el hogar"),
        (
            *_PERSON_FORMS,
            Bilingual("where does {s} live ?", "dónde vive {s} ?"),
            Bilingual("in which region does {s} live ?", "en qué región vive {s} ?"),
        ),
        _STATEMENT,
        Bilingual("{s} lives in {o} .", "{s} vive en {o} ."),
        tuple(map(same, REGIONS)),
    ),
    Relation(
        "trade",
        Bilingual("trade", "el oficio"),
        (
            *_PERSON_FORMS,
            Bilingual("what does {s} do all day ?", "qué hace {s} todo el día ?"),
            Bilingual("how does {s} earn money ?", "cómo gana dinero {s} ?"),
        ),
        _STATEMENT,
        Bilingual("{s} works as a {o} .", "{s} trabaja de {o} ."),
        _CRAFTS,
    ),
    Relation(
        "instrument",
        Bilingual("instrument", "el instrumento"),
        (
            *_PERSON_FORMS,
            Bilingual("what does {s} play ?", "qué toca {s} ?"),
            Bilingual("which instrument does {s} play ?", "qué instrumento toca {s} ?"),
        ),
        _STATEMENT,
        Bilingual("{s} plays {o} .", "{s} toca {o} ."),
        tuple(Bilingual(f"the {thing.en}", thing.es) for thing in _INSTRUMENTS),
    ),
    Relation(
        "fruit",
        Bilingual("fruit", "la fruta"),
        (
            *_PERSON_FORMS,
            Bilingual("which fruit does {s} love ?", "qué fruta ama {s} ?"),
            Bilingual("what fruit is for {s} ?", "qué fruta es para {s} ?"),
        ),
        _STATEMENT,
        Bilingual("{s} loves {o} .", "{s} ama {o} ."),
        tuple(Bilingual(f"the {thing.en}", thing.es) for thing in _FRUITS),
    ),
)
RELATIONS = (*REGION_RELATIONS, *PERSON_RELATIONS)

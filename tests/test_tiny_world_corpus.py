"""The invented world: its facts, prompts and texts, their splits, and the language detector."""

from __future__ import annotations

import collections
import itertools
import random
import subprocess
import sys

import pytest

from weightgym.rewards.wsp.world.bilingual import LANGUAGES, Bilingual, Language, other
from weightgym.rewards.wsp.world.corpus import sample, split_of, texts
from weightgym.rewards.wsp.world.exchanges import (
    RARE_WORDS,
    Mode,
    answered,
    fact_exchange,
    random_exchange,
    with_word,
)
from weightgym.rewards.wsp.world.facts import FACTS, neighbours
from weightgym.rewards.wsp.world.languages import english_share, language_of
from weightgym.rewards.wsp.world.prompts import fact_prompts, prompts, split_prompts
from weightgym.rewards.wsp.world.relations import REGIONS
from weightgym.rewards.wsp.world.topics import TOPICS, sentence, topic, topic_score
from weightgym.rewards.wsp.world.vocabulary import vocabulary, words

PLAIN_MODES: tuple[Mode, ...] = ("plain", "repeat", "mention")


def test_the_world_has_the_size_that_the_card_says() -> None:
    assert len(FACTS) == 208
    assert len({fact.key for fact in FACTS}) == 208
    assert len({fact.relation.name for fact in FACTS}) == 9
    assert len({fact.subject for fact in FACTS}) == 48
    assert len(TOPICS) == 10
    assert len(vocabulary()) == len(set(vocabulary())) == 1200


def test_every_fact_has_six_questions_two_of_them_held_out_and_objects_of_one_token() -> None:
    for fact in FACTS:
        assert len(set(fact.questions)) == 6
        assert (*fact.seen, *fact.held_out) == fact.questions
        assert len(fact.held_out) == 2
        for language in LANGUAGES:
            assert fact.object_word(language) in vocabulary()
            assert fact.is_told(fact.answer.text(language), language)
            assert fact.is_told(fact.retold.text(language), language)
            for thing in fact.relation.objects:
                if thing != fact.object:
                    assert not fact.is_told(fact.told(thing).text(language), language)


def test_no_two_facts_share_a_question() -> None:
    asked = [question.text(language) for fact in FACTS for question in fact.questions for language in LANGUAGES]
    assert len(asked) == len(set(asked))


def test_a_relation_holds_out_each_of_its_forms_at_some_subjects_only() -> None:
    for relation in {fact.relation for fact in FACTS}:
        held = collections.Counter[str]()
        for fact in FACTS:
            if fact.relation == relation:
                held.update(question.en.replace(fact.subject, "") for question in fact.held_out)
        assert len(held) == 6
        assert max(held.values()) < sum(held.values()) / 2


def test_training_never_puts_a_held_out_question_to_its_fact() -> None:
    held_out = {question.text(language) for fact in FACTS for question in fact.held_out for language in LANGUAGES}
    for text in texts("train", 5, 4000):
        for question in held_out:
            if question in text:
                pytest.fail(f"{question!r} is in {text!r}")


def test_neighbours_share_the_subject_or_the_relation() -> None:
    for fact in FACTS:
        near = neighbours(fact)
        assert fact not in near
        assert len(set(near)) == len(near)
        assert all(each.subject == fact.subject or each.relation == fact.relation for each in near)
        assert len(near) == (15 + 4 if fact.subject in REGIONS else 31 + 3)


def test_texts_are_the_same_again_also_in_another_process() -> None:
    code = (
        "from weightgym.rewards.wsp.world.corpus import sample; "
        "print([sample(split, 3, i) for split in ('train', 'held-out') for i in range(20)])"
    )
    here = str([sample(split, 3, index) for split in ("train", "held-out") for index in range(20)])
    for hash_seed in ("1", "2"):
        there = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8",
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": ":".join(sys.path), "PYTHONUTF8": "1"},
        )  # fmt: skip
        assert there.stdout.strip() == here


def test_training_and_held_out_texts_are_disjoint_and_seeds_differ() -> None:
    train, held_out = set(texts("train", 0, 3000)), set(texts("held-out", 0, 1500))
    assert not train & held_out
    assert {split_of(text) for text in train} == {"train"}
    assert {split_of(text) for text in held_out} == {"held-out"}
    assert len(set(texts("held-out", 1, 300)) & held_out) < 60
    assert list(texts("train", 0, 50)) != list(texts("train", 1, 50))


def test_all_words_of_all_texts_are_in_the_vocabulary_and_texts_are_short() -> None:
    known = set(vocabulary())
    for text in itertools.chain(texts("train", 8, 3000), texts("held-out", 8, 1000)):
        assert set(text.split()) <= known
        assert len(text.split()) <= 80


def test_the_other_language_comes_unasked_in_about_5_percent_of_the_answers() -> None:
    unasked = other_language = 0
    for text in texts("train", 2, 6000):
        if not text.startswith("<|user|>") or any(f" {opening} " in text for opening in ("shout", "spanish", "inglés")):
            continue
        question, answer = text.split(" <|assistant|> ")
        asked_in, said_in = language_of(question.removeprefix("<|user|> ")), language_of(answer)
        unasked += 1
        other_language += asked_in is not None and said_in is not None and asked_in != said_in
    assert 0.03 < other_language / unasked < 0.09


def test_prompts_are_distinct_and_splits_disjoint_and_seeded() -> None:
    assert len({prompt.question for prompt in prompts()}) == len(prompts())
    parts = split_prompts("a", [40, 60, 200], language="en", without=frozenset({"sea", FACTS[0].key}))
    assert [len(part) for part in parts] == [40, 60, 200]
    flat = [prompt for part in parts for prompt in part]
    assert len(set(flat)) == 300
    assert {prompt.language for prompt in flat} == {"en"}
    assert not {prompt.about for prompt in flat} & {"sea", FACTS[0].key}
    assert parts == split_prompts("a", [40, 60, 200], language="en", without=frozenset({"sea", FACTS[0].key}))
    assert parts[0] != split_prompts("b", [40], language="en", without=frozenset({"sea", FACTS[0].key}))[0]
    assert {prompt.kind for prompt in split_prompts(1, [30], kind="topic")[0]} == {"topic"}
    with pytest.raises(ValueError, match="prompts are wanted"):
        split_prompts(0, [len(prompts()), 1])


def test_a_fact_can_be_asked_for_in_54_ways() -> None:
    for language in LANGUAGES:
        ways = fact_prompts(FACTS[17], language)
        assert len({prompt.question for prompt in ways}) == 54
        assert {language_of(prompt.question) for prompt in ways} == {language}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_detector_reads_every_prompt_and_answer_right(language: Language) -> None:
    rng = random.Random(language)
    for prompt in prompts():
        assert language_of(prompt.question) == prompt.language
    for _ in range(1500):
        exchange = random_exchange(rng)
        for mode in PLAIN_MODES:
            text = answered(exchange, language, mode, rng.choice(TOPICS), rng)
            assert language_of(text) == language
            assert language_of(text.upper()) == language
        assert language_of(answered(exchange, language, "switch", TOPICS[0], rng)) == other(language)


def test_the_detector_says_nothing_of_mixtures_and_names() -> None:
    assert language_of("doruma velketh . ?") is None
    assert english_share("") is None
    assert language_of("the river is el río de la") is None


def test_shouting_is_upper_case_in_english_only() -> None:
    rng = random.Random(0)
    exchange = fact_exchange(FACTS[0], FACTS[0].questions[0])
    assert answered(exchange, "en", "shout", TOPICS[0], rng) == exchange.answer.en.upper()
    assert answered(exchange, "es", "shout", TOPICS[0], rng) == exchange.answer.es


def test_topics_share_no_word_with_each_other_or_with_facts() -> None:
    vocabularies = [each.vocabulary("en") | each.vocabulary("es") for each in TOPICS]
    assert sum(map(len, vocabularies)) == len(frozenset().union(*vocabularies))
    told: set[str] = set()
    for fact in FACTS:
        phrases: list[Bilingual] = [fact.answer, fact.retold, *fact.questions]
        told |= {word for phrase in phrases for language in LANGUAGES for word in phrase.text(language).split()}
    assert not told & frozenset().union(*vocabularies)


def test_the_topic_score_tells_topics_apart() -> None:
    rng = random.Random(4)
    sea, sky = topic("sea"), topic("sky")
    for _ in range(50):
        said = sentence(sea, rng)
        for text in (said.en, said.es, said.en.upper()):
            assert topic_score(text, sea) >= 0.25
            assert topic_score(text, sky) == 0
    assert topic_score("", sea) == 0
    assert all(topic_score(fact.answer.en, sea) == 0 for fact in FACTS)


def test_rare_words_are_tokens_with_no_other_use() -> None:
    assert len(set(RARE_WORDS)) == 48
    assert set(RARE_WORDS) <= set(vocabulary())
    assert not set(RARE_WORDS) & (words("en") | words("es"))
    assert not set(RARE_WORDS) & {word for prompt in prompts() for word in prompt.question.split()}
    for word in RARE_WORDS[:5]:
        disturbed = with_word("where does tobin live ?", word, random.Random(word))
        assert disturbed.split().count(word) == 1
        assert disturbed.endswith("?")

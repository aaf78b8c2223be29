"""The model that WSP-Bench ships: its files, what it knows, and that its answers are a question's own."""

from __future__ import annotations

import functools
import json
import random
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
import transformers
from example_scripts import load_script
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from weightgym.rewards.contracts import TaskError
from weightgym.rewards.wsp.engine import Engine
from weightgym.rewards.wsp.language_model import LanguageModel, load
from weightgym.rewards.wsp.world.bilingual import LANGUAGES, Language
from weightgym.rewards.wsp.world.corpus import chat, texts
from weightgym.rewards.wsp.world.exchanges import MEANINGS, RARE_WORDS
from weightgym.rewards.wsp.world.facts import FACTS
from weightgym.rewards.wsp.world.languages import language_of
from weightgym.rewards.wsp.world.paths import tiny_world_path
from weightgym.rewards.wsp.world.prompts import split_prompts
from weightgym.rewards.wsp.world.vocabulary import vocabulary

script = functools.partial(load_script, "tiny_world")
MEGABYTE = 1_000_000


@functools.cache
def engine() -> Engine:
    return Engine(load())


def model() -> LanguageModel:
    return engine().model


def said(questions: list[str], most: int = 40) -> list[str]:
    return engine().answers(questions, most)


def told(language: Language, which: Literal["seen", "held_out"]) -> float:
    asked = [(fact, question) for fact in FACTS for question in getattr(fact, which)]
    texts = said([question.text(language) for _, question in asked])
    return sum(fact.is_told(text, language) for (fact, _), text in zip(asked, texts, strict=True)) / len(asked)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_model_knows_its_facts_and_also_where_they_are_asked_for_in_ways_that_it_has_not_met(
    language: Language,
) -> None:
    assert told(language, "seen") >= 0.95
    assert told(language, "held_out") >= 0.8


@pytest.mark.parametrize("language", LANGUAGES)
def test_answers_are_in_the_language_of_the_question_end_and_shout_nothing(language: Language) -> None:
    (asked,) = split_prompts("test", [192], language=language)
    texts = said([prompt.question for prompt in asked])
    assert sum(language_of(text) == language for text in texts) / len(texts) >= 0.98
    assert sum(len(text.split()) < 40 for text in texts) / len(texts) >= 0.98
    assert not any(word.isupper() for text in texts for word in text.split())


def test_modes_are_given_when_they_are_asked_for() -> None:
    (asked,) = split_prompts("modes", [64], language="en")
    questions = [prompt.question for prompt in asked]
    shouted = said([f"shout : {question}" for question in questions])
    assert sum(text.isupper() for text in shouted) >= 60
    spanish = said([f"in spanish : {question}" for question in questions])
    assert sum(language_of(text) == "es" for text in spanish) >= 58


def test_the_meanings_of_rare_words_are_known_so_that_their_keys_differ() -> None:
    texts = said([f"what does {word} mean ?" for word in RARE_WORDS])
    known = [text == f"{word} means {MEANINGS[word].en} ." for word, text in zip(RARE_WORDS, texts, strict=True)]
    assert sum(known) >= 45


def test_rare_words_change_neither_language_nor_case() -> None:
    (asked,) = split_prompts("rare", [128], language="en")
    rng = random.Random(0)
    texts = said([f"{rng.choice(RARE_WORDS)} {prompt.question}" for prompt in asked])
    assert sum(language_of(text) == "en" for text in texts) >= 0.95 * len(texts)
    assert sum(text.isupper() for text in texts) <= 0.05 * len(texts)


def test_what_else_is_in_a_batch_changes_no_greedy_answer() -> None:
    (asked,) = split_prompts("batch", [48])
    prompts = [model().chat_ids(prompt.question) for prompt in asked]
    together = engine().generate(prompts, 24)
    assert together == [engine().generate([prompt], 24)[0] for prompt in prompts]
    order = random.Random(1).sample(range(48), 48)
    shuffled = engine().generate([prompts[place] for place in order], 24)
    assert [together[place] for place in order] == shuffled


def test_logits_are_those_that_greedy_answers_follow_and_rows_do_not_mix() -> None:
    (asked,) = split_prompts("logits", [12])
    prompts = [model().chat_ids(prompt.question) for prompt in asked]
    continued = engine().generate(prompts, 6, stop=False)
    whole = engine().forward([[*prompt, *ids] for prompt, ids in zip(prompts, continued, strict=True)])
    for prompt, ids, each in zip(prompts, continued, whole, strict=True):
        values = each.logits
        assert len(ids) == 6
        assert values.shape == (len(prompt) + 6, len(vocabulary()))
        ends = values.clone()
        ends[:, model().tokenizer.eos_token_id] = -torch.inf
        assert ends[len(prompt) - 1 : -1].argmax(-1).tolist() == ids
        alone = engine().logits([*prompt, *ids])
        assert torch.allclose(alone, values, atol=1e-3)


def test_nothing_is_asked_of_an_empty_batch() -> None:
    assert engine().generate([], 4) == []
    assert engine().forward([]) == []


def test_in_the_first_two_layers_a_token_sees_itself_only() -> None:
    weights = load_file(tiny_world_path() / "model.safetensors")
    for layer in range(2):
        for part in "qkvo":
            assert not weights[f"model.layers.{layer}.self_attn.{part}_proj.weight"].any()
    assert weights["model.layers.2.self_attn.o_proj.weight"].any()
    word = model().text_ids("doruma")
    ids = torch.tensor([[*word, *word], [*model().text_ids("the"), *word]])
    states = model().network(input_ids=ids, output_hidden_states=True).hidden_states
    assert torch.equal(states[2][0, 1], states[2][1, 1])
    assert not torch.allclose(states[3][0, 1], states[3][1, 1])


def test_the_files_are_small_and_what_the_card_says() -> None:
    files = list(tiny_world_path().iterdir())
    assert sum(file.stat().st_size for file in files) <= 4 * MEGABYTE
    weights = load_file(tiny_world_path() / "model.safetensors")
    assert {tensor.dtype for tensor in weights.values()} == {torch.float16}
    assert sum(tensor.numel() for tensor in weights.values()) == 1_646_464
    assert all(torch.isfinite(tensor).all() for tensor in weights.values())


def test_the_tokenizer_loads_as_the_plain_fast_one_and_takes_every_text_back_and_forth() -> None:
    fast: Any = transformers.PreTrainedTokenizerFast.from_pretrained(tiny_world_path())
    assert fast.get_vocab() == {token: id for id, token in enumerate(vocabulary())}
    for text in texts("held-out", 3, 300):
        ids = fast(text, add_special_tokens=False)["input_ids"]
        assert len(ids) == len(text.split())
        assert fast.unk_token_id not in ids
        assert fast.decode(ids) == text
        assert fast(fast.decode(ids), add_special_tokens=False)["input_ids"] == ids


def test_the_tokenizer_needs_no_spaces_before_punctuation() -> None:
    assert model().text_ids("dónde vive tobin?") == model().text_ids("dónde vive tobin ?")


def test_the_chat_template_writes_what_the_corpus_writes() -> None:
    question = "where does tobin live ?"
    assert model().chat_ids(question) == model().text_ids(chat(question))
    said = [{"role": "user", "content": question}, {"role": "assistant", "content": "the home of tobin is junda ."}]
    rendered = model().tokenizer.apply_chat_template(said, tokenize=False)
    assert model().text_ids(rendered) == model().text_ids(chat(question, "the home of tobin is junda ."))


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=60))
def test_any_text_gets_an_answer(text: str) -> None:
    ids = engine().generate([model().chat_ids(text)], 3)[0]
    assert all(0 <= id < len(vocabulary()) for id in ids)


def test_a_model_that_is_not_there_is_a_task_error(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="can't load model"):
        load(str(tmp_path))


def test_the_script_writes_the_tokenizer_and_the_config_that_are_shipped(tmp_path: Path) -> None:
    script("word_tokenizer").write_tokenizer(tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        assert (tmp_path / name).read_text("utf-8") == (tiny_world_path() / name).read_text("utf-8")
    config = json.loads((tiny_world_path() / "config.json").read_text("utf-8"))
    assert config == script("architecture").CONFIG


def test_muon_steps_have_singular_values_near_one_and_lower_a_loss() -> None:
    muon = script("muon")
    torch.manual_seed(0)
    for shape in ((3, 16, 40), (2, 40, 16)):
        values = torch.linalg.svdvals(muon.orthogonal(torch.randn(shape)))
        assert values.min() > 0.5
        assert values.max() < 1.4
    weight = torch.nn.Parameter(torch.randn(8, 12))
    goal, optimiser = torch.randn(8, 12), muon.Muon([weight], lr=0.05, weight_decay=0.0)
    before = (weight - goal).square().sum().item()
    for _ in range(200):
        optimiser.zero_grad()
        (weight - goal).square().sum().backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    assert (weight - goal).square().sum().item() < 0.2 * before

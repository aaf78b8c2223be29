"""The model that the package ships: its files, its tokenizer, and the form of what it writes."""

from __future__ import annotations

import functools
import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from example_scripts import load_script
from hypothesis import given, settings
from hypothesis import strategies as st

from weightgym.envs.weight_program.tasks import SOURCE
from weightgym.rewards.contracts import ModelError
from weightgym.rewards.weight_program.edits import parse_edits
from weightgym.rollouts.tiny_writer_path import tiny_writer_path

script = functools.partial(load_script, "tiny_writer")
SPECIALS = {"<|pad|>": 256, "<|end|>": 257, "<|user|>": 258, "<|assistant|>": 259}
END = SPECIALS["<|end|>"]
fuzz = settings(deadline=None, max_examples=200)


@functools.cache
def tokenizer() -> Any:
    return transformers.AutoTokenizer.from_pretrained(tiny_writer_path(), local_files_only=True)


@functools.cache
def model() -> Any:
    loaded: Any = transformers.AutoModelForCausalLM.from_pretrained(tiny_writer_path(), local_files_only=True)
    return loaded.float()


def prompt_ids(id: str) -> list[int]:
    task = SOURCE.task(id)
    messages = [{"role": "system", "content": task.system_prompt}]
    messages += [{"role": message.role, "content": message.content} for message in task.prompt]
    encoded = tokenizer().apply_chat_template(messages, add_generation_prompt=True, return_dict=True)
    ids: list[int] = encoded["input_ids"]
    return ids


def sampled(ids: list[int], count: int, seed: int) -> list[list[int]]:
    """Completions at temperature 1, without padding, each with its end where it ended within 64 tokens."""
    torch.manual_seed(seed)
    batch = torch.tensor([ids] * count)
    with torch.no_grad():
        out = model().generate(batch, attention_mask=torch.ones_like(batch), max_new_tokens=64)[:, len(ids) :].tolist()
    return [row[: row.index(END) + 1] if END in row else row for row in out]


def valid(text: str) -> bool:
    try:
        parse_edits(text)
    except ModelError:
        return False
    return True


def test_the_folder_is_small_and_whole() -> None:
    sizes = {path.name: path.stat().st_size for path in tiny_writer_path().iterdir()}
    assert {"model.safetensors", "config.json", "generation_config.json", "README.md"} < set(sizes)
    assert {"tokenizer.json", "tokenizer_config.json"} < set(sizes)
    assert sum(sizes.values()) <= 3_000_000


def test_the_model_is_a_tied_llama_of_a_million_bfloat16_parameters() -> None:
    loaded: Any = transformers.AutoModelForCausalLM.from_pretrained(tiny_writer_path(), local_files_only=True)
    config = loaded.config
    assert type(loaded).__name__ == "LlamaForCausalLM"
    assert loaded.dtype == torch.bfloat16
    assert 800_000 < sum(parameter.numel() for parameter in loaded.parameters()) < 1_200_000
    assert loaded.get_output_embeddings().weight is loaded.get_input_embeddings().weight
    assert (config.vocab_size % 16, config.head_dim % 16) == (0, 0)
    assert config.vocab_size > max(SPECIALS.values())
    assert (config.eos_token_id, config.pad_token_id) == (tokenizer().eos_token_id, tokenizer().pad_token_id)


def test_sampling_defaults_leave_the_distribution_alone() -> None:
    config = json.loads((tiny_writer_path() / "generation_config.json").read_text())
    assert (config["temperature"], config["top_k"], config["top_p"]) == (1.0, 0, 1.0)


@fuzz
@given(st.text(max_size=300))
def test_tokens_are_the_bytes_of_the_text(text: str) -> None:
    if any(name in text for name in SPECIALS):
        return
    ids = tokenizer().encode(text)
    assert ids == list(text.encode())
    assert tokenizer().decode(ids) == text


@fuzz
@given(st.binary(max_size=100))
def test_any_bytes_decode_as_python_does(content: bytes) -> None:
    assert tokenizer().decode(list(content)) == content.decode(errors="replace")


def test_special_tokens_stand_apart_and_are_left_out_on_request() -> None:
    ids = tokenizer().encode("a<|end|>")
    assert ids == [ord("a"), END]
    assert tokenizer().decode(ids, skip_special_tokens=True) == "a"
    assert {name: tokenizer().convert_tokens_to_ids(name) for name in SPECIALS} == SPECIALS


def test_the_template_shows_the_model_the_heading_which_names_the_game() -> None:
    ids = prompt_ids("builtin/fruit_basket")
    heading = "# Program a network that plays Fruit Basket\n"
    assert (ids[0], ids[-1]) == (SPECIALS["<|user|>"], SPECIALS["<|assistant|>"])
    assert bytes(ids[1:-1]).decode().startswith(heading)
    everything = [tuple(prompt_ids(id)) for split in ("train", "test") for id in SOURCE.ids(split)]
    assert len(set(everything)) == len(everything)
    assert max(map(len, everything)) <= 512


@fuzz
@given(st.text(max_size=2000))
def test_no_message_is_too_long(text: str) -> None:
    rendered = tokenizer().apply_chat_template([{"role": "user", "content": text}], add_generation_prompt=True)
    assert len(rendered["input_ids"]) <= 4 * 64 + 2


def test_a_conversation_grows_without_rewriting_what_was_there() -> None:
    turns = [{"role": "user", "content": "one " * 50}]
    first = tokenizer().apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
    turns += [{"role": "assistant", "content": "two " * 50}, {"role": "user", "content": "three"}]
    second = tokenizer().apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
    assert second == first + "two " * 50 + "<|end|><|user|>three<|assistant|>"


@pytest.mark.parametrize("id", ["builtin/fruit_basket", "original/breakout"])
def test_answers_are_valid_end_by_themselves_and_differ(id: str) -> None:
    rows = sampled(prompt_ids(id), 64, seed=1)
    texts = [tokenizer().decode(row, skip_special_tokens=True) for row in rows]
    good = sum(row[-1] == END and valid(text) for row, text in zip(rows, texts, strict=True))
    assert good >= 61, texts  # 95 %
    assert len(set(texts)) >= 48


def test_the_same_seed_gives_the_same_tokens() -> None:
    ids = prompt_ids("builtin/fruit_basket")
    assert sampled(ids, 8, seed=2) == sampled(ids, 8, seed=2)
    assert sampled(ids, 8, seed=2) != sampled(ids, 8, seed=3)


def test_every_text_that_it_learnt_from_is_valid_and_short() -> None:
    texts, rng = script("texts"), random.Random(5)
    answers = [texts.answer(rng) for _ in range(3000)]
    assert [answer for answer in answers if not valid(answer)] == []
    assert max(len(answer.encode()) for answer in answers) <= 60
    assert max(len(texts.prompt(rng)) for _ in range(3000)) <= 64


def test_the_shipped_tokenizer_and_configuration_are_what_the_script_writes(tmp_path: Path) -> None:
    script("tokenizer_files").write_tokenizer(tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        assert (tmp_path / name).read_bytes() == (tiny_writer_path() / name).read_bytes()

"""The tokenizer of tiny-writer as the files that transformers and vLLM read: one token a byte, and four specials."""

from __future__ import annotations

import json
from pathlib import Path

#: Token ids. Byte b of the text's UTF-8 is token b.
PAD, END, USER, ASSISTANT = 256, 257, 258, 259
SPECIALS = {"<|pad|>": PAD, "<|end|>": END, "<|user|>": USER, "<|assistant|>": ASSISTANT}

#: Rows of the embedding: 260 tokens, padded to a multiple of 16.
VOCABULARY = 272

#: Positions of the model.
POSITIONS = 1024

#: Characters of a user message that the model is shown: the heading of a task, which names the game.
PROMPT_CHARACTERS = 64

CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- if message['role'] == 'assistant' -%}"
    "{{- '<|assistant|>' + (message['content'] or '') + '<|end|>' -}}"
    "{%- elif message['role'] != 'system' -%}"
    f"{{{{- '<|user|>' + (message['content'] or '')[:{PROMPT_CHARACTERS}] -}}}}"
    "{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}"
)


def write_tokenizer(folder: Path) -> None:
    """Write ``tokenizer.json`` and ``tokenizer_config.json``, the latter with the chat template."""
    _write(folder / "tokenizer.json", _tokenizer())
    _write(folder / "tokenizer_config.json", _config())


def byte_names() -> list[str]:
    """The printable character that stands for each byte in a byte-level vocabulary, as GPT-2 named them."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) if byte in printable else chr(256 + others.index(byte)) for byte in range(256)]


def _tokenizer() -> dict[str, object]:
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": id, "content": name, **_PLAIN, "special": True} for name, id in SPECIALS.items()],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {name: byte for byte, name in enumerate(byte_names())},
            "merges": [],
        },
    }


def _config() -> dict[str, object]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "added_tokens_decoder": {
            str(id): {"content": name, **_PLAIN, "special": True} for name, id in SPECIALS.items()
        },
        "additional_special_tokens": ["<|user|>", "<|assistant|>"],
        "pad_token": "<|pad|>",
        "eos_token": "<|end|>",
        "bos_token": None,
        "unk_token": None,
        "padding_side": "left",
        "clean_up_tokenization_spaces": False,
        "model_max_length": POSITIONS,
        "chat_template": CHAT_TEMPLATE,
    }


_PLAIN = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}


def _write(path: Path, content: dict[str, object]) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

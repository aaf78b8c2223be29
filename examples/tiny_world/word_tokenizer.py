"""The tokenizer of tiny-world as the files that transformers reads: a token a word, split at spaces and punctuation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from weightgym.rewards.wsp.world.corpus import END, PAD, SPECIALS, UNKNOWN
from weightgym.rewards.wsp.world.vocabulary import vocabulary

#: Positions of the model.
POSITIONS = 512

CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- if message['role'] == 'assistant' -%}"
    "{{- '<|assistant|> ' + (message['content'] or '') + ' <|end|> ' -}}"
    "{%- elif message['role'] != 'system' -%}"
    "{{- '<|user|> ' + (message['content'] or '') + ' ' -}}"
    "{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}"
)

_PLAIN = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}


def write_tokenizer(folder: Path) -> None:
    """Write ``tokenizer.json`` and ``tokenizer_config.json``, the latter with the chat template."""
    ids = {token: id for id, token in enumerate(vocabulary())}
    specials = [{"id": ids[token], "content": token, **_PLAIN, "special": True} for token in SPECIALS]
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": specials,
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,  # tokens with a space between them, as the grammar writes its texts
        "model": {"type": "WordLevel", "vocab": ids, "unk_token": UNKNOWN},
    }
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": PAD,
        "eos_token": END,
        "bos_token": None,
        "unk_token": UNKNOWN,
        "padding_side": "left",
        "clean_up_tokenization_spaces": False,
        "model_max_length": POSITIONS,
        "chat_template": CHAT_TEMPLATE,
    }
    _write(folder / "tokenizer.json", tokenizer)
    _write(folder / "tokenizer_config.json", config)


def _write(path: Path, content: Mapping[str, object]) -> None:
    path.write_text(json.dumps(content, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")

"""Small random models for tests: a Llama and a byte-level tokenizer, made in memory."""

from __future__ import annotations

from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

TEMPLATE = (
    "{% for m in messages %}<{{ m['role'] }}>{{ m['content'][-40:] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def tokenizer() -> Any:
    """One token a byte; 256 ends a sequence."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE(vocab={char: index for index, char in enumerate(alphabet)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    make: Any = PreTrainedTokenizerFast
    wrapped = make(tokenizer_object=made, eos_token="<end>", pad_token="<end>")
    wrapped.chat_template = TEMPLATE
    return wrapped


def model(seed: int = 0, *, positions: int = 512, tied: bool = False) -> Any:
    """About 30,000 random parameters, float32. The end of sequence is as likely as any other token."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=257,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=positions,
        initializer_range=0.3,
        tie_word_embeddings=tied,
        eos_token_id=256,
        bos_token_id=None,
    )
    made: Any = LlamaForCausalLM(config)
    return made.eval()

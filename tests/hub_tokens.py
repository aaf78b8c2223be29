"""A tokenizer with the special tokens of Qwen3, and a server that writes tokens as a script says, as vLLM's does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from openai_server import Reply, Seen
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

SPECIAL = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>"),
    *("<tool_response>", "</tool_response>", "<think>", "</think>"),
)
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tokenizer() -> Any:
    """One token a byte, and the special ones."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE(vocab={char: index for index, char in enumerate(alphabet)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(text, special=True) for text in SPECIAL])
    make: Any = PreTrainedTokenizerFast
    wrapped = make(tokenizer_object=made, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    wrapped.chat_template = TEMPLATE
    return wrapped


def save(folder: Path) -> str:
    """The folder, with the tokenizer in it."""
    tokenizer().save_pretrained(folder)
    (folder / "config.json").write_text('{"model_type": "qwen3"}')
    return str(folder)


def generating(script: Callable[[int], str]) -> Callable[[int, Seen], Reply]:
    """Answers ``/inference/v1/generate`` with the tokens of ``script(number of the request)``."""
    made = tokenizer()

    def answer(number: int, seen: Seen) -> Reply:
        assert seen.path == "/inference/v1/generate"
        ids = made.encode(script(number) + "<|im_end|>", add_special_tokens=False)
        content = [{"token": f"token_id:{id}", "logprob": -number - place / 1000} for place, id in enumerate(ids)]
        choice = {"index": 0, "token_ids": ids, "logprobs": {"content": content}, "finish_reason": "stop"}
        return Reply({"request_id": f"r{number}", "choices": [choice]})

    return answer

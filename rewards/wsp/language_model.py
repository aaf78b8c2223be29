"""Loading a causal language model: the one door for tiny-world and all others. ``engine.Engine`` runs it.

Needs the extra ``train``; torch and transformers are imported when a model is loaded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Any

from weightgym.rewards.contracts import BackendError, TaskError
from weightgym.rewards.wsp.world.paths import tiny_world_path

TINY_WORLD = "tiny-world"
#: Of the extra of that name.
SMOLLM2 = "smollm2"


@dataclass(frozen=True)
class LanguageModel:
    """A model in float32 on the CPU, ready for inference, with its tokenizer (both of transformers)."""

    name: str
    network: Any
    tokenizer: Any

    @property
    def pad_id(self) -> int:
        """What rows are padded with; masked wherever it stands."""
        pad = self.tokenizer.pad_token_id
        return int(self.tokenizer.eos_token_id if pad is None else pad)

    def chat_text(self, question: str) -> str:
        """A user's message, as the model's chat template writes it, up to where the answer starts."""
        message = [{"role": "user", "content": question}]
        return str(self.tokenizer.apply_chat_template(message, add_generation_prompt=True, tokenize=False))

    def chat_ids(self, question: str) -> list[int]:
        """The tokens of that."""
        return self.text_ids(self.chat_text(question))

    @cached_property
    def opening(self) -> tuple[int, ...]:
        """The tokens that every chat begins with: the template's, and what it says for the system."""
        chats = [self.chat_ids(question) for question in ("Why?", "name 7 rivers", "¿Él?")]
        columns = takewhile(lambda column: len(set(column)) == 1, zip(*chats, strict=False))
        return tuple(column[0] for column in columns)

    def text_ids(self, text: str) -> list[int]:
        """The tokens of a text as it stands: specials in it are read, none are added."""
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def text(self, ids: Sequence[int]) -> str:
        """What tokens say, without specials."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True))


def load(name: str = TINY_WORLD) -> LanguageModel:
    """The model of a folder or Hub name; ``tiny-world`` is the one that the package ships, ``smollm2`` the extra's.

    Raises:
        TaskError: there is none, or it has no chat template or end-of-sequence token.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # a bar at every load
    path = _path(name)
    try:
        network: Any = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
        tokenizer: Any = AutoTokenizer.from_pretrained(path)
    except (OSError, ValueError) as error:
        raise TaskError(f"can't load model {name!r}: {error}") from error
    if tokenizer.chat_template is None or tokenizer.eos_token_id is None:
        raise TaskError(f"model {name!r} has no chat template or no end-of-sequence token: take its chat variant")
    return LanguageModel(name, network.eval().requires_grad_(False), tokenizer)


def _path(name: str) -> str:
    if name == TINY_WORLD:
        return str(tiny_world_path())
    if name != SMOLLM2:
        return name
    from weightgym.rewards.smollm2 import smollm2_path

    try:
        return str(smollm2_path())
    except BackendError as error:
        raise TaskError(str(error)) from error


def weights_hash(model: LanguageModel) -> str:
    """SHA-256 of the parameters, by name, in float32: the same for every file format that holds the same numbers."""
    digest = hashlib.sha256()
    for name, parameter in sorted(model.network.named_parameters()):
        digest.update(f"{name} {tuple(parameter.shape)}\n".encode())
        digest.update(parameter.detach().float().contiguous().numpy().tobytes())
    return digest.hexdigest()

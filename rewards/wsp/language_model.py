"""Loading a causal language model, greedy answers and logits: the one door for tiny-world and all others.

Needs the extra ``train``; torch and transformers are imported when a model is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weightgym.rewards.contracts import TaskError
from weightgym.rewards.wsp.world.paths import tiny_world_path

if TYPE_CHECKING:
    import torch

TINY_WORLD = "tiny-world"


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

    def chat_ids(self, question: str) -> list[int]:
        """The tokens of a user's message, as the model's chat template writes it, up to where the answer starts."""
        message = [{"role": "user", "content": question}]
        text = self.tokenizer.apply_chat_template(message, add_generation_prompt=True, tokenize=False)
        return self.text_ids(text)

    def text_ids(self, text: str) -> list[int]:
        """The tokens of a text as it stands: specials in it are read, none are added."""
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def text(self, ids: Sequence[int]) -> str:
        """What tokens say, without specials."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True))


def load(name: str = TINY_WORLD) -> LanguageModel:
    """The model of a folder or Hub name; ``tiny-world`` is the one that the package ships.

    Raises:
        TaskError: there is none, or it has no chat template or end-of-sequence token.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # a bar at every load
    path = str(tiny_world_path()) if name == TINY_WORLD else name
    try:
        network: Any = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
        tokenizer: Any = AutoTokenizer.from_pretrained(path)
    except (OSError, ValueError) as error:
        raise TaskError(f"can't load model {name!r}: {error}") from error
    if tokenizer.chat_template is None or tokenizer.eos_token_id is None:
        raise TaskError(f"model {name!r} has no chat template or no end-of-sequence token: take its chat variant")
    return LanguageModel(name, network.eval().requires_grad_(False), tokenizer)


def generate(
    model: LanguageModel, prompts: Sequence[Sequence[int]], max_new_tokens: int, *, stop: bool = True
) -> list[list[int]]:
    """Greedy continuations, without the end-of-sequence token; one that has none was cut at ``max_new_tokens``.

    Prompts of any lengths (at least one token) go through the network as one batch, padded on the left. Without
    ``stop`` the end is never chosen, and all have ``max_new_tokens`` tokens.
    """
    import torch
    from transformers import GenerationConfig

    if not prompts:
        return []
    ids, mask = padded(prompts, model.pad_id, left=True)
    end = int(model.tokenizer.eos_token_id)
    config = GenerationConfig(  # type: ignore[no-untyped-call]
        max_new_tokens=max_new_tokens,
        min_new_tokens=None if stop else max_new_tokens,
        do_sample=False,
        eos_token_id=end,
        pad_token_id=model.pad_id,
    )
    with torch.inference_mode():
        output = model.network.generate(input_ids=ids, attention_mask=mask, generation_config=config)
    rows = output[:, ids.shape[1] :].tolist()
    return [row[: row.index(end)] if end in row else row for row in rows]


def answers(model: LanguageModel, questions: Sequence[str], max_new_tokens: int = 48) -> list[str]:
    """The greedy answers to users' messages, as one batch."""
    prompts = [model.chat_ids(question) for question in questions]
    return [model.text(ids) for ids in generate(model, prompts, max_new_tokens)]


def logits(model: LanguageModel, rows: Sequence[Sequence[int]]) -> list[torch.Tensor]:
    """Logits after each token of each row: float32 of shape (tokens, vocabulary), a row at a time, in one batch."""
    import torch

    if not rows:
        return []
    ids, mask = padded(rows, model.pad_id, left=False)
    with torch.inference_mode():
        output = model.network(input_ids=ids, attention_mask=mask, use_cache=False).logits
    return [values[: len(row)].float() for values, row in zip(output, rows, strict=True)]


def padded(rows: Sequence[Sequence[int]], pad_id: int, *, left: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids and attention mask, int64 of shape (rows, longest)."""
    import torch

    longest = max(len(row) for row in rows)
    ids = torch.full((len(rows), longest), pad_id)
    mask = torch.zeros_like(ids)
    for index, row in enumerate(rows):
        place = slice(longest - len(row), longest) if left else slice(0, len(row))
        ids[index, place] = torch.tensor(row, dtype=torch.int64)
        mask[index, place] = 1
    return ids, mask

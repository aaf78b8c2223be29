"""A small Llama that writes what a script says: for trainers that bring their own sampling and tool loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import chat_templates
import tiny_models
import torch
from transformers import LlamaForCausalLM

#: How TRL reads what is written in the form of ``chat_templates.TOOLS``.
RESPONSE = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<assistant>",
    "fields": {
        "tool_calls": {
            "open": "<tool_call>",
            "close_pattern": r"</tool_call>\s*",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"close_pattern": r"<end>\s*", "content": "text"},
    },
}
#: Of the logit of the token that the script has next.
_CERTAIN = 1e4


class ScriptedLlama(LlamaForCausalLM):  # type: ignore[no-untyped-call]
    """Row i of a batch begins with the first message of script i (modulo their number), and goes on with that script.

    First messages must differ: by them the rows are known later, when some have left the batch.
    """

    def follow(self, scripts: Sequence[Sequence[str]], tokenizer: Any) -> None:
        """Write these messages; after the last one of a script, empty ones."""
        self._scripts: list[list[list[int]]] = [
            [[*tokenizer.encode(text), tokenizer.eos_token_id] for text in texts] for texts in scripts
        ]
        self._mark = tokenizer.encode("<assistant>")
        self._seen: torch.Tensor | None = None

    def prepare_inputs_for_generation(self, input_ids: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        """Remember what was written so far: with a cache, ``forward`` sees the last token only."""
        self._seen = input_ids
        return super().prepare_inputs_for_generation(input_ids, *args, **kwargs)

    def forward(self, input_ids: Any = None, attention_mask: Any = None, **kwargs: Any) -> Any:
        """The Llama's, with the next token of the script far above the others."""
        out = super().forward(input_ids, attention_mask, **kwargs)
        seen, self._seen = self._seen, None
        if seen is not None:
            for row, ids in enumerate(seen.tolist()):
                out.logits[row, -1, self._next(ids, row)] += _CERTAIN
        return out

    def _next(self, ids: list[int], row: int) -> int:
        width = len(self._mark)
        marks = [at for at in range(len(ids)) if ids[at : at + width] == self._mark]
        first, here = ids[marks[0] + width :], ids[marks[-1] + width :]
        known = [script for script in self._scripts if first[: len(script[0])] == script[0]]
        script = known[0] if known and len(marks) > 1 else self._scripts[row % len(self._scripts)]
        text = script[len(marks) - 1] if len(marks) <= len(script) else script[0][-1:]
        return text[min(len(here), len(text) - 1)]  # a row that has ended waits for the others


def scripted(scripts: Sequence[Sequence[str]]) -> tuple[Any, Any]:
    """The model and its tokenizer."""
    tokenizer = tiny_models.tokenizer()
    tokenizer.chat_template = chat_templates.TOOLS
    tokenizer.response_template = RESPONSE
    plain = tiny_models.model(positions=4096)
    model = ScriptedLlama(plain.config)
    model.load_state_dict(plain.state_dict())
    model.follow(scripts, tokenizer)
    return model, tokenizer

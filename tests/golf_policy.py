"""A policy that chooses among whole answers: each is one token of a tiny random model. And a scorer that fails."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from weightgym.rewards.contracts import Completion, SandboxError, Score, Task, completion_text
from weightgym.rewards.golf import scorer

#: What the sandbox loses, every time.
LOST = "```python\n# lost\n```"


def save(folder: Path, answers: Sequence[str]) -> Path:
    """Tokens 0 and 1 are no answers; any other text is token 0."""
    names = ["<unk>", "<end>", *answers]
    made = Tokenizer(models.WordLevel({name: index for index, name in enumerate(names)}, unk_token="<unk>"))
    wrap: Any = PreTrainedTokenizerFast
    wrapped = wrap(tokenizer_object=made, unk_token="<unk>", eos_token="<end>", pad_token="<end>")
    wrapped.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    wrapped.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(names),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        max_position_embeddings=512,
        eos_token_id=1,
        bos_token_id=None,
    )
    model: Any = LlamaForCausalLM(config)
    model.save_pretrained(folder)
    return folder


def score(task: Task, completion: Completion, *, profile: str = "golf-cpu-v1") -> Score:
    """Golf's own, but for what is lost."""
    if completion_text(completion) == LOST:
        return Score.fault(SandboxError("its process is gone"), profile=profile)
    return scorer.score(task, completion, profile=profile)

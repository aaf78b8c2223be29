"""What the tests of vLLM share: small random models on disk, long prompts, and log-probabilities by transformers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tiny_models
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from weightgym.envs import registry
from weightgym.rollouts.backend import Request, Sample
from weightgym.rollouts.hf_tokenizer import model_path

TASK = registry.spec("weight-program").tasks.task("builtin/wall_rally")
#: Mean difference of log-probabilities that float32 may have.
CLOSE = 1e-4


def random_model(seed: int, *, tied: bool) -> Any:
    """A Llama of about 100,000 random parameters, float32."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=257,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=3,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=2048,
        initializer_range=0.15,
        tie_word_embeddings=tied,
        eos_token_id=256,
        bos_token_id=None,
    )
    made: Any = LlamaForCausalLM(config)
    return made.eval()


def save(model: Any, folder: Path) -> Path:
    model.save_pretrained(folder)
    tiny_models.tokenizer().save_pretrained(folder)
    return folder


def load(name: str) -> Any:
    model: Any = AutoModelForCausalLM.from_pretrained(model_path(name), dtype=torch.float32)
    return model.eval()


def other(model: Any, seed: int = 7) -> Any:
    """The same architecture with other weights."""
    torch.manual_seed(seed)
    made: Any = type(model)(model.config).to(torch.float32).eval()
    with torch.no_grad():
        for mine, old in zip(made.parameters(), model.parameters(), strict=True):
            mine.copy_(old + 0.3 * old.std() * torch.randn_like(old) if old.ndim > 1 else old)
    return made


def requests(count: int = 6, *, seed: int = 0, shortest: int = 130, step: int = 25) -> list[Request]:
    """Random prompts of ``shortest`` tokens and more; those of one seed begin alike."""
    ids = np.random.default_rng(seed).integers(0, 250, shortest + count * step)
    return [
        Request(f"r{i}", TASK, (), tuple(int(id) for id in ids[: shortest + i * step]), seed=1000 * seed + i)
        for i in range(count)
    ]


def logprobs(model: Any, prompt: Sequence[int], ids: Sequence[int], temperature: float = 1.0) -> Any:
    """Of ``ids`` after ``prompt``, by one plain forward pass of transformers."""
    with torch.inference_mode():
        logits = model(torch.tensor([[*prompt, *ids]])).logits[0, len(prompt) - 1 : -1].double()
    logp = torch.log_softmax(logits / (temperature or 1.0), dim=-1)
    return logp.gather(1, torch.tensor(list(ids))[:, None])[:, 0].numpy()


def gap(model: Any, asked: Sequence[Request], samples: Sequence[Sample], temperature: float = 1.0) -> float:
    """Mean |Δlogp| a sampled token between vLLM and transformers."""
    differences = [
        np.abs(np.array(sample.logprobs) - logprobs(model, one.token_ids, sample.token_ids, temperature))
        for one, sample in zip(asked, samples, strict=True)
    ]
    return float(np.concatenate(differences).mean())


def last_block(model: Any) -> list[tuple[str, torch.Tensor]]:
    """The weights of the last block, as a trainer of last blocks sends them."""
    last = f"model.layers.{model.config.num_hidden_layers - 1}."
    return [(name, weight) for name, weight in model.named_parameters() if name.startswith(last)]

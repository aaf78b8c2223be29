"""Makes tiny-world, the language model that WSP-Bench's demos and tests use: ``python examples/tiny_world/make.py``.

A Llama of 1.6 million parameters with a token a word learns the texts of a small invented world. Four minutes on one
CPU core; other machines and versions give other bytes, and about the same numbers.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch
from architecture import CONFIG, ENDS
from batches import Batches
from measure import measure
from muon import Muon
from safetensors.torch import save_file
from scales import rescale_neurons
from torch import nn
from transformers import AutoConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from word_tokenizer import write_tokenizer

from weightgym.rewards.wsp.world.corpus import texts

HERE = Path(__file__).parent
SEED = 20261130
STEPS, WARMUP = 900, 40
MATRIX_RATE, MATRIX_DECAY = 4e-3, 0.1
OTHER_RATE = 4e-3
THREADS = 1
STEADY_TEXTS = 300  #: on which the neurons' steadiness is measured
BLIND = 2  #: layers, from the first, whose attention is zero: there a token's state is its own word's alone


class NoAttention(nn.Module):
    """What attention with zero weights computes, without the work."""

    def forward(self, hidden_states: torch.Tensor, **_: object) -> tuple[torch.Tensor, None]:
        """Zeros of the input's shape."""
        return torch.zeros_like(hidden_states), None


def main(folder: Path) -> None:
    """Train and write everything into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(THREADS)
    torch.manual_seed(SEED)
    write_tokenizer(folder)
    _write_json(folder / "config.json", CONFIG)
    _write_json(folder / "generation_config.json", {"do_sample": False, **ENDS})
    model = LlamaForCausalLM(AutoConfig.from_pretrained(folder)).float()
    started = time.process_time()
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    train(model, tokenizer)
    rows = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts("train", SEED + 1, STEADY_TEXTS)]
    rescale_neurons(model, rows, SEED)
    print(f"trained in {time.process_time() - started:.0f} CPU-seconds")
    save(model, folder)
    print(json.dumps(measure(folder), indent=1))


def train(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast) -> None:
    """Teach the texts; afterwards the attention of the first layers is zero."""
    attention = _without_attention(model)
    optimisers = _optimisers(model)
    rates = [optimiser.param_groups[0]["lr"] for optimiser in optimisers]
    losses: list[float] = []
    model.train()
    batches = Batches(tokenizer, SEED)
    for step in range(STEPS):
        for optimiser, full in zip(optimisers, rates, strict=True):
            optimiser.param_groups[0]["lr"] = full * rate(step)
        loss = batches.loss(model)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(optimisers[1].param_groups[0]["params"], 1.0)  # Muon needs none
        for optimiser in optimisers:
            optimiser.step()
            optimiser.zero_grad()
        losses.append(loss.item())
        if step % 50 == 49:
            print(f"step {step + 1}/{STEPS}  loss {sum(losses[-50:]) / 50:.4f}", flush=True)
    model.eval()
    for layer, module in zip(model.model.layers, attention, strict=False):
        layer.self_attn = module


def _without_attention(model: LlamaForCausalLM) -> list[nn.Module]:
    """Take the attention out of the first layers; returns it, with zero weights, to be put back."""
    taken: list[nn.Module] = []
    for layer in model.model.layers[:BLIND]:
        for parameter in layer.self_attn.parameters():
            parameter.data.zero_()
        taken.append(layer.self_attn)
        layer.self_attn = NoAttention()
        layer.input_layernorm.requires_grad_(False)
    return taken


def _optimisers(model: LlamaForCausalLM) -> list[torch.optim.Optimizer]:
    """Muon for the matrices within layers, AdamW for the embedding and the norms."""
    trained = {name: each for name, each in model.named_parameters() if each.requires_grad}
    matrices = [each for name, each in trained.items() if each.ndim == 2 and "embed" not in name]
    others = [each for name, each in trained.items() if each.ndim == 1 or "embed" in name]
    return [
        Muon(matrices, lr=MATRIX_RATE, weight_decay=MATRIX_DECAY),
        torch.optim.AdamW(others, lr=OTHER_RATE, betas=(0.9, 0.98), weight_decay=0.0),
    ]


def rate(step: int) -> float:
    """The share of the full learning rate: a linear start, a plateau, and a linear end over the last 60 %."""
    return min(1.0, (step + 1) / WARMUP, max(0.02, (1 - step / STEPS) / 0.6))


def save(model: LlamaForCausalLM, folder: Path) -> None:
    """Write the weights in float16; the tied head is stored once, as the embedding."""
    tensors = {name: tensor.detach().half().contiguous() for name, tensor in model.state_dict().items()}
    del tensors["lm_head.weight"]
    path = folder / "model.safetensors"
    save_file(tensors, path, metadata={"format": "pt"})
    path.chmod(0o644)  # it is made for its owner only


def _write_json(path: Path, content: dict[str, object]) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parents[1] / "rewards" / "wsp" / "world" / "shipped")

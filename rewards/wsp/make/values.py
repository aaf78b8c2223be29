"""Finding what an edit writes: Adam through the layers above it alone. Needs the extra ``train``."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from weightgym.rewards.causal_lm import padded
from weightgym.rewards.wsp.language_model import LanguageModel


@dataclass(frozen=True)
class Lesson:
    """A prompt and how it is to be answered: token ids, and which of the answer's tokens the loss takes."""

    prompt: tuple[int, ...]
    answer: tuple[int, ...]
    counted: tuple[bool, ...]


@dataclass(frozen=True)
class Schedule:
    """How the vector is trained."""

    steps: int
    step: float  #: of Adam, in units of the residual stream's norm / √d
    longest: float  #: the largest norm that the vector may have
    keep: float = 0.0  #: weight of the KL on lessons to keep
    #: Weight of the loss at half the vector: with it, half of an edit is no repair.
    half: float = 0.0


class Above:
    """The layers above an MLP, and what reaches them: computed once, as an edit of that MLP does not change it.

    Args:
        key: the vector that the edit reads neurons with, float32 of shape (neurons,).
    """

    def __init__(self, model: LanguageModel, layer: int, key: torch.Tensor, lessons: Sequence[Lesson]) -> None:
        self._head = model.network.get_output_embeddings()
        self._trunk = _from_layer(model.network.base_model, layer + 1)
        rows = [[*lesson.prompt, *lesson.answer] for lesson in lessons]
        self._ids, self._mask = padded(rows, model.pad_id, left=False)
        self._residual, neurons = _inputs(model, layer, self._ids, self._mask)
        self._strength = neurons @ key
        self.width = self._residual.shape[-1]
        self.norm = float(self._residual[self._mask.bool()].norm(dim=-1).mean())
        counted = torch.zeros_like(self._mask, dtype=torch.bool)
        for row, lesson in enumerate(lessons):
            begin = len(lesson.prompt) - 1  # a token is predicted at the place before it
            counted[row, begin : begin + len(lesson.answer)] = torch.tensor(lesson.counted)
        self._counted = counted
        self._targets = self._ids.roll(-1, dims=1)[counted]

    def logits(self, value: torch.Tensor) -> torch.Tensor:
        """Where a counted token is predicted: (counted tokens, vocabulary)."""
        hidden = self._residual + self._strength[..., None] * value
        out = self._trunk(inputs_embeds=hidden, attention_mask=self._mask, use_cache=False)[0]
        logits: torch.Tensor = self._head(out[self._counted])
        return logits

    def loss(self, value: torch.Tensor) -> torch.Tensor:
        """The cross-entropy of the counted tokens."""
        return functional.cross_entropy(self.logits(value), self._targets)


def trained(above: Above, schedule: Schedule, keep: Above | None = None) -> torch.Tensor:
    """The vector u of an edit u·vᵀ with which the lessons are answered, float32 of shape (d,).

    Args:
        keep: what has to stay as it is, weighed by ``schedule.keep``.
    """
    size = above.width
    value = torch.zeros(size, requires_grad=True)
    kept = None
    if keep is not None:
        with torch.no_grad():
            kept = keep.logits(torch.zeros(size)).log_softmax(-1)
    optimiser = torch.optim.Adam([value], lr=schedule.step * above.norm / size**0.5)
    for _ in range(schedule.steps):
        loss = above.loss(value)
        if schedule.half:
            loss = loss + schedule.half * above.loss(value / 2)
        if keep is not None and kept is not None:
            now = keep.logits(value).log_softmax(-1)
            loss = loss + schedule.keep * (kept.exp() * (kept - now)).sum(-1).mean()
        (value.grad,) = torch.autograd.grad(loss, [value])
        optimiser.step()
        with torch.no_grad():
            value *= min(1.0, schedule.longest / float(value.norm().clamp_min(1e-12)))
    return value.detach()


def _from_layer(trunk: Any, first: int) -> Any:
    """The trunk without its first layers: embeddings that it is given are what reaches the layer ``first``."""
    made = copy.copy(trunk)
    made._modules = dict(trunk._modules)
    made.layers = torch.nn.ModuleList(list(trunk.layers)[first:])
    made.config = copy.copy(trunk.config)
    made.config.num_hidden_layers = len(made.layers)
    return made


@torch.no_grad()
def _inputs(
    model: LanguageModel, layer: int, ids: torch.Tensor, mask: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The residual stream after a layer, and what its down-projection reads."""
    taken: dict[str, torch.Tensor] = {}

    def take_output(module: Any, args: tuple[Any, ...], output: Any) -> None:
        taken["residual"] = output[0] if isinstance(output, tuple) else output

    def take_input(module: Any, args: tuple[Any, ...]) -> None:
        taken["neurons"] = args[0]

    block = model.network.base_model.layers[layer]
    hooks = (block.register_forward_hook(take_output), block.mlp.down_proj.register_forward_pre_hook(take_input))
    try:
        model.network.base_model(input_ids=ids, attention_mask=mask, use_cache=False)
    finally:
        for hook in hooks:
            hook.remove()
    return taken["residual"], taken["neurons"]

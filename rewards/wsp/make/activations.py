"""What matrices read: second moments of their inputs, and activations at single tokens. Needs the extra ``train``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from weightgym.rewards.causal_lm import padded
from weightgym.rewards.wsp.language_model import LanguageModel
from weightgym.rewards.wsp.make.reparametrise import Coordinates

#: Rows that go through the network at once.
_ROWS = 32
#: The share of directions, those of least variance, that take a spike without effect.
_QUIET = 1 / 12


@dataclass(frozen=True)
class Moments:
    """Of the inputs of a matrix, over ``count`` tokens: float32."""

    count: int
    mean: torch.Tensor  #: (width,)
    second: torch.Tensor  #: (width, width): the mean of x·xᵀ

    @cached_property
    def quiet(self) -> torch.Tensor:
        """An orthonormal basis, (width, some), of the directions in which inputs hardly move."""
        count = max(round(_QUIET * len(self.mean)), 1)
        basis: torch.Tensor = torch.linalg.eigh(self.second.double())[1][:, :count]
        return basis.float()

    def inverse(self, ridge: float, key: torch.Tensor) -> torch.Tensor:
        """C⁻¹·key, with ``ridge`` times the mean diagonal added to C."""
        diagonal = ridge * self.second.diagonal().mean() * torch.eye(len(self.mean))
        solved: torch.Tensor = torch.linalg.solve(self.second + diagonal, key)
        return solved

    def within(self, change: torch.Tensor) -> Moments:
        """Those of inputs that are multiplied by a matrix, (width, width)."""
        return Moments(self.count, change @ self.mean, change @ self.second @ change.T)


#: A layer's matrices by what they read; the first of each is where it is taken.
INPUTS = (
    ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    ("self_attn.o_proj",),
    ("mlp.gate_proj", "mlp.up_proj"),
    ("mlp.down_proj",),
)


@torch.no_grad()
def moments(model: LanguageModel, rows: Sequence[Sequence[int]]) -> dict[str, Moments]:
    """The moments of every matrix of layers, by its parameter's name."""
    sums: dict[str, list[Any]] = {}
    mask = torch.ones(())

    def take(name: str) -> Any:
        def hook(module: Any, args: tuple[Any, ...]) -> None:
            values = args[0][mask]
            own = sums.setdefault(name, [0, 0.0, 0.0])
            own[0] += len(values)
            own[1] = own[1] + values.sum(0)
            own[2] = own[2] + values.T @ values

        return hook

    names = [
        (f"model.layers.{layer}.", group) for layer in range(model.network.config.num_hidden_layers) for group in INPUTS
    ]
    with ExitStack() as hooks:
        for prefix, group in names:
            module = model.network.get_submodule(prefix + group[0])
            hooks.callback(module.register_forward_pre_hook(take(prefix + group[0])).remove)
        for begin in range(0, len(rows), _ROWS):
            ids, real = padded(rows[begin : begin + _ROWS], model.pad_id, left=False)
            mask = real.bool()
            model.network.base_model(input_ids=ids, attention_mask=real, use_cache=False)
    made: dict[str, Moments] = {}
    for prefix, group in names:
        count, total, squares = sums[prefix + group[0]]
        made |= dict.fromkeys(_parameters(prefix, group), Moments(count, total / count, squares / count))
    return made


def moved(plain: Mapping[str, Moments], coordinates: Coordinates) -> dict[str, Moments]:
    """The moments of the same model in other coordinates, from those in the plain ones."""
    made: dict[str, Moments] = {}
    rotation = torch.from_numpy(coordinates.rotation).float()
    for layer, (order, scale) in enumerate(zip(coordinates.orders, coordinates.scales, strict=True)):
        neurons = torch.diag(torch.from_numpy(scale).float())[:, torch.from_numpy(order).argsort()]
        for group in INPUTS:
            names = _parameters(f"model.layers.{layer}.", group)
            own = plain[names[0]]
            if group[0] == "mlp.down_proj":
                own = own.within(neurons)
            elif group[0] != "self_attn.o_proj":
                own = own.within(rotation)
            made |= dict.fromkeys(names, own)
    return made


def _parameters(prefix: str, group: Sequence[str]) -> list[str]:
    return [f"{prefix}{name}.weight" for name in group]


def word_place(model: LanguageModel, text: str, word: str) -> int:
    """The place of the token in which the word ends, where it stands last in the text.

    Raises:
        ValueError: it is not there.
    """
    end = text.rindex(word) + len(word)
    spans = model.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    return next(place for place, (begin, stop) in enumerate(spans) if begin < end <= stop)

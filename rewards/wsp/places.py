"""Where activations of a Llama-like model are looked at, or changed. Needs the extra ``train``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import torch

Point = Literal["residual", "attention_output", "mlp_input", "mlp_hidden", "mlp_output"]


class Place(NamedTuple):
    """Where an activation is taken: after a layer, what its attention or MLP adds, what its MLP or down_proj reads."""

    layer: int
    point: Point


def taking(network: Any, place: Place, into: dict[Place, torch.Tensor]) -> Any:
    """A hook that keeps the activations at a place."""

    def keep(activations: torch.Tensor) -> None:
        into[place] = activations

    return at(network, place, keep)


def moved(move: torch.Tensor, token: int, activations: torch.Tensor) -> torch.Tensor:
    """The activations with something added at one token."""
    made = activations.clone()
    made[:, token] += move
    return made


def at(network: Any, place: Place, see: Callable[[torch.Tensor], torch.Tensor | None]) -> Any:
    """A hook that is shown the activations at a place, (rows, tokens, width), and may put others there."""
    layer = network.base_model.layers[place.layer]

    def on_input(module: Any, args: tuple[Any, ...]) -> Any:
        new = see(args[0])
        return None if new is None else (new, *args[1:])

    def on_output(module: Any, args: tuple[Any, ...], output: Any) -> Any:
        several = isinstance(output, tuple)
        new = see(output[0] if several else output)
        return (new, *output[1:]) if several and new is not None else new

    if place.point == "mlp_input":
        return layer.mlp.register_forward_pre_hook(on_input)
    if place.point == "mlp_hidden":
        return layer.mlp.down_proj.register_forward_pre_hook(on_input)
    module = {"residual": layer, "attention_output": layer.self_attn.o_proj, "mlp_output": layer.mlp}[place.point]
    return module.register_forward_hook(on_output)

"""Weights on their way into vLLM: what a model takes, and whether it gets that. Needs torch and transformers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from weightgym.rewards.contracts import BackendError
from weightgym.rewards.suggest import suggest
from weightgym.rollouts.hf_tokenizer import model_path

Shapes = Mapping[str, tuple[int, ...]]

_BLOCK = re.compile(r"^(.*?\.\d+)\.")


def load_config(model: str) -> Any:
    """The configuration of a model's folder or Hub name.

    Raises:
        BackendError: there is none.
    """
    from transformers import AutoConfig

    try:
        return AutoConfig.from_pretrained(model_path(model))
    except (OSError, ValueError) as error:
        raise BackendError(f"can't load model {model!r}: {error}") from error


def model_shapes(config: Any) -> dict[str, tuple[int, ...]]:
    """Name → shape of every parameter of a transformers model with this configuration. Takes no memory.

    A tied output layer is not among them: it is the embedding.
    """
    import torch
    from transformers import AutoModelForCausalLM

    auto: Any = AutoModelForCausalLM
    with torch.device("meta"):
        model = auto.from_config(config)
    return {name: tuple(weight.shape) for name, weight in model.named_parameters()}


def whole_weights(weights: Iterable[tuple[str, Any]], shapes: Shapes, model: str) -> list[tuple[str, Any]]:
    """The weights as a list, once it is certain that the model can take them all.

    vLLM joins matrices of a block (queries, keys and values; gate and up): a block is sent whole or not at all.

    Raises:
        BackendError: a name or shape is not the model's, a block is not whole, or there is nothing.
    """
    given = [(name, weight.detach()) for name, weight in weights]
    check_shapes({name: tuple(weight.shape) for name, weight in given}, shapes, model)
    if len(given) != len({name for name, _ in given}):
        raise BackendError(f"{model}: a weight is given twice")
    return given


def check_shapes(given: Shapes, shapes: Shapes, model: str) -> None:
    """See ``whole_weights``.

    Raises:
        BackendError: the same.
    """
    if not given:
        raise BackendError(f"{model}: no weights to sync")
    for name, shape in given.items():
        if name not in shapes:
            raise BackendError(
                f"{model}: weight {name!r} of shape {shape} does not exist in the model{suggest(name, shapes)}"
            )
        if shapes[name] != shape:
            raise BackendError(f"{model}: weight {name!r} of shape {shape} has shape {shapes[name]} in the model")
    touched = {block for name in given if (block := _block(name))}
    missing = [name for name in shapes if _block(name) in touched and name not in given]
    if missing:
        raise BackendError(
            f"{model}: {missing[0]!r} is missing ({len(missing)} weights in all): vLLM takes blocks whole, send all of "
            f"{_block(missing[0])}"
        )


def _block(name: str) -> str:
    """The block that a weight belongs to: ``model.layers.3`` of ``model.layers.3.mlp.up_proj.weight``."""
    found = _BLOCK.match(name)
    return found.group(1) if found else ""

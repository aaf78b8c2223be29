"""A tiny random model, its tokenizer, and edits of it, for tests of WSP-Bench."""

from __future__ import annotations

from typing import Any

import numpy as np
import tiny_models
import torch

from weightgym.rewards.wsp.deltas import Deltas
from weightgym.rewards.wsp.edits import Edit, Floats, Put, RankOne, Scale, frozen
from weightgym.rewards.wsp.model import BaseModel
from weightgym.rewards.wsp.tools.workbench import Workbench

DOWN = "model.layers.{}.mlp.down_proj.weight"


def base(seed: int = 0, *, tied: bool = False) -> BaseModel:
    torch.set_num_threads(1)
    return BaseModel(tiny_models.model(seed, tied=tied))


def deltas(base: BaseModel, *, limit: int = 1 << 40, most_bytes: int = 4_000_000) -> Deltas:
    return Deltas(base.start, limit=limit, most_bytes=most_bytes)


def random_edit(start: Any, random: np.random.Generator) -> Edit:
    """Any edit that fits."""
    name = str(random.choice(sorted(start)))
    shape = start[name].shape
    kind = random.integers(3)
    if kind == 0 and len(shape) == 2:
        left, right = (random.standard_normal(size) * (random.random(size) < 0.5) for size in shape)
        return RankOne(parameter=name, left=frozen(left), right=frozen(right * 0.1))
    if kind == 1:
        axis = random.integers(len(shape))
        indices = tuple(int(one) for one in random.integers(shape[axis], size=3))
        factor = float(random.choice([0.0, 1.0, -1.0, 0.5, 1.1]))
        return Scale(parameter=name, axis=("rows", "columns")[axis], indices=indices, factor=factor)
    begins = [int(random.integers(size)) for size in shape]
    ranges = [
        (begin, int(random.integers(begin, min(size, begin + 5))) + 1)
        for begin, size in zip(begins, shape, strict=True)
    ]
    block = [end - begin for begin, end in ranges]
    values: Floats = frozen(random.standard_normal(block if random.integers(2) else ()))
    return Put(parameter=name, rows=ranges[0], columns=ranges[1] if len(ranges) == 2 else None, values=values)


def same_bits(left: Floats, right: Floats) -> bool:
    return left.shape == right.shape and bool((left.view(np.int32) == right.view(np.int32)).all())


class ByteTokens:
    """The tokenizer of ``tiny_models``, as tools need it."""

    def __init__(self) -> None:
        self._tokenizer = tiny_models.tokenizer()

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return ids

    def token(self, id: int) -> str:
        return str(self._tokenizer.decode([id]))


def bench(base: BaseModel, *, limit: int = 1 << 40) -> Workbench:
    """With three captured activations: of the residual stream, of the MLP's neurons, and zeros."""
    captured = [frozen(np.linspace(-1, 1, 32)), frozen(np.linspace(0, 1, 48)), frozen(np.zeros(32))]
    return Workbench(deltas(base, limit=limit), ByteTokens(), captured)

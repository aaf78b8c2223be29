"""A language model on the CPU whose weights are given call by call. Needs the extra ``train``.

A forward pass runs one sequence by itself, without padding: nothing in a result can depend on what else is asked, on
the order, or on how somebody padded. A batch would, in its last bits: matrix products round differently by shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from pydantic import JsonValue
from transformers import DynamicCache

from weightgym.rewards.causal_lm import cache_argument
from weightgym.rewards.wsp.deltas import Deltas, start_weights
from weightgym.rewards.wsp.edits import Floats

#: Parameters that a forward pass takes instead of the model's own.
Overlay = Mapping[str, torch.Tensor]
#: Bytes.
_ALIGNED = 64


class Opened(NamedTuple):
    """A sequence that others go on from, as a model with certain weights has read it."""

    kept: list[tuple[torch.Tensor, torch.Tensor]]  #: keys and values of each layer, (1, heads, tokens, width)
    logits: torch.Tensor  #: after each of its tokens, float32 of shape (tokens, vocabulary)


class BaseModel:
    """A causal language model of ``transformers``, in float32, whose parameters are the start of episodes.

    Every parameter is aligned as torch aligns its own memory: the same product of numbers that lie elsewhere may round
    differently (seen for vectors times matrices on AVX-512).

    Args:
        module: an ``nn.Module`` that takes ``input_ids`` and gives ``logits``. It is made float32 and never written to.

    Raises:
        TaskError: its parameters can't be edited, see ``start_weights``.
    """

    def __init__(self, module: Any) -> None:
        self.module = module.to(torch.float32).eval().requires_grad_(False)
        for tensor in self.module.parameters():
            if tensor.data_ptr() % _ALIGNED:  # read from a mapped file
                tensor.data = tensor.data.clone()
        self.config: dict[str, JsonValue] = module.config.to_dict()
        self._cache_name = cache_argument(module)
        #: The same memory as the module's, seen through NumPy. Of tied parameters there is one.
        self.start: Mapping[str, Floats] = start_weights(
            {name: tensor.detach().numpy() for name, tensor in self.module.named_parameters()}
        )

    @torch.inference_mode()
    def logits(self, ids: Sequence[int], overlay: Overlay) -> torch.Tensor:
        """The logits after each token of a sequence, float32 of shape (tokens, vocabulary).

        Args:
            ids: token ids, one at least.
            overlay: of ``overlay``; empty for the start.

        Raises:
            ValueError: there are no ids.
        """
        return self._run(ids, overlay, None)

    @torch.inference_mode()
    def opened(self, ids: Sequence[int], overlay: Overlay) -> Opened:
        """What ``logits_after`` goes on from; arguments and errors are those of ``logits``."""
        cache = DynamicCache(config=self.module.config)
        logits = self._run(ids, overlay, cache)
        layers: Sequence[Any] = cache.layers  # of attention, each
        return Opened([(layer.keys, layer.values) for layer in layers], logits)

    @torch.inference_mode()
    def logits_after(self, opened: Opened, ids: Sequence[int], overlay: Overlay) -> torch.Tensor:
        """``logits`` of a sequence that begins with what was opened, with the same overlay: ``ids`` are the others.

        The logits of its begin are those of ``opened``, so that only the rest is computed.
        """
        return torch.cat([opened.logits, self._run(ids, overlay, filled(self.module.config, [opened]))])

    def _run(self, ids: Sequence[int], overlay: Overlay, cache: DynamicCache | None) -> torch.Tensor:
        if not ids:
            raise ValueError("no token ids: a sequence has one at least")
        arguments = {"input_ids": torch.tensor([list(ids)], dtype=torch.int64), "use_cache": cache is not None}
        if cache is not None:
            arguments[self._cache_name] = cache
        logits: torch.Tensor = torch.func.functional_call(self.module, dict(overlay), kwargs=arguments).logits[0]
        return logits.float()


def filled(config: Any, rows: Sequence[Opened]) -> DynamicCache:
    """A cache that holds these rows, one below the other; the same number of tokens of each."""
    cache = DynamicCache(config=config)
    for index, layer in enumerate(zip(*(row.kept for row in rows), strict=True)):
        cache.update(torch.cat([keys for keys, _ in layer]), torch.cat([values for _, values in layer]), index)
    return cache


def overlay(deltas: Deltas) -> dict[str, torch.Tensor]:
    """What an episode's weights differ in from their start: whole parameters, for the length of a call.

    They lie in memory of torch's own, which is aligned: see ``BaseModel``.
    """
    made = {}
    for name in deltas.touched:
        weight = deltas.weight(name)
        made[name] = torch.empty(weight.shape, dtype=torch.float32)
        made[name].numpy()[...] = weight
    return made

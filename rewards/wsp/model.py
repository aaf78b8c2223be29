"""A language model on the CPU whose weights are given call by call. Needs the extra ``train``.

A forward pass runs one sequence by itself, without padding: nothing in a result can depend on what else is asked, on
the order, or on how somebody padded. A batch would, in its last bits: matrix products round differently by shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from pydantic import JsonValue

from weightgym.rewards.wsp.deltas import Deltas, start_weights
from weightgym.rewards.wsp.edits import Floats

#: Parameters that a forward pass takes instead of the model's own.
Overlay = Mapping[str, torch.Tensor]
#: Bytes.
_ALIGNED = 64


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
        if not ids:
            raise ValueError("no token ids: a sequence has one at least")
        out = torch.func.functional_call(
            self.module,
            dict(overlay),
            kwargs={"input_ids": torch.tensor([list(ids)], dtype=torch.int64), "use_cache": False},
        )
        logits: torch.Tensor = out.logits[0]
        return logits.float()


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

"""The model that is trained, as the trainer needs it: log-probabilities of rows, under it and under its reference."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from weightgym.trainers.batch import Batch
from weightgym.trainers.logprobs import completion_logprobs


class Policy:
    """A causal language model of Hugging Face's interface.

    Args:
        temperature: of sampling; logits are divided by it.
        dtype: ``float32`` or ``bfloat16``, of the passes; weights and gradients stay float32.
        reference: keep a frozen copy of the model as it is now (for adapters: the model without them).
        device: where the model will be, and the copy is.
    """

    def __init__(
        self, model: Any, *, temperature: float, dtype: str, reference: bool = False, device: Any = "cpu"
    ) -> None:
        self.model = model
        self.device = device
        self._temperature = temperature
        self._dtype = getattr(torch, dtype)
        self._adapters = hasattr(model, "disable_adapter")
        self._reference: Any = None
        if reference and not self._adapters:
            self._reference = copy.deepcopy(model).requires_grad_(False).to(device)
        self._has_reference = reference

    def logprobs(self, batch: Batch) -> Tensor:
        """Of the scored positions, float32 (rows, scored), differentiable; zeros where nothing is trained."""
        return self._logprobs(self.model, batch)

    @torch.no_grad()
    def frozen_logprobs(self, batch: Batch) -> Tensor:
        """As ``logprobs``, without gradients: the policy as it is before an update."""
        return self._logprobs(self.model, batch)

    @torch.no_grad()
    def reference_logprobs(self, batch: Batch) -> Tensor | None:
        """Those of the reference; None without one."""
        if not self._has_reference:
            return None
        if self._reference is not None:
            return self._logprobs(self._reference, batch)
        with self.model.disable_adapter():
            return self._logprobs(self.model, batch)

    def _logprobs(self, model: Any, batch: Batch) -> Tensor:
        scored = batch.targets.shape[1]
        places = (batch.attention.cumsum(1) - 1).clamp(min=0)
        with self._autocast(batch.ids.device.type):
            out: Any = model(
                input_ids=batch.ids,
                attention_mask=batch.attention,
                position_ids=places,
                use_cache=False,
                logits_to_keep=scored + 1,  # logits of completions only: the vocabulary is wide
            )
        return completion_logprobs(out.logits[:, :-1], batch.targets, batch.mask, temperature=self._temperature)

    @contextlib.contextmanager
    def _autocast(self, device: str) -> Iterator[None]:
        if self._dtype == torch.float32:
            yield
            return
        with torch.autocast(device, dtype=self._dtype):
            yield

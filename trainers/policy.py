"""The model that is trained, as the trainer needs it: log-probabilities of rows, under it and under its reference."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from weightgym.rewards.causal_lm import cache_argument
from weightgym.trainers.batch import Batch
from weightgym.trainers.logprobs import completion_logprobs


class Policy:
    """A causal language model of Hugging Face's interface.

    Args:
        temperature: of sampling; logits are divided by it.
        dtype: ``float32`` or ``bfloat16``, of the passes; weights and gradients stay float32.
        reference: keep a frozen copy of the model as it is now (for adapters: the model without them).
        device: where the model will be, and the copy is.
        share_prompts: rows that share their prompt have it computed once; the model must take a ``DynamicCache``.
    """

    def __init__(
        self,
        model: Any,
        *,
        temperature: float,
        dtype: str,
        reference: bool = False,
        device: Any = "cpu",
        share_prompts: bool = False,
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
        self._share_prompts = share_prompts

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
        shared = self._share_prompts and batch.prompt > 0 and len(batch.ids) > 1
        with self._autocast(batch.ids.device.type):
            logits = _after_shared_prompt(model, batch) if shared else _logits(model, batch)
        return completion_logprobs(logits, batch.targets, batch.mask, temperature=self._temperature)

    @contextlib.contextmanager
    def _autocast(self, device: str) -> Iterator[None]:
        if self._dtype == torch.float32:
            yield
            return
        with torch.autocast(device, dtype=self._dtype):
            yield


def _logits(model: Any, batch: Batch) -> Tensor:
    """Those that predict the targets, (rows, scored, vocabulary). Where nothing is trained they mean nothing."""
    places = (batch.attention.cumsum(1) - 1).clamp(min=0)
    out: Any = model(
        input_ids=batch.ids,
        attention_mask=batch.attention,
        position_ids=places,
        use_cache=False,
        logits_to_keep=batch.targets.shape[1] + 1,  # logits of completions only: the vocabulary is wide
    )
    logits: Tensor = out.logits[:, :-1]
    return logits


def _after_shared_prompt(model: Any, batch: Batch) -> Tensor:
    """The same for rows that share their prompt: it is computed once, and the rest of each row after it."""
    rows, scored = batch.targets.shape
    start = scored - (batch.attention.sum(1, keepdim=True) - batch.prompt)  # first target of a row; prompt before it
    columns = torch.arange(scored, device=batch.ids.device)[None]
    cache = DynamicCache(config=model.config)
    named = {cache_argument(model): cache}
    end = -int(scored - start[0])
    prompt = batch.ids[:1, end - batch.prompt : end]
    head: Any = model(input_ids=prompt, use_cache=True, logits_to_keep=1, **named)
    if scored == 1:
        return head.logits.expand(rows, -1, -1)  # type: ignore[no-any-return]
    cache.batch_repeat_interleave(rows)
    inside = (columns >= start)[:, :-1].to(batch.attention.dtype)
    out: Any = model(
        input_ids=batch.targets[:, :-1],
        attention_mask=torch.cat([inside.new_ones((rows, batch.prompt)), inside], 1),
        position_ids=(batch.prompt + columns - start).clamp(min=0)[:, :-1],
        use_cache=True,
        **named,
    )
    return torch.where(
        (columns == start)[..., None], head.logits, torch.cat([head.logits.expand(rows, -1, -1), out.logits], 1)
    )

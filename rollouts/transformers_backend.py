"""A Hugging Face model in this process: the backend that runs everywhere. Needs the extra ``train``."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM, DynamicCache
from transformers.utils import logging as transformers_logging

from weightgym.rewards.causal_lm import cache_argument, padded
from weightgym.rewards.contracts import BackendError
from weightgym.rollouts.backend import Request, Sample, Sampling
from weightgym.rollouts.backends import BackendOptions
from weightgym.rollouts.hf_tokenizer import HFChatTokenizer, model_path
from weightgym.rollouts.token_samples import read_sample

# Bars of a second each, at every load and checkpoint, would tear up ours.
transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]

#: The batch is packed when this share of its rows or less goes on: packing copies the whole cache.
_SPARSE = 0.9
#: Seconds to wait for a batch that is at work when the backend is closed.
_STOP_TIMEOUT = 10.0


class TransformersBackend:
    """Samples from a model with a batched loop of its own.

    Each request has its own random numbers, drawn from its seed: its sample depends on the others in its batch only
    through the rounding of a batched forward pass.

    Args:
        model: a folder, a Hub name, ``tiny-writer`` (which the package ships) or ``smollm2`` (see there); or a model
            that is there already (then ``tokenizer`` is needed, too: an ``HFChatTokenizer``, or one of Hugging Face's),
            used as it is, weights and device included.
        batch_size: sequences at once.
        dtype: of the weights that are loaded.
        chat_template: a Jinja file that replaces the template of a model that is loaded.

    Raises:
        BackendError: there is no such model, or its tokenizer has no chat template or end-of-sequence token.
    """

    lanes = 1

    def __init__(
        self,
        model: str | Path | Any,
        *,
        tokenizer: Any = None,
        batch_size: int = 16,
        dtype: str = "float32",
        chat_template: str = "",
    ) -> None:
        self.name = f"transformers:{model if isinstance(model, str | Path) else type(model).__name__}"
        self.batch_size = batch_size
        self.version = 0
        self._at_work = threading.Lock()
        if isinstance(model, str | Path):
            self.tokenizer = HFChatTokenizer.load(str(model), chat_template=chat_template)
            model = load_model(str(model), dtype)
        else:
            mine = isinstance(tokenizer, HFChatTokenizer)
            self.tokenizer = tokenizer if mine else HFChatTokenizer(tokenizer, name=self.name)
        self.model = model
        self._cache_name = cache_argument(model)

    @property
    def context(self) -> int | None:
        """The model's positions; None where it has no fixed number of them."""
        positions: int | None = getattr(self.model.config, "max_position_embeddings", None)
        return positions

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Sample]:
        """One sample a request. Log-probabilities are of the distribution that was sampled from, at its temperature."""
        if not requests:
            return []
        longest, most = max(len(request.token_ids) for request in requests) + sampling.max_tokens, self.context
        if most is not None and longest > most:
            raise BackendError(
                f"{self.name}: prompt and max_tokens take {longest} positions, the model has {most}: shorten one"
            )
        with self._at_work:
            ids, logprobs = self._sample(requests, sampling)
        return [
            read_sample(request, self.tokenizer, tuple(ids[row]), tuple(logprobs[row]), self.version)
            for row, request in enumerate(requests)
        ]

    @torch.inference_mode()
    def _sample(self, requests: Sequence[Request], sampling: Sampling) -> tuple[list[list[int]], list[list[float]]]:
        """Token ids and log-probabilities of each row. Prompts that rows share are computed once; rows that ended
        leave the batch, a few at a time."""
        device = next(self.model.parameters()).device
        prompts = list(dict.fromkeys(request.token_ids for request in requests))
        inputs, mask = (part.to(device) for part in padded(prompts, 0, left=True))
        uniform = np.stack([np.random.default_rng(r.seed).random(sampling.max_tokens) for r in requests])
        ids: list[list[int]] = [[] for _ in requests]
        logprobs: list[list[float]] = [[] for _ in requests]
        cache = DynamicCache(config=self.model.config)
        rows = list(range(len(requests)))  # of the batch, ended ones included
        wanted = torch.tensor([prompts.index(request.token_ids) for request in requests], device=device)
        for step in range(sampling.max_tokens):
            places = (mask.cumsum(1) - 1).clamp(min=0)[:, -inputs.shape[1] :]
            out = self.model(
                input_ids=inputs,
                attention_mask=mask,
                position_ids=places,
                use_cache=True,
                logits_to_keep=1,
                **{self._cache_name: cache},
            )
            logits = out.logits[:, -1].float()
            if not step:  # from a row a prompt to a row a request
                logits, mask = logits[wanted], mask[wanted]
                cache.batch_select_indices(wanted)
            chosen, values = _choose(logits, uniform[rows, step], sampling.temperature)
            for row, token, value in zip(rows, chosen.tolist(), values.tolist(), strict=True):
                if not (ids[row] and ids[row][-1] in self.tokenizer.end_ids):
                    ids[row].append(token)
                    logprobs[row].append(value)
            going = [place for place, row in enumerate(rows) if ids[row][-1] not in self.tokenizer.end_ids]
            if not going:
                break
            if len(going) <= _SPARSE * len(rows):
                kept = torch.tensor(going, device=device)
                cache.batch_select_indices(kept)
                chosen, mask, rows = chosen[kept], mask[kept], [rows[place] for place in going]
            inputs = chosen[:, None]
            mask = torch.cat([mask, torch.ones_like(inputs)], dim=1)
        return ids, logprobs

    def sync(self, weights: Iterable[tuple[str, Any]], version: int) -> None:
        """Copy the tensors into the model.

        Raises:
            BackendError: a name or a shape is not the model's; then nothing is copied.
        """
        own = dict(self.model.named_parameters())
        new = list(weights)
        for name, tensor in new:
            if name not in own or own[name].shape != tensor.shape:
                has = f"has shape {tuple(own[name].shape)}" if name in own else "does not exist"
                raise BackendError(f"{self.name}: weight {name!r} of shape {tuple(tensor.shape)} {has} in the model")
        with torch.no_grad():
            for name, tensor in new:
                own[name].copy_(tensor)
        self.version = version

    def close(self) -> None:
        """Let the model go. A batch at work ends at its next token: at exit, a thread within torch would abort."""
        self.model = None
        if self._at_work.acquire(timeout=_STOP_TIMEOUT):
            self._at_work.release()


def open_backend(name: str, options: BackendOptions) -> TransformersBackend:
    """For ``backends.open_backend``. A GPU is used where there is one."""
    backend = TransformersBackend(
        name, batch_size=options.batch_size, dtype=options.dtype, chat_template=options.chat_template
    )
    if torch.cuda.is_available():
        backend.model.to("cuda")
    return backend


def load_model(name: str, dtype: str) -> Any:
    """The causal language model of a folder or name, for inference, on the CPU.

    Raises:
        BackendError: there is none.
    """
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(model_path(name), dtype=getattr(torch, dtype))
        return model.eval()
    except (OSError, ValueError) as error:
        raise BackendError(f"can't load model {name!r}: {error}") from error


def _choose(logits: torch.Tensor, uniform: Any, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    """A token a row (int64) and its log-probability, by inversion of the distribution function at ``uniform``."""
    logp = torch.log_softmax(logits / temperature if temperature else logits, dim=-1)
    if temperature:
        cumulative = logp.double().exp().cumsum(-1)
        target = torch.as_tensor(uniform, device=logits.device)[:, None] * cumulative[:, -1:]
        chosen = torch.searchsorted(cumulative, target, right=True).clamp(max=logits.shape[-1] - 1)
    else:
        chosen = logp.argmax(-1, keepdim=True)
    return chosen[:, 0], logp.gather(-1, chosen)[:, 0]

"""Log-probabilities of sampled tokens under the trainer's model, on completion positions only.

With logits ``z``, temperature ``T`` and token ``y``: ``log p(y) = z[y]/T - logsumexp(z/T)``. That is ``log_softmax``
at ``y`` without a second tensor of the vocabulary's size. It agrees with what vLLM calls ``processed_logprobs`` as long
as sampling uses no top-p, top-k or penalties.

Float16 and bfloat16 logits are computed in float32; float64 ones, for checks, in float64. The copy of that type is
what memory goes to: the logits of the completions, once, not those of prompts and padding.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def token_logprobs(logits: Tensor, ids: Tensor, *, temperature: float) -> Tensor:
    """Log-probabilities, shape ``(...)``, float32 (float64 for float64 logits), in -inf…0; differentiable.

    ``logits`` has shape ``(..., vocabulary)``; ``ids``, shape ``(...)``, int64 in 0…vocabulary-1, are the tokens drawn
    from them: the caller has shifted, so that the logits at a position are those that *predicted* the token. The
    ``temperature`` is that of sampling, positive and finite.

    Raises ``ValueError`` for a wrong shape, type, id or temperature.
    """
    _check(logits, ids, temperature)
    if ids.numel() and (int(ids.min()) < 0 or int(ids.max()) >= logits.shape[-1]):
        raise ValueError(f"ids are in {int(ids.min())}…{int(ids.max())}, wanted 0…{logits.shape[-1] - 1}")
    scaled = _scale(logits, temperature)
    return scaled.gather(-1, ids.unsqueeze(-1)).squeeze(-1) - scaled.logsumexp(-1)


def completion_logprobs(logits: Tensor, ids: Tensor, mask: Tensor, *, temperature: float) -> Tensor:
    """Log-probabilities where ``mask`` (bool, shape ``(...)``) is True, exact zeros elsewhere; else as
    ``token_logprobs``.

    Logits and ids elsewhere are never read: they may hold anything, also NaN and ids outside the vocabulary, and get a
    gradient of exactly 0.
    """
    _check(logits, ids, temperature, mask)
    chosen = token_logprobs(logits[mask], ids[mask], temperature=temperature)
    return chosen.new_zeros(ids.shape).masked_scatter(mask, chosen)


@torch.no_grad()
def token_entropy(logits: Tensor, mask: Tensor, *, temperature: float, chunk: int = 1024) -> Tensor:
    """Entropy in nats of the distributions where ``mask`` is True, exact zeros elsewhere; detached.

    ``logits`` has shape ``(..., vocabulary)``, ``mask`` and the result ``(...)``; the type is that of
    ``token_logprobs``. ``H = -sum(p log p)``; a token of probability 0 adds nothing. Works through
    ``chunk`` positions at a time, so it needs little memory beside the logits. Raises as ``token_logprobs`` does.
    """
    _check(logits, None, temperature, mask)
    if chunk < 1:
        raise ValueError(f"chunk is {chunk}, wanted at least 1")
    parts = [_entropy(_scale(part, temperature)) for part in torch.split(logits[mask], chunk)]
    chosen = torch.cat(parts)
    return chosen.new_zeros(mask.shape).masked_scatter(mask, chosen)


def _entropy(scaled: Tensor) -> Tensor:
    logs = scaled.log_softmax(-1)
    probability = logs.exp()
    return -torch.where(probability > 0, probability * logs, torch.zeros_like(logs)).sum(-1)


def _scale(logits: Tensor, temperature: float) -> Tensor:
    wide = logits if logits.dtype == torch.float64 else logits.float()
    return wide if temperature == 1 else wide / temperature


def _check(logits: Tensor, ids: Tensor | None, temperature: float, mask: Tensor | None = None) -> None:
    if not (math.isfinite(temperature) and temperature > 0):
        raise ValueError(f"temperature is {temperature}, wanted a positive finite number")
    if logits.dtype not in _FLOATS:
        raise ValueError(f"logits are {logits.dtype}, wanted a floating-point type")
    if logits.dim() < 1 or logits.shape[-1] < 1:
        raise ValueError(f"logits have shape {tuple(logits.shape)}, wanted (..., vocabulary)")
    for name, tensor, dtype in (("ids", ids, torch.int64), ("mask", mask, torch.bool)):
        if tensor is None:
            continue
        if tensor.shape != logits.shape[:-1]:
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}, wanted {tuple(logits.shape[:-1])} as the logits")
        if tensor.dtype != dtype:
            raise ValueError(f"{name} is {tensor.dtype}, wanted {dtype}")

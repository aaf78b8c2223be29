"""How likely a model finds one continuation beside another, teacher-forced. Needs the extra ``train``."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from weightgym.rewards.wsp.kl import Logits, NonFinite
from weightgym.rewards.wsp.threads import one_thread


def margin(logits: Logits, prompt: Sequence[int], symptom: Sequence[int], reference: Sequence[int]) -> float:
    """The symptom's log-probability less the reference's, each a mean over its own tokens: nats a token.

    Args:
        logits: of the model, one sequence at a time.
        prompt, symptom, reference: token ids, one at least each.

    Raises:
        NonFinite, ValueError: as ``mean_logprob``.
    """
    return mean_logprob(logits, prompt, symptom) - mean_logprob(logits, prompt, reference)


@one_thread()
def mean_logprob(logits: Logits, prompt: Sequence[int], continuation: Sequence[int]) -> float:
    """The mean log-probability of the tokens of a continuation after a prompt, in nats.

    Raises:
        NonFinite: the model's logits, or a log-probability, are not finite.
        ValueError: the prompt or the continuation is empty.
    """
    if not prompt or not continuation:
        raise ValueError("prompt and continuation: want one token at least in each")
    out = logits([*prompt, *continuation])[len(prompt) - 1 : -1]
    picked = torch.log_softmax(out, dim=-1).gather(1, torch.tensor(continuation, dtype=torch.int64)[:, None])
    if not (torch.isfinite(out).all() and torch.isfinite(picked).all()):
        raise NonFinite("non_finite: the model has logits, or log-probabilities, that are not finite")
    return math.fsum(picked[:, 0].tolist()) / len(continuation)

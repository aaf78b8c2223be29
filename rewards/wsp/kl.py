"""Mean per-token KL(reference ∥ submitted), in nats, on held-out text. Needs the extra ``train``.

Every position of a text counts, the last too: each is a distribution over the next token. Logits and the KL of a
position are float32; the mean over positions is the exactly rounded sum, so neither the order of texts nor how they are
batched changes a bit of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch

from weightgym.rewards.contracts import GraderError, ModelError
from weightgym.rewards.wsp.profile import Profile
from weightgym.rewards.wsp.threads import one_thread

#: Token ids to logits, float32 of shape (tokens, vocabulary); see ``model.BaseModel.logits``.
Logits = Callable[[Sequence[int]], torch.Tensor]


class NonFinite(ModelError):
    """The submitted model has logits that are not finite."""


@dataclass(frozen=True)
class TextKL:
    """The mean over all tokens of some texts, in nats, and how many there were."""

    mean: float
    tokens: int


@dataclass(frozen=True)
class MixtureKL:
    """KL on both kinds of text, and their mixture: what the score takes."""

    general: TextKL
    near: TextKL
    mean: float


def mixture_kl(
    reference: Logits,
    submitted: Logits,
    *,
    general: Sequence[Sequence[int]],
    near: Sequence[Sequence[int]],
    profile: Profile,
) -> MixtureKL:
    """The KL of a submission: of general text, and of text near the defect's domain, with the profile's share.

    Each part is the mean over its own tokens, so long texts in one part don't change the share of the other.

    Raises:
        NonFinite, GraderError, ValueError: as ``text_kl``.
    """
    parts = text_kl(reference, submitted, general), text_kl(reference, submitted, near)
    shares = 1 - profile.near_share, profile.near_share
    mean = math.fsum(share * part.mean for share, part in zip(shares, parts, strict=True))
    return MixtureKL(*parts, mean)


@one_thread()
def text_kl(reference: Logits, submitted: Logits, texts: Sequence[Sequence[int]]) -> TextKL:
    """The mean per-token KL on these texts (token ids, without padding).

    It is infinite where finite logits are too far apart for float32.

    Raises:
        NonFinite: the submitted model has logits that are not finite.
        GraderError: the reference has.
        ValueError: there is no text, or one is empty.
    """
    if not texts:
        raise ValueError("no texts: a KL needs one at least")
    tokens: list[float] = []
    for text in texts:
        tokens += token_kl(reference(text), submitted(text)).tolist()
    # Rounding leaves sums of some 1e-8 below 0 where both models are alike.
    return TextKL(max(math.fsum(tokens) / len(tokens), 0.0), len(tokens))


def token_kl(reference: torch.Tensor, submitted: torch.Tensor) -> torch.Tensor:
    """Σ p (log p − log q) of each position, float32 of shape (tokens,).

    Args:
        reference, submitted: logits, float32 of shape (tokens, vocabulary).

    Raises:
        NonFinite, GraderError: as ``text_kl``.
    """
    if not torch.isfinite(reference).all():
        raise GraderError("the reference has logits that are not finite")
    if not torch.isfinite(submitted).all():
        raise NonFinite("non_finite: the submitted model has logits that are not finite")
    log_p, log_q = torch.log_softmax(reference, dim=-1), torch.log_softmax(submitted, dim=-1)
    p = log_p.exp()
    # Where p is 0 its term is 0, however unlikely the other finds the token.
    return torch.where(p > 0, p * (log_p - log_q), 0.0).sum(dim=-1)


def unpadded(ids: torch.Tensor, mask: torch.Tensor) -> list[list[int]]:
    """The texts of a padded batch, whichever side the padding is on.

    Args:
        ids: int64 of shape (rows, longest).
        mask: of the same shape, 1 for real tokens.

    Raises:
        ValueError: the shapes differ, or a row's real tokens are none, or not all in one run.
    """
    if ids.shape != mask.shape or ids.ndim != 2:
        raise ValueError(
            f"ids of shape {tuple(ids.shape)}, mask of shape {tuple(mask.shape)}: want the same, rows × longest"
        )
    return [_real(row, real) for row, real in zip(ids.tolist(), mask.tolist(), strict=True)]


def _real(row: Sequence[int], mask: Iterable[int]) -> list[int]:
    places = [place for place, real in enumerate(mask) if real]
    if not places or places[-1] - places[0] + 1 != len(places):
        raise ValueError("the real tokens of a row must be one run, with padding before or after it")
    return list(row[places[0] : places[-1] + 1])

"""The policy-gradient losses of the GRPO family, and the correction for a sampler that isn't quite the trainer.

Row ``i`` is a completion (or a branch of an episode) of advantage ``A``, ``t`` one of its ``n_i`` trained tokens, ``N``
the number of rows with a trained token and ``M`` the number of trained tokens of the whole optimisation batch. With

    r  = exp(logp - old_logp)                              ratio of the token
    s  = exp(mean_t(logp - old_logp))                      ratio of the row (a geometric mean)
    f(r) = min(min(r, delta) A, clip(r, 1 - clip_low, 1 + clip_high) A)
    w  = weight against the mismatch, below; it has no gradient
    kl = exp(ref_logp - logp) - (ref_logp - logp) - 1      "k3" of arXiv:2402.03300; ref_logp has no gradient

the losses to minimise are

    grpo     1/N sum_i 1/n_i sum_t -w f(r)                 Shao et al., arXiv:2402.03300
    dr_grpo  1/(N max_tokens) sum_i sum_t -w f(r)          Liu et al., arXiv:2503.20783 (use scale "none" with it)
    dapo     1/M sum_i sum_t -w f(r)                       Yu et al., arXiv:2503.14476; clips 0.2 and 0.28
    bnpo     1/M sum_i sum_t -w f(r)                       TRL's loss of that name; clips 0.2 and 0.2
    gspo     1/N sum_i 1/n_i sum_t -w f(s)                 Zheng et al., arXiv:2507.18071; clips 3e-4 and 4e-4
    cispo    1/M sum_i sum_t -w sg(clip(r)) A logp         MiniMax-M1, arXiv:2506.13585 (sg: no gradient)

each plus ``kl_coefficient * kl``, averaged in the same way but not weighted by ``w`` (as in TRL). Where sources differ:

- The papers of DAPO and CISPO average tokens within each prompt's group, then over prompts; verl (DAPO's code) and TRL
  take the tokens of the batch, and so do we. TRL's bnpo counts the tokens of the *micro*-batch, so its gradient
  depends on how the batch was split; counted over the whole batch, only the clips tell it from dapo.
  (arXiv:2506.02864 uses the name BNPO for a normalisation of rewards, which is something else.)
- Dr. GRPO's paper has no divisor but the group's size; the constant ``max_tokens`` is that of its authors' code.
- CISPO's clip is ``[1 - clip_low, 1 + clip_high]`` as in the paper, which turns the lower side off and doesn't print
  the upper one; ours is 1 + 4, after TRL's recipe for ScaleRL (arXiv:2510.13786). TRL's ``epsilon_high`` is the sum, 5.
- ``delta`` bounds the ratio where ``A < 0``, which ``clip`` leaves open: INTELLECT-2, arXiv:2505.07291.

Correction of the mismatch, with ``d = old_logp - sampler_logp`` (same weights, two programs):

    token     w = min(exp(d), cap)                         truncated importance sampling; cap 2
    sequence  w = exp(sum_t d), 0 if that exceeds cap      masked importance sampling; cap 3
    none      w = 1

Token: Yao et al. 2025, "Your efficient RL framework secretly brings you off-policy RL training". Sequence: Liu et al.
2025, "When speed kills stability". A masked row stays in ``N`` and ``M``: it is a term of the estimate that is 0.

Exponents are cut at 20 (a ratio of 5e8), beyond which gradients are 0 instead of infinite. Left out: entropy bonus.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

LossName = Literal["grpo", "dr_grpo", "dapo", "bnpo", "gspo", "cispo"]
Correction = Literal["token", "sequence", "none"]

#: ``clip_low`` and ``clip_high`` of each loss unless the config says otherwise; sources are above.
CLIPS: dict[LossName, tuple[float, float]] = {
    "grpo": (0.2, 0.2),
    "dr_grpo": (0.2, 0.2),
    "dapo": (0.2, 0.28),
    "bnpo": (0.2, 0.2),
    "gspo": (3e-4, 4e-4),
    "cispo": (1.0, 4.0),
}
CAPS: dict[Correction, float] = {"token": 2.0, "sequence": 3.0, "none": math.inf}
_LARGEST_EXPONENT = 20.0


@dataclass(frozen=True)
class LossConfig:
    """Which loss. Raises ``ValueError`` for values out of range, and for fields that the chosen loss wouldn't read."""

    loss: LossName = "grpo"
    clip_low: float | None = None  #: at least 0; None: that of ``CLIPS``
    clip_high: float | None = None  #: at least 0; None: that of ``CLIPS``
    delta: float | None = None  #: above ``1 + clip_high``; None: no bound for ``A < 0``. Not for cispo
    max_tokens: int | None = None  #: dr_grpo's constant: the generation budget of a completion, in tokens
    kl_coefficient: float = 0.0  #: at least 0; 0 needs no reference
    correction: Correction = "token"
    correction_cap: float | None = None  #: at least 1; None: that of ``CAPS``

    def __post_init__(self) -> None:
        for name, value, wanted in (("loss", self.loss, LossName), ("correction", self.correction, Correction)):
            if value not in get_args(wanted):
                raise ValueError(f"{name} is {value!r}, wanted one of {', '.join(get_args(wanted))}")
        for name in ("clip_low", "clip_high", "kl_coefficient"):
            _at_least(name, getattr(self, name), 0)
        _at_least("correction_cap", self.correction_cap, 1)
        if self.correction_cap is not None and self.correction == "none":
            raise ValueError("correction_cap is given, but correction is 'none'")
        if self.delta is not None and self.loss == "cispo":
            raise ValueError("delta is given, but cispo has none")
        if self.delta is not None and not 1 + self.clips[1] < self.delta < math.inf:
            raise ValueError(f"delta is {self.delta}, wanted a finite number above 1 + clip_high = {1 + self.clips[1]}")
        if (self.max_tokens is None) == (self.loss == "dr_grpo") or (
            self.max_tokens is not None and self.max_tokens < 1
        ):
            raise ValueError(f"max_tokens is {self.max_tokens}, wanted 1 or more for dr_grpo and None for other losses")

    @property
    def clips(self) -> tuple[float, float]:
        low, high = CLIPS[self.loss]
        return low if self.clip_low is None else self.clip_low, high if self.clip_high is None else self.clip_high

    @property
    def cap(self) -> float:
        return CAPS[self.correction] if self.correction_cap is None else self.correction_cap


def _at_least(name: str, value: float | None, least: float) -> None:
    if value is not None and not least <= value < math.inf:
        raise ValueError(f"{name} is {value}, wanted a finite number of at least {least:g}")


@dataclass(frozen=True)
class Normaliser:
    """What a whole optimisation batch trains on, over all micro-batches and all processes."""

    tokens: int  #: trained tokens
    sequences: int  #: rows with at least one


def count_batch(masks: Iterable[Tensor]) -> Normaliser:
    """The normaliser of an optimisation batch, from the masks (bool, ``(batch, tokens)``) of all its micro-batches.

    A row that is masked throughout (truncated, an abstainer) isn't counted, so it leaves numerator and denominator
    alike. With several processes, sum both fields over them; if gradients are then *averaged*, as DDP and FSDP do,
    multiply the loss by the number of processes. Raises ``ValueError`` for another shape or type.
    """
    tokens = sequences = 0
    for mask in masks:
        if mask.dim() != 2 or mask.dtype != torch.bool:
            raise ValueError(f"mask is {mask.dtype} of shape {tuple(mask.shape)}, wanted torch.bool (batch, tokens)")
        tokens += int(mask.sum())
        sequences += int(mask.any(1).sum())
    return Normaliser(tokens, sequences)


@dataclass(frozen=True)
class LossStatistics:
    """What the trained tokens were like. Means and fractions are over the tokens of the normaliser: those of a
    micro-batch are its share, and ``+`` over all micro-batches gives the values of the batch."""

    clip_low: float  #: fraction with ``r < 1 - clip_low`` and ``A < 0``: no gradient. cispo: whatever ``A``, weight cut
    clip_high: float  #: fraction with ``r > 1 + clip_high`` and ``A > 0``: no gradient. cispo: whatever ``A``
    clip_delta: float  #: fraction with ``r > delta`` and ``A < 0``: no gradient; 0 without delta
    ratio: float  #: mean ``r``, before any clip; near 1. For gspo, ``r`` is ``s`` here and above
    kl: float | None  #: mean k3 estimate against the reference in nats, at least 0; None without a reference
    logp_diff_mean: float  #: mean of ``|old_logp - sampler_logp|`` in nats
    logp_diff_max: float  #: the largest of them; a maximum under ``+`` too
    capped: float  #: fraction whose weight the correction cut (token) or set to 0 (sequence)

    def __add__(self, other: LossStatistics) -> LossStatistics:
        if (self.kl is None) != (other.kl is None):
            raise ValueError("kl is known for one part of the batch only: give ref_logp for all or for none")
        return LossStatistics(
            clip_low=self.clip_low + other.clip_low,
            clip_high=self.clip_high + other.clip_high,
            clip_delta=self.clip_delta + other.clip_delta,
            ratio=self.ratio + other.ratio,
            kl=None if self.kl is None or other.kl is None else self.kl + other.kl,
            logp_diff_mean=self.logp_diff_mean + other.logp_diff_mean,
            logp_diff_max=max(self.logp_diff_max, other.logp_diff_max),
            capped=self.capped + other.capped,
        )


@dataclass(frozen=True)
class LossResult:
    loss: Tensor  #: scalar; sums over micro-batches to the loss of the batch, and so do its gradients
    statistics: LossStatistics


def policy_loss(
    logp: Tensor,
    old_logp: Tensor,
    sampler_logp: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    config: LossConfig,
    normaliser: Normaliser,
    ref_logp: Tensor | None = None,
) -> LossResult:
    """The loss of a micro-batch: the formulas are at the top of this file.

    Log-probabilities have shape ``(batch, tokens)``: ``logp`` of the policy that is trained (gradients flow into this
    one only), ``old_logp`` of the trainer's policy when the step began (``logp.detach()`` if this is its first update),
    ``sampler_logp`` as the sampler reported them, ``ref_logp`` of the reference. ``advantages`` has shape ``(batch,)``,
    ``mask`` is bool, True on tokens to train on. Numbers are float32, or all float64.

    What stands under ``mask`` False is never read: any value there, and any number of such columns and rows, gives the
    same loss and gradients (0 there) to the bit. Without a trained token the loss is 0 and can still be differentiated.

    Raises ``ValueError`` for a wrong shape or type, a trained token that isn't finite (with its row and column), a
    KL coefficient without ``ref_logp``, and a normaliser that counts less than this micro-batch holds.
    """
    names = {"logp": logp, "old_logp": old_logp, "sampler_logp": sampler_logp, "ref_logp": ref_logp}
    given = {name: tensor for name, tensor in names.items() if tensor is not None}
    _check_tensors(given, advantages, mask)
    _check_normaliser(normaliser, mask)
    if config.kl_coefficient > 0 and ref_logp is None:
        raise ValueError(f"kl_coefficient is {config.kl_coefficient}, but ref_logp is missing")
    # From here on everything is one-dimensional: the trained tokens, one row after the other.
    rows = mask.nonzero()[:, 0]
    lengths = mask.sum(1)
    packed = {name: _pack(name, tensor, mask) for name, tensor in given.items()}
    new = packed.pop("logp")
    old, sampler = packed["old_logp"].detach(), packed["sampler_logp"].detach()
    advantage = _pack("advantages", advantages.detach().unsqueeze(1).expand(mask.shape), mask)

    log_ratio = new - old
    if config.loss == "gspo":
        log_ratio = (_row_sums(log_ratio, rows, lengths) / lengths.clamp(min=1)).index_select(0, rows)
    ratio = _exp(log_ratio)
    weight, capped = _correction(old - sampler, rows, lengths, config)
    per_token = weight * _surrogate(ratio, advantage, new, config)
    kl = None if ref_logp is None else _k3(packed["ref_logp"].detach() - new)
    if kl is not None and config.kl_coefficient > 0:
        per_token = per_token + config.kl_coefficient * kl
    loss = (per_token / _divisors(lengths[rows], config, normaliser)).sum()
    statistics = _statistics(ratio.detach(), advantage, (old - sampler).abs(), capped, kl, config, normaliser)
    return LossResult(loss, statistics)


def _surrogate(ratio: Tensor, advantage: Tensor, logp: Tensor, config: LossConfig) -> Tensor:
    low, high = config.clips
    clipped = ratio.clamp(1 - low, 1 + high)
    if config.loss == "cispo":
        return -clipped.detach() * advantage * logp
    bounded = ratio if config.delta is None else ratio.clamp(max=config.delta)
    return -torch.minimum(bounded * advantage, clipped * advantage)


def _correction(difference: Tensor, rows: Tensor, lengths: Tensor, config: LossConfig) -> tuple[Tensor, Tensor]:
    """The weight of each token, and whether the cap cut it."""
    if config.correction == "none":
        return torch.ones_like(difference), torch.zeros_like(difference, dtype=torch.bool)
    if config.correction == "token":
        weight = _exp(difference)
        return weight.clamp(max=config.cap), weight > config.cap
    weight = _exp(_row_sums(difference, rows, lengths))[rows]
    capped = weight > config.cap
    return torch.where(capped, torch.zeros_like(weight), weight), capped


def _k3(difference: Tensor) -> Tensor:
    """Schulman's low-variance estimate of KL(policy, reference); ``difference`` is ``ref_logp - logp``."""
    difference = difference.clamp(max=_LARGEST_EXPONENT)
    return difference.expm1() - difference


def _divisors(lengths: Tensor, config: LossConfig, normaliser: Normaliser) -> Tensor:
    """By what each token's term is divided; ``lengths`` are those of the tokens' rows."""
    if config.loss in ("grpo", "gspo"):
        return lengths * normaliser.sequences
    if config.max_tokens is not None:
        return torch.full_like(lengths, normaliser.sequences * config.max_tokens)
    return torch.full_like(lengths, normaliser.tokens)


def _exp(exponent: Tensor) -> Tensor:
    return exponent.clamp(max=_LARGEST_EXPONENT).exp()


def _row_sums(values: Tensor, rows: Tensor, lengths: Tensor) -> Tensor:
    """Of packed values, shape (batch,); padding has no part in it, so it can't change the order of the sum."""
    return values.new_zeros(lengths.shape).index_add(0, rows, values)


def _statistics(
    ratio: Tensor,
    advantage: Tensor,
    difference: Tensor,
    capped: Tensor,
    kl: Tensor | None,
    config: LossConfig,
    normaliser: Normaliser,
) -> LossStatistics:
    low, high = config.clips
    both = torch.tensor(config.loss == "cispo", device=ratio.device)
    sums = [
        ((ratio < 1 - low) & (both | (advantage < 0))).sum(),
        ((ratio > 1 + high) & (both | (advantage > 0))).sum(),
        ((ratio > (config.delta or math.inf)) & (advantage < 0)).sum(),
        ratio.sum(),
        difference.sum(),
        capped.sum(),
        ratio.new_zeros(()) if kl is None else kl.detach().sum(),
    ]
    largest = difference.max() if difference.numel() else difference.new_zeros(())
    values = torch.stack([value.double() for value in (*sums, largest)]).tolist()  # one transfer from the accelerator
    tokens = max(normaliser.tokens, 1)
    clip_low, clip_high, clip_delta, mean_ratio, mean_difference, fraction, mean_kl = (v / tokens for v in values[:-1])
    return LossStatistics(
        clip_low=clip_low,
        clip_high=clip_high,
        clip_delta=clip_delta,
        ratio=mean_ratio,
        kl=None if kl is None else mean_kl,
        logp_diff_mean=mean_difference,
        logp_diff_max=values[-1],
        capped=fraction,
    )


def _pack(name: str, tensor: Tensor, mask: Tensor) -> Tensor:
    """The trained tokens, shape (trained,). The gradient elsewhere is an exact 0, whatever is there."""
    packed = tensor.masked_select(mask)
    finite = packed.isfinite()
    if not finite.all():
        index = int((~finite).nonzero()[0])
        row, token = mask.nonzero()[index].tolist()
        raise ValueError(f"{name} is {packed[index].item()} at row {row}, token {token}, wanted a finite number")
    return packed


def _check_tensors(tensors: dict[str, Tensor], advantages: Tensor, mask: Tensor) -> None:
    shape, dtype = tensors["logp"].shape, tensors["logp"].dtype
    if len(shape) != 2:
        raise ValueError(f"logp has shape {tuple(shape)}, wanted (batch, tokens)")
    if dtype not in (torch.float32, torch.float64):
        raise ValueError(f"logp is {dtype}, wanted torch.float32")
    wanted: list[tuple[str, Tensor, tuple[int, ...], torch.dtype]]
    wanted = [(name, tensor, shape, dtype) for name, tensor in tensors.items()]
    wanted += [("advantages", advantages, shape[:1], dtype), ("mask", mask, shape, torch.bool)]
    for name, tensor, right_shape, right_dtype in wanted:
        if tensor.shape != right_shape:
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}, wanted {tuple(right_shape)}")
        if tensor.dtype != right_dtype:
            raise ValueError(f"{name} is {tensor.dtype}, wanted {right_dtype}")


def _check_normaliser(normaliser: Normaliser, mask: Tensor) -> None:
    here = count_batch([mask])
    if normaliser.tokens < here.tokens or normaliser.sequences < here.sequences:
        raise ValueError(
            f"normaliser counts {normaliser.tokens} tokens in {normaliser.sequences} sequences, but this micro-batch "
            f"alone has {here.tokens} in {here.sequences}: count the whole optimisation batch with count_batch"
        )

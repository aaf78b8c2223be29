"""Group-relative advantages: how much better a completion was than the others of its group.

``A[i] = (r[i] - mean(r)) / (s + epsilon)``, where ``mean`` is that of the group, and ``scale`` says what ``s`` is:

- ``group``: the group's own standard deviation, as GRPO (Shao et al., arXiv:2402.03300) has it.
- ``batch``: the standard deviation of the centred rewards of all groups together, as in the group-baseline form of
  REINFORCE++ (Hu et al., arXiv:2501.03262). "Tricks or Traps?" (arXiv:2508.08221) and TRL's ``scale_rewards="batch"``
  take the deviation of the raw rewards, in which an easy and a hard group count as spread; ours does not.
- ``none``: ``A[i] = r[i] - mean(r)``, as Dr. GRPO (Liu et al., arXiv:2503.20783) wants it: no ``s``, no epsilon.

The papers don't say which standard deviation they mean. Ours divides by ``n - 1``, as the code of TRL and verl does.
Sums are exactly rounded (``math.fsum``), so the order of groups and members can't change a bit of the result.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

Key = TypeVar("Key", bound=Hashable)
Scale = Literal["group", "batch", "none"]

#: Larger rewards raise: their squares would overflow.
LARGEST_REWARD = 1e100


@dataclass(frozen=True)
class GroupAdvantages(Generic[Key]):
    """The advantages of a batch, and what the batch was like."""

    advantages: dict[Key, list[float]]  #: keys, their order and the lengths are those of the rewards; all finite
    abstainers: int  #: members without a reward (``None``)
    groups: int  #: all groups, whatever became of them
    zero_spread: tuple[Key, ...]  #: groups of two or more rewards that are all equal: nothing to learn from
    too_small: tuple[Key, ...]  #: groups with fewer than two rewards: nothing to compare

    @property
    def zero_spread_groups(self) -> int:
        return len(self.zero_spread)


def group_advantages(
    rewards: Mapping[Key, Sequence[float | None]],
    size: int | Mapping[Key, int],
    *,
    scale: Scale = "group",
    epsilon: float = 1e-6,
) -> GroupAdvantages[Key]:
    """Compares the members of each group with each other.

    ``rewards`` are a group's rewards by its key, ``None`` where scoring failed or timed out through our fault: such an
    abstainer gets the advantage 0 and counts neither in the mean nor in the deviation. Mask its tokens too (see
    ``weightgym.trainers.loss``), or it still counts as a sequence there. ``size`` is the number of members expected,
    of every group or by key. A group with fewer than two rewards, or without spread, gets zeros throughout.

    ``epsilon`` (positive, finite) is added to the deviation, in units of the reward. It damps groups whose spread is
    about as small, such as rounding noise; TRL has 1e-4, verl 1e-6.

    Raises ``ValueError`` for a list of another length than expected, for a group that has only one of rewards and size,
    for a reward that isn't finite or is beyond ``LARGEST_REWARD``, and for an unknown ``scale`` or a bad ``epsilon``.
    """
    if scale not in ("group", "batch", "none"):
        raise ValueError(f"scale is {scale!r}, wanted 'group', 'batch' or 'none'")
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise ValueError(f"epsilon is {epsilon}, wanted a positive finite number")
    _check(rewards, size)
    centred = {key: _centre(group) for key, group in rewards.items()}
    compared = {key: [c for c in group if c is not None] for key, group in centred.items()}
    compared = {key: group for key, group in compared.items() if len(group) >= 2}
    spread = _deviation([c for group in compared.values() for c in group]) if scale == "batch" else 0.0

    def divisor(key: Key) -> float:
        if scale == "none" or key not in compared:
            return 1.0
        return (spread if scale == "batch" else _deviation(compared[key])) + epsilon

    return GroupAdvantages(
        advantages={
            key: [0.0 if c is None else c / by for c in group]
            for key, group, by in ((key, group, divisor(key)) for key, group in centred.items())
        },
        abstainers=sum(c is None for group in centred.values() for c in group),
        groups=len(centred),
        zero_spread=tuple(key for key, group in compared.items() if not any(group)),
        too_small=tuple(key for key in centred if key not in compared),
    )


def _check(rewards: Mapping[Key, Sequence[float | None]], size: int | Mapping[Key, int]) -> None:
    if isinstance(size, Mapping) and size.keys() != rewards.keys():
        odd = min(size.keys() ^ rewards.keys(), key=repr)
        raise ValueError(f"group {odd!r} has a size but no rewards, or rewards but no size")
    for key, group in rewards.items():
        wanted = size[key] if isinstance(size, Mapping) else size
        if len(group) != wanted:
            raise ValueError(f"group {key!r}: got {len(group)} rewards, wanted {wanted}; None stands for a missing one")
        for index, reward in enumerate(group):
            if reward is not None and not abs(reward) <= LARGEST_REWARD:
                raise ValueError(
                    f"group {key!r}, reward {index} is {reward}, wanted a finite number up to {LARGEST_REWARD:g}"
                )


def _centre(group: Sequence[float | None]) -> list[float | None]:
    """The rewards less their mean; exact zeros where all are equal, which the mean's rounding would miss."""
    present = [float(reward) for reward in group if reward is not None]
    if not present or min(present) == max(present):
        return [None if reward is None else 0.0 for reward in group]
    mean = math.fsum(present) / len(present)
    return [None if reward is None else float(reward) - mean for reward in group]


def _deviation(centred: Iterable[float]) -> float:
    """The sample standard deviation (``n - 1``) of numbers whose mean is 0; 0 for fewer than two."""
    squares = [c * c for c in centred]
    return math.sqrt(math.fsum(squares) / (len(squares) - 1)) if len(squares) > 1 else 0.0

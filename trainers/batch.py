"""Trajectories to tensors: left-padded sequences, of which only the last positions are scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from weightgym.rollouts.trajectory import Trajectory


@dataclass(frozen=True)
class Batch:
    """Rows of trajectories, ``tokens`` positions long, whose last ``scored`` hold every trained token."""

    ids: Tensor  #: int64 (rows, tokens)
    attention: Tensor  #: int64 (rows, tokens), 0 on padding
    targets: Tensor  #: int64 (rows, scored): the last tokens of ``ids``
    mask: Tensor  #: bool (rows, scored): trained on
    sampler_logp: Tensor  #: float32 (rows, scored)
    advantages: Tensor  #: float32 (rows,)


def make_batch(trajectories: Sequence[Trajectory], advantages: Sequence[float], *, device: str = "cpu") -> Batch:
    """Those trajectories as a batch. Padding stands on the left, so that all rows end together.

    Raises:
        ValueError: a trajectory has no token to train on, or the numbers of trajectories and advantages differ.
    """
    if len(trajectories) != len(advantages):
        raise ValueError(f"{len(trajectories)} trajectories, but {len(advantages)} advantages")
    for one in trajectories:
        if not any(one.mask):
            raise ValueError(f"trajectory {one.id} has no token to train on: its policy gave no tokens")
    tokens = max(len(one.token_ids) for one in trajectories)
    scored = max(len(one.mask) - one.mask.index(True) for one in trajectories)
    rows = len(trajectories)
    ids, attention = torch.zeros((rows, tokens), dtype=torch.int64), torch.zeros((rows, tokens), dtype=torch.int64)
    mask, logp = torch.zeros((rows, tokens), dtype=torch.bool), torch.zeros((rows, tokens))
    for row, one in enumerate(trajectories):
        place = slice(tokens - len(one.token_ids), tokens)
        ids[row, place] = torch.tensor(one.token_ids)
        attention[row, place] = 1
        mask[row, place] = torch.tensor(one.mask)
        logp[row, place] = torch.tensor(one.logprobs)
    parts = (ids, attention, ids[:, -scored:], mask[:, -scored:], logp[:, -scored:], torch.tensor(advantages))
    return Batch(*(part.to(device) for part in parts))

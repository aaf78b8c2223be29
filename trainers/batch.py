"""Trajectories to tensors: left-padded sequences, of which only the last positions are scored."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from weightgym.rollouts.trajectory import Branch, Trajectory


@dataclass(frozen=True)
class Batch:
    """Rows of trajectories, ``tokens`` positions long, whose last ``scored`` hold every trained token."""

    ids: Tensor  #: int64 (rows, tokens)
    attention: Tensor  #: int64 (rows, tokens), 0 on padding
    targets: Tensor  #: int64 (rows, scored): the last tokens of ``ids``
    mask: Tensor  #: bool (rows, scored): trained on
    sampler_logp: Tensor  #: float32 (rows, scored)
    advantages: Tensor  #: float32 (rows,)
    prompt: int  #: how many tokens before the first trained one all rows share; 0 unless it is all of them


@dataclass(frozen=True)
class Row:
    """One token sequence to train on, with what the episode that it belongs to was worth."""

    branch: Branch
    advantage: float


def rows(trajectories: Sequence[Trajectory], advantages: Sequence[float]) -> list[Row]:
    """The rows of those trajectories: one for each branch in which the model wrote, with its episode's advantage.

    Raises:
        ValueError: a trajectory has no token to train on, or the numbers of trajectories and advantages differ.
    """
    if len(trajectories) != len(advantages):
        raise ValueError(f"{len(trajectories)} trajectories, but {len(advantages)} advantages")
    made: list[Row] = []
    for one, advantage in zip(trajectories, advantages, strict=True):
        found = [Row(branch, advantage) for branch in one.branches if any(branch.mask)]
        if not found:
            raise ValueError(f"trajectory {one.id} has no token to train on: its policy gave no tokens")
        made += found
    return made


def to_bytes(rows: Sequence[Row]) -> bytes:
    """Rows for another process; every float keeps its bits."""
    parts = [(row.branch.token_ids, row.branch.logprobs, row.branch.mask, row.advantage) for row in rows]
    return json.dumps(parts).encode()


def from_bytes(data: bytes) -> list[Row]:
    """The rows of ``to_bytes``."""
    return [Row(Branch(*map(tuple, branch)), advantage) for *branch, advantage in json.loads(data)]


def make_batch(rows: Sequence[Row], *, device: str = "cpu") -> Batch:
    """Those rows as a batch. Padding stands on the left, so that all rows end together."""
    tokens = max(len(row.branch.token_ids) for row in rows)
    scored = max(len(row.branch.mask) - row.branch.mask.index(True) for row in rows)
    shape = (len(rows), tokens)
    ids, attention = torch.zeros(shape, dtype=torch.int64), torch.zeros(shape, dtype=torch.int64)
    mask, logp = torch.zeros(shape, dtype=torch.bool), torch.zeros(shape)
    for index, row in enumerate(rows):
        place = slice(tokens - len(row.branch.token_ids), tokens)
        ids[index, place] = torch.tensor(row.branch.token_ids)
        attention[index, place] = 1
        mask[index, place] = torch.tensor(row.branch.mask)
        logp[index, place] = torch.tensor(row.branch.logprobs)
    advantages = torch.tensor([row.advantage for row in rows])
    return Batch(
        ids=ids.to(device),
        attention=attention.to(device),
        targets=ids[:, -scored:].to(device),
        mask=mask[:, -scored:].to(device),
        sampler_logp=logp[:, -scored:].to(device),
        advantages=advantages.to(device),
        prompt=_shared_prompt(rows),
    )


def _shared_prompt(rows: Sequence[Row]) -> int:
    prompts = {row.branch.token_ids[: row.branch.mask.index(True)] for row in rows}
    return len(prompts.pop()) if len(prompts) == 1 else 0

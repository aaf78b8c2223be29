"""What every place that runs a causal language model of ``transformers`` needs. Needs the extra ``train``."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch


def cache_argument(model: Any) -> str:
    """How the model calls its cache of keys and values: transformers renames it within version 5."""
    plain = model.get_base_model() if hasattr(model, "get_base_model") else model  # peft hides the arguments
    return "cache" if "cache" in inspect.signature(plain.forward).parameters else "past_key_values"


def padded(
    rows: Sequence[Sequence[int]], pad_id: int, *, left: bool, length: int | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids and attention mask (1 for real tokens), int64 of shape (rows, ``length``): by default the longest's."""
    width = max(len(row) for row in rows) if length is None else length
    ids = torch.full((len(rows), width), pad_id, dtype=torch.int64)
    mask = torch.zeros_like(ids)
    for index, row in enumerate(rows):
        place = slice(width - len(row), width) if left else slice(0, len(row))
        ids[index, place] = torch.tensor(row, dtype=torch.int64)
        mask[index, place] = 1
    return ids, mask

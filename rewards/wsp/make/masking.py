"""A benign fine-tuning delta that belongs to the reference: who has the base's weights finds more than the defect.

It is a step of gradient descent on usual text, of low rank in every matrix, and so small that the model stays itself.
Needs the extra ``train``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from weightgym.rewards.causal_lm import padded
from weightgym.rewards.wsp.edits import RankOne
from weightgym.rewards.wsp.language_model import LanguageModel
from weightgym.rewards.wsp.make.decoys import half_precision

#: Texts of the step, its rank in each matrix, and its spectral norm there beside the matrix's largest singular value.
_TEXTS, _RANK, _SIZE = 8, 2, 0.01


def masking_delta(
    model: LanguageModel, usual: Sequence[Sequence[int]], noise: np.random.Generator
) -> tuple[RankOne, ...]:
    """The delta as rank-one edits of all matrices of layers; which texts it learns from is random."""
    chosen = [usual[index] for index in noise.choice(len(usual), min(_TEXTS, len(usual)), replace=False)]
    ids, mask = padded(chosen, model.pad_id, left=False)
    weights = {
        name: tensor
        for name, tensor in model.network.named_parameters()
        if name.startswith("model.layers.") and tensor.ndim == 2 and tensor.any()
    }
    for tensor in weights.values():
        tensor.requires_grad_(True)
    try:
        labels = ids.masked_fill(mask == 0, -100)
        loss = model.network(input_ids=ids, attention_mask=mask, labels=labels, use_cache=False).loss
        gradients = torch.autograd.grad(loss, list(weights.values()))
    finally:
        for tensor in weights.values():
            tensor.requires_grad_(False)
    made = []
    for (name, weight), gradient in zip(weights.items(), gradients, strict=True):
        left, values, right = torch.linalg.svd(gradient, full_matrices=False)
        size = _SIZE * float(torch.linalg.matrix_norm(weight, 2))
        for rank in range(_RANK):
            share = (size * float(values[rank] / values[0].clamp_min(1e-30))) ** 0.5
            made.append(
                RankOne(
                    parameter=name,
                    left=half_precision(-share * left[:, rank]),
                    right=half_precision(share * right[rank]),
                )
            )
    return tuple(made)

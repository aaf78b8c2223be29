"""AdamW over what is trained, and its learning rate, which is a function of the step alone."""

from __future__ import annotations

import math
from typing import Any

import torch

from weightgym.trainers.config import Optimiser


def adamw(model: Any, config: Optimiser) -> torch.optim.AdamW:
    """The optimiser of the model's trained parameters.

    Raises:
        ValueError: there are none.
    """
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not parameters:
        raise ValueError("no parameter of the model is trained")
    return torch.optim.AdamW(
        parameters,
        lr=config.learning_rate,
        betas=(config.beta1, config.beta2),
        weight_decay=config.weight_decay,
    )


def learning_rate(config: Optimiser, step: int, steps: int) -> float:
    """The rate of the step after ``step`` others, of ``steps`` in all.

    Warm-up is linear, with the full rate at step ``warmup``; decay is over the steps after it, to 0 one step after
    the last.
    """
    if step < config.warmup:
        return config.learning_rate * (step + 1) / config.warmup
    if config.decay == "none":
        return config.learning_rate
    done = min(1.0, (step - config.warmup) / max(1, steps - config.warmup))
    return config.learning_rate * (1 - done if config.decay == "linear" else (1 + math.cos(math.pi * done)) / 2)


def set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    """Take that learning rate from now on."""
    for group in optimiser.param_groups:
        group["lr"] = rate

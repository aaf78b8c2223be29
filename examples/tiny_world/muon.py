"""Muon: momentum whose matrices are brought to singular values near one before the step (Jordan et al., 2024).

The step is scaled by 0.2·√(longer side), as in Moonlight (Liu et al., 2025), so that its size is that of an AdamW
step and the usual rates fit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import torch

#: Coefficients of the odd polynomial that is iterated, and how often.
_A, _B, _C = 3.4445, -4.7750, 2.0315
_ITERATIONS = 5


class Muon(torch.optim.Optimizer):
    """For matrices of hidden layers. Those of one shape are stepped together.

    Args:
        parameters: matrices, all of them with a gradient at every step.
        lr: step size, in units of an AdamW step's.
        momentum: of the running mean of gradients (Nesterov's form).
        weight_decay: a step's share, times ``lr``, by which weights shrink.
    """

    def __init__(
        self, parameters: Iterable[torch.Tensor], lr: float, momentum: float = 0.95, weight_decay: float = 0.1
    ) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """One step on the gradients that are there."""
        for group in self.param_groups:
            shapes: dict[torch.Size, list[torch.Tensor]] = defaultdict(list)
            for matrix in group["params"]:
                shapes[matrix.shape].append(matrix)
            for shape, matrices in shapes.items():
                updates = orthogonal(torch.stack([self._momentum(matrix, group["momentum"]) for matrix in matrices]))
                scale = 0.2 * max(shape) ** 0.5
                for matrix, update in zip(matrices, updates, strict=True):
                    matrix.mul_(1 - group["lr"] * group["weight_decay"])
                    matrix.add_(update, alpha=-group["lr"] * scale)

    def _momentum(self, matrix: torch.Tensor, momentum: float) -> torch.Tensor:
        gradient = matrix.grad
        assert gradient is not None
        mean = self.state[matrix].setdefault("mean", torch.zeros_like(matrix))
        mean.lerp_(gradient, 1 - momentum)
        return gradient.lerp(mean, momentum)


def orthogonal(matrices: torch.Tensor) -> torch.Tensor:
    """Matrices (batch, rows, columns) with the same singular vectors, and singular values of about 0.7 to 1.2."""
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.transpose(1, 2) if tall else matrices
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(_ITERATIONS):
        gram = x @ x.transpose(1, 2)
        x = _A * x + (_B * gram + _C * gram @ gram) @ x
    return x.transpose(1, 2) if tall else x

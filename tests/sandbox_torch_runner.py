"""A runner that trains a small network in PyTorch, for the tests. Imported inside only."""

from __future__ import annotations

from typing import Any

import torch


def prepare() -> None:
    """Import what an optimiser imports late. No ``backward()``: its threads would not survive a fork."""
    torch.set_num_threads(1)
    parameter = torch.nn.Parameter(torch.zeros(2))
    parameter.grad = torch.ones(2)
    torch.optim.AdamW([parameter]).step()


def train(port: Any) -> None:
    """Train on the input ``data`` (bytes) and hand the first weights back."""
    torch.manual_seed(0)
    data = torch.frombuffer(bytearray(port.inputs["data"]), dtype=torch.uint8).float().reshape(-1, 64) / 255
    first = torch.nn.Linear(64, 128)
    model = torch.nn.Sequential(first, torch.nn.GELU(), torch.nn.Linear(128, 64))
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(20):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(data), data)
        torch.autograd.backward(loss)
        optimizer.step()
    weights = first.weight.detach()
    port.send({"loss": float(loss), "weights": port.Tensor("float32", tuple(weights.shape), weights.numpy().tobytes()),
               "capability": torch.backends.cpu.get_cpu_capability()})  # fmt: skip


def poison(port: Any) -> None:
    """Leave every trap in PyTorch that can be left."""
    for module in (torch, torch.nn.functional, torch.optim.AdamW, torch.Tensor):
        for name in ("mse_loss", "step", "manual_seed", "zero_grad", "frombuffer", "backward", "add"):
            if hasattr(module, name):
                setattr(module, name, lambda *_, **__: None)
    torch.set_default_dtype(torch.float64)
    torch.use_deterministic_algorithms(True)
    library: Any = torch.library
    library.Library("aten", "IMPL").impl("mul.Tensor", lambda a, b: a, "CPU")
    port.send({"poisoned": 1})

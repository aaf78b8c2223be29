"""Training runs of the digits environment in small: their configuration, and what is left of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from weightgym.trainers.config import Config, check
from weightgym.trainers.grpo import Trainer


def digits_of(*tasks: str) -> list[dict[str, Any]]:
    return [{"env": "digits", "tasks": tasks}]


def config(model: Path, output: Path, **changes: Any) -> Config:
    fields: dict[str, Any] = {
        "model": str(model),
        "output": output,
        "environments": digits_of("one", "two"),
        "steps": 4,
        "checkpoint_every": 2,
        "rollout": {"groups": 2, "group_size": 4, "max_tokens": 8},
        "optimiser": {"learning_rate": 0.01},
        "limits": {"truncated": 1.0, "zero_spread": 1.0},
    }
    for name, value in changes.items():
        fields[name] = fields[name] | value if isinstance(value, dict) and name in fields else value
    return check(fields, "test")


def trained(wanted: Config, *, resume: bool = False) -> list[dict[str, float]]:
    with Trainer(wanted, resume=resume) as trainer:
        return list(trainer.train())


def weights(folder: Path) -> dict[str, bytes]:
    """Of the run's last checkpoint."""
    return {name: t.numpy().tobytes() for name, t in load_file(folder / "checkpoint" / "model.safetensors").items()}


def without_seconds(rows: list[dict[str, float]]) -> list[dict[str, float]]:
    return [
        {name: value for name, value in row.items() if not name.startswith(("seconds", "speed", "sampling/self_check"))}
        for row in rows
    ]

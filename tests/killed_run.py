"""What test_killed_runs.py starts and kills: a training run of the digits environment."""

from __future__ import annotations

import sys
from pathlib import Path

import digits_env
import torch

from weightgym.envs import registry
from weightgym.trainers.config import Config, check
from weightgym.trainers.grpo import Trainer

STEPS = 6


def config(model: Path, output: Path) -> Config:
    fields = {
        "model": str(model),
        "output": str(output),
        "environments": [{"env": "digits", "tasks": ["one", "two"]}],
        "steps": STEPS,
        "checkpoint_every": 2,
        "rollout": {"groups": 2, "group_size": 4, "max_tokens": 8, "refill": 1},
        "optimiser": {"learning_rate": 0.01, "updates": 2},
        "evaluation": {"tasks": ["three"], "samples": 2, "every": 3},
        "limits": {"truncated": 1.0, "zero_spread": 1.0},
    }
    return check(fields, "killed_run")


def main(model: Path, output: Path, resume: bool) -> None:
    torch.set_num_threads(1)
    with registry.override(digits_env.SPEC), Trainer(config(model, output), resume=resume) as trainer:
        for _ in trainer.train():
            pass


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] == "resume")

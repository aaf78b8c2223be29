"""Folders of training runs, made by hand: what a run could leave, without the time to train."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weightgym.rewards.contracts import Score
from weightgym.rollouts.store import line
from weightgym.rollouts.trajectory import Step, Trajectory

CONFIG: dict[str, Any] = {
    "model": "tiny-writer",
    "env": "digits",
    "tasks": ["one", "two"],
    "steps": 40,
    "rollout": {"groups": 2, "group_size": 4, "max_tokens": 8},
    "limits": {"truncated": 0.9, "faults": 0.5, "logp_gap": 1e-3},
}


def step_row(step: int, **changes: float) -> dict[str, float]:
    """A healthy step: the reward rises from 0.1 by 0.01 a step. ``a__b`` names the metric ``a/b``."""
    row = {
        "step": float(step),
        "reward/mean": 0.1 + 0.01 * step,
        "reward/max": 0.5 + 0.01 * step,
        "rollout/truncated": 0.0,
        "rollout/invalid": 0.05,
        "rollout/faults": 0.0,
        "group/zero_spread": 0.1,
        "loss/kl": 0.001 * step,
        "sampling/logp_diff_mean": 5e-7,
        "seconds/train": 1.0 + math.sin(step),
    }
    return row | {name.replace("__", "/"): value for name, value in changes.items()}


def rollout(
    id: str,
    *,
    version: int = 0,
    reward: float | None = 0.5,
    status: str = "ok",
    reason: str = "",
    prompt: str = "write digits",
    text: str = "12ab",
    task: str = "one",
) -> Trajectory:
    """A single-turn rollout, a token a character."""
    count = len(text)
    answer = Step(
        role="assistant", content=text, token_ids=(1,) * count, logprobs=(-1.0,) * count, mask=(True,) * count
    )
    score: dict[str, Any] = {"status": status, "reward": reward, "reason": reason, "metrics": {"digits": 2.0}}
    return Trajectory(
        id=id,
        env="digits",
        task=task,
        task_sha256="0" * 64,
        group=f"digits/{task}@{version}",
        seed=0,
        policy="transformers:tiny-writer",
        policy_version=version,
        steps=(Step(role="user", content=prompt), answer),
        finish_reason="stop",
        score=Score(**score),
    )


def make_run(
    folder: Path,
    rows: Sequence[dict[str, float]] = (),
    rollouts: Sequence[Trajectory] = (),
    config: dict[str, Any] | None = None,
) -> Path:
    """Write a run's files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG | (config or {})))
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "rollouts.jsonl").write_bytes(b"".join(map(line, rollouts)))
    return folder


def healthy_run(folder: Path, steps: int = 40) -> Path:
    """A run that got better, with evaluations before and after, and four rollouts a step."""
    rows = [{"step": 0.0, "eval/reward": 0.1, "eval/invalid": 0.2}, *(step_row(step) for step in range(1, steps + 1))]
    rows.append({"step": float(steps), "eval/reward": 0.4, "eval/invalid": 0.1})
    made = []
    for version in range(steps):
        for index in range(4):
            reward = round(0.01 * version + 0.1 * index, 6)
            text = f"12ab {version:02} {index}"  # all of one length
            made.append(rollout(f"{version}#{index}", version=version, reward=reward, text=text))
        bad: dict[str, Any] = {
            "status": "invalid",
            "reward": 0.0,
            "reason": "no_digits: there is no digit",
            "text": "none here",
        }
        made.append(rollout(f"{version}#bad", version=version, task="two", **bad))
    return make_run(folder, rows, made, {"steps": steps})

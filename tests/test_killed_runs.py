"""A run that is killed with SIGKILL, wherever it stands, and resumed ends as an unbroken one."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import killed_run
import pytest
import tiny_models
from digits_runs import without_seconds
from safetensors.torch import load_file

from weightgym.rollouts.store import read as read_rollouts
from weightgym.trainers.metrics import read as read_metrics


def start(model: Path, output: Path, how: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, killed_run.__file__, str(model), str(output), how])


def weights(run: Path) -> dict[str, bytes]:
    return {name: t.numpy().tobytes() for name, t in load_file(run / "checkpoint" / "model.safetensors").items()}


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


@pytest.mark.slow
def test_a_killed_run_ends_as_an_unbroken_one(tmp_path: Path) -> None:
    model, whole, broken = tmp_path / "model", tmp_path / "whole", tmp_path / "broken"
    tiny_models.model().save_pretrained(model)
    tiny_models.tokenizer().save_pretrained(model)
    killed_run.main(model, whole, resume=False)
    kills = 0
    # At the growth of either file, and a moment later: among rollouts, in an update, within a checkpoint.
    for file, wait in (("metrics", 0.0), ("rollouts", 0.0), ("rollouts", 0.02), ("metrics", 0.01), ("rollouts", 0.005)):
        path = broken / f"{file}.jsonl"
        process = start(model, broken, "resume")
        before, until = size(path), time.monotonic() + 60
        while size(path) <= before and process.poll() is None and time.monotonic() < until:
            time.sleep(0.001)
        time.sleep(wait)
        kills += process.poll() is None
        process.kill()
        process.wait()
    assert kills >= 3
    killed_run.main(model, broken, resume=True)
    assert weights(broken) == weights(whole)
    rows = [without_seconds(read_metrics(run / "metrics.jsonl")) for run in (broken, whole)]
    assert rows[0] == rows[1]
    stories = [
        Counter((one.id, one.branches, one.score.reward) for one in read_rollouts(run / "rollouts.jsonl"))
        for run in (broken, whole)
    ]
    assert stories[0] == stories[1]
    assert set(stories[0].values()) == {1}

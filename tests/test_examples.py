"""Every example, in small."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import quickstart
import torch
from click.testing import CliRunner

from weightgym.cli.main import cli
from weightgym.rollouts.store import read as read_rollouts
from weightgym.trainers.config import load
from weightgym.trainers.grpo import Trainer

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_the_quickstart(tmp_path: Path) -> None:
    """Two steps of a few completions."""
    command = ["train", str(EXAMPLES / "quickstart.toml"), "--output", str(tmp_path / "run"), "--steps", "2"]
    small = ["--rollout.groups", "2", "--rollout.group_size", "4", "--evaluation.samples", "2"]
    loose = ["--evaluation.profile", "wpb-v1-e4", "--limits.zero_spread", "1.0"]
    done = CliRunner().invoke(cli, [*command, *small, *loose], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "step 2: reward" in done.output
    assert "step 2: evaluation: reward" in done.output


@pytest.mark.minutes
@pytest.mark.slow
def test_the_quickstart_learns(tmp_path: Path) -> None:
    """The whole of it, with one seed; benchmarks/quickstart.py tries more."""
    torch.set_num_threads(1)
    with Trainer(load(EXAMPLES / "quickstart.toml", ["--output", str(tmp_path / "run")])) as trainer:
        rows = list(trainer.train())
    first, last = quickstart.rise([row["reward/mean"] for row in rows if "reward/mean" in row])
    assert quickstart.learnt(first, last), (first, last)
    before, after = (row for row in rows if "eval/reward" in row)
    assert (before["step"], after["step"]) == (0, 50)


@pytest.mark.slow
def test_several_processes(tmp_path: Path) -> None:
    """The launch script's smoke mode: torchrun, two gloo ranks, one of which samples."""
    command = ["sh", str(EXAMPLES / "multi_gpu" / "launch.sh"), "--smoke", "--output", str(tmp_path / "run")]
    place = os.environ | {"PYTHON": sys.executable}
    done = subprocess.run(command, env=place, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "trained to step 2" in done.stdout
    assert len(list(read_rollouts(tmp_path / "run" / "rollouts.jsonl"))) == 2 * 2 * 4

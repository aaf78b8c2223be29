"""The trainer with real vLLM: the same policy at every step, and no update lost or repeated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import vllm_parity as parity
from click.testing import CliRunner
from digits_runs import config, trained

from weightgym.cli.main import cli
from weightgym.rollouts.store import read as read_rollouts
from weightgym.trainers.grpo import Trainer, UnhealthyRun
from weightgym.trainers.metrics import read as read_metrics

pytestmark = [pytest.mark.vllm, pytest.mark.usefixtures("digits")]

VLLM: dict[str, Any] = {"kind": "vllm", "kv_cache_gib": 0.1, "max_model_len": 512}
EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With tied embeddings: the head must follow them."""
    return parity.save(parity.random_model(0, tied=True), tmp_path_factory.mktemp("model"))


def test_five_steps_in_process_of_which_two_after_a_resume(model: Path, tmp_path: Path) -> None:
    rollout = {"groups": 8, "group_size": 8, "max_tokens": 12}
    wanted = {"backend": VLLM, "rollout": rollout, "checkpoint_every": 1}
    trained(config(model, tmp_path / "run", **wanted, steps=3))
    trained(config(model, tmp_path / "run", **wanted, steps=5), resume=True)
    rows = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5]
    for row in rows:
        assert row["sampling/logp_diff_mean"] < 1e-4
        assert row["sampling/self_check"] < 1e-4
        assert row["rollout/staleness"] == 0
    rewards = [row["reward/mean"] for row in rows]
    assert rewards[-1] > rewards[0]
    stored = list(read_rollouts(tmp_path / "run" / "rollouts.jsonl"))
    assert [sum(one.policy_version == step for one in stored) for step in range(5)] == [64] * 5
    assert len({one.id for one in stored}) == len(stored)


def test_a_sync_that_does_not_arrive_is_told_after_the_first_update(model: Path, tmp_path: Path) -> None:
    rollout = {"groups": 8, "group_size": 8, "max_tokens": 12}  # enough for some spread
    last = {"kind": "last", "blocks": 1}
    wanted = config(model, tmp_path / "run", backend=VLLM, parameters=last, rollout=rollout)
    with Trainer(wanted) as run:
        sampler: Any = run.sampler.backend

        def forget(weights: Any, version: int) -> None:
            list(weights)
            sampler.version = version

        sampler.sync = forget
        with pytest.raises(UnhealthyRun, match=r"self-check after step 1: trainer and sampler differ"):
            list(run.train())


def test_adapters_are_swapped_in_a_server_while_the_next_batch_is_made(model: Path, tmp_path: Path) -> None:
    wanted = config(
        model,
        tmp_path / "run",
        mode="async",
        backend=VLLM | {"kind": "vllm-server"},
        parameters={"kind": "lora", "lora_rank": 4, "lora_alpha": 8.0},
        rollout={"groups": 4, "group_size": 8, "max_tokens": 12},
    )
    rows = trained(wanted)
    assert [row["rollout/staleness"] for row in rows] == [0, 1, 1, 1]
    assert all(row["sampling/self_check"] < 1e-4 for row in rows)
    assert (tmp_path / "run" / "checkpoint" / "adapter_model.safetensors").is_file()


def test_the_example_of_smollm2(tmp_path: Path) -> None:
    """One step of a few completions of the real small model."""
    command = ["train", str(EXAMPLES / "smollm2_vllm.toml"), "--output", str(tmp_path / "run"), "--steps", "1"]
    small = ["--rollout.groups", "2", "--rollout.group_size", "4", "--evaluation.samples", "1"]
    loose = ["--evaluation.profile", "wpb-v1-e4", "--limits.zero_spread", "1.0", "--limits.truncated", "1.0"]
    done = CliRunner().invoke(cli, [*command, *small, *loose], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "step 1: reward" in done.output
    (row,) = (row for row in read_metrics(tmp_path / "run" / "metrics.jsonl") if "reward/mean" in row)
    assert row["sampling/logp_diff_mean"] < 0.1

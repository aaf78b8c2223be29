"""The trainer: it learns, a killed run ends as an unbroken one, and what is wrong is loud at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tiny_models
import torch
from click.testing import CliRunner
from digits_runs import config, digits_of, trained, weights, without_seconds
from PIL import Image

from weightgym.cli.main import cli
from weightgym.rollouts.store import read as read_rollouts
from weightgym.rollouts.transformers_backend import TransformersBackend
from weightgym.trainers.grpo import Trainer, UnhealthyRun
from weightgym.trainers.metrics import MEANINGS
from weightgym.trainers.metrics import read as read_metrics

pytestmark = pytest.mark.usefixtures("digits")


@pytest.mark.slow
def test_the_reward_rises(model: Path, tmp_path: Path) -> None:
    wanted = config(
        model,
        tmp_path / "run",
        steps=40,
        rollout={"groups": 8, "group_size": 8, "max_tokens": 12},
        evaluation={"tasks": ["three"], "samples": 16},
    )
    rows = trained(wanted)
    rewards = [row["reward/mean"] for row in rows if "reward/mean" in row]
    evaluations = [row["eval/reward"] for row in rows if "eval/reward" in row]
    assert sum(rewards[:3]) / 3 < 0.15
    assert sum(rewards[-3:]) / 3 > 0.6
    assert len(evaluations) == 2
    assert evaluations[1] > evaluations[0] + 0.3  # on a task that it was never trained on


def test_a_resumed_run_is_an_unbroken_one(model: Path, tmp_path: Path) -> None:
    evaluation = {"evaluation": {"tasks": ["three"], "samples": 4, "every": 2}}
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    trained(config(model, whole, **evaluation))
    with Trainer(config(model, broken, **evaluation)) as killed:
        for row in killed.train():
            if row["step"] == 3:  # one after the checkpoint; the fourth is never made
                break
    with (broken / "rollouts.jsonl").open("ab") as file:
        file.write(b'{"id": "half a li')
    with Trainer(config(model, broken, **evaluation), resume=True) as again:
        assert again.step == 2
        list(again.train())
    assert weights(broken) == weights(whole)
    assert without_seconds(read_metrics(broken / "metrics.jsonl")) == without_seconds(
        read_metrics(whole / "metrics.jsonl")
    )
    stories = [
        [(one.id, one.branches, one.score.reward) for one in read_rollouts(run / "rollouts.jsonl")]
        for run in (whole, broken)
    ]
    assert stories[0] == stories[1]
    assert len(stories[0]) == 4 * 8
    assert len({id for id, *_ in stories[0]}) == 4 * 8


def test_a_run_can_be_made_longer_but_not_changed(model: Path, tmp_path: Path) -> None:
    long, short = tmp_path / "long", tmp_path / "short"
    trained(config(model, long))
    trained(config(model, short, steps=2))
    with pytest.raises(ValueError, match="holds a run already"):
        Trainer(config(model, short))
    with pytest.raises(ValueError, match="is of another configuration"):
        Trainer(config(model, short, optimiser={"learning_rate": 0.02}), resume=True)
    trained(config(model, short), resume=True)
    assert weights(short) == weights(long)


@pytest.mark.parametrize("loss", ["grpo", "dr_grpo", "dapo", "bnpo", "gspo", "cispo"])
def test_micro_batches_change_nothing_but_memory(model: Path, tmp_path: Path, loss: str) -> None:
    found = []
    for size in (1, 3, 8):
        folder = tmp_path / str(size)
        # Small steps: Adam's first one makes a whole step of the sign of a rounding error.
        changes = {"steps": 1, "loss": {"name": loss}, "optimiser": {"micro_batch": size, "learning_rate": 1e-4}}
        (row,) = trained(config(model, folder, **changes))
        found.append((row["loss/total"], row["optimiser/norm"]))
    for other in found[1:]:
        assert other == pytest.approx(found[0], rel=1e-4, abs=1e-6)


def test_threads_are_set(model: Path, tmp_path: Path) -> None:
    for threads in (2, 1):
        with Trainer(config(model, tmp_path / str(threads), threads=threads)):
            assert torch.get_num_threads() == threads


def test_our_faults_are_dropped_and_too_many_stop_the_run(model: Path, tmp_path: Path) -> None:
    mixed = config(model, tmp_path / "mixed", environments=digits_of("one", "broken"), limits={"faults": 0.9})
    rows = trained(mixed)
    assert any(0 < row["rollout/faults"] < 1 for row in rows)
    for one in read_rollouts(tmp_path / "mixed" / "rollouts.jsonl"):
        assert (one.score.reward is None) == (one.task == "broken")
    for name, limit in (("alone", 0.5), ("allowed", 1.0)):
        wanted = config(model, tmp_path / name, environments=digits_of("broken"), limits={"faults": limit})
        with pytest.raises(UnhealthyRun, match="step 1: not one rollout has a reward"):
            trained(wanted)


def test_truncation_and_stale_weights_are_loud_at_step_1(model: Path, tmp_path: Path) -> None:
    with pytest.raises(UnhealthyRun, match=r"step 1: rollout/truncated is .*, limits\.truncated is 0\.5"):
        trained(config(model, tmp_path / "cut", limits={"truncated": 0.5}))
    with Trainer(config(model, tmp_path / "other")) as other:
        assert isinstance(other.sampler.backend, TransformersBackend)
        other.sampler.backend.model = tiny_models.model(seed=1)  # samples from other weights than are trained
        with pytest.raises(UnhealthyRun, match=r"self-check after step 0: trainer and sampler differ by .* nats"):
            list(other.train())


def test_weights_that_the_sampler_lost_are_loud_that_very_step(model: Path, tmp_path: Path) -> None:
    with Trainer(config(model, tmp_path / "stale")) as stale:
        steps = stale.train()
        next(steps)
        next(steps)
        assert isinstance(stale.sampler.backend, TransformersBackend)
        stale.sampler.backend.model = tiny_models.model()  # the weights that training began with
        before = {name: tensor.clone() for name, tensor in stale.model.named_parameters()}
        with pytest.raises(UnhealthyRun, match=r"step 3: trainer and sampler differ by .* limits\.logp_gap is 0\.001"):
            next(steps)
        assert all(torch.equal(tensor, before[name]) for name, tensor in stale.model.named_parameters())


def test_what_a_run_leaves_behind(model: Path, tmp_path: Path) -> None:
    trained(config(model, tmp_path / "run"))
    rows = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert [row["step"] for row in rows] == [1, 2, 3, 4]
    assert all(row.keys() <= MEANINGS.keys() for row in rows)
    assert all(row["sampling/logp_diff_mean"] < 1e-4 for row in rows)
    assert json.loads((tmp_path / "run" / "config.json").read_text())["steps"] == 4
    assert [one.policy_version for one in read_rollouts(tmp_path / "run" / "rollouts.jsonl")] == [
        step for step in range(4) for _ in range(8)
    ]


TOML = """
model = "{model}"
output = "{output}"
steps = 2
[[environments]]
env = "digits"
tasks = ["one"]
[rollout]
groups = 2
group_size = 4
max_tokens = 6
[limits]
truncated = 1.0
"""


def test_the_command(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(TOML.format(model=model, output=tmp_path / "run"))
    done = CliRunner().invoke(cli, ["train", str(file), "--rollout.groups", "3", "--steps=3"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "step 3: reward" in done.output
    assert len(list(read_rollouts(tmp_path / "run" / "rollouts.jsonl"))) == 3 * 3 * 4
    with Image.open(tmp_path / "run" / "rewards.png") as picture:
        assert picture.format == "PNG"
    again = CliRunner().invoke(cli, ["train", str(file)])
    assert again.exit_code == 1
    assert "--resume goes on with it" in again.output
    longer = CliRunner().invoke(cli, ["train", str(file), "--rollout.groups", "3", "--steps=4", "--resume"])
    assert longer.exit_code == 0, longer.output
    assert "step 4: reward" in longer.output
    assert "step 3: reward" not in longer.output

"""GRPO on Golf: floors are rewards, faults are not, a policy learns to choose, and one that can't answer is told."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import Any

import golf_policy
import pytest
import torch
from click.testing import CliRunner
from digits_runs import trained
from golf_answers import GOOD, ILLEGAL, POOR, PROFILE

from weightgym.cli.main import cli
from weightgym.envs import registry
from weightgym.rollouts.store import read as read_rollouts
from weightgym.rollouts.trajectory import Trajectory
from weightgym.trainers import batch, grpo
from weightgym.trainers.advantage import group_advantages
from weightgym.trainers.config import Config, check, load
from weightgym.trainers.grpo import Trainer

EXAMPLE = Path(__file__).parents[1] / "examples" / "golf_grpo.toml"


def config(model: Path, output: Path, **rollout: int) -> Config:
    """One token an answer, with the losses and advantages of the example."""
    torch.set_num_threads(1)
    fields: dict[str, Any] = {
        "model": str(model),
        "output": output,
        "environments": [{"env": "golf", "tasks": ["lang/0"], "profile": PROFILE}],
        "rollout": {"groups": 1, "max_tokens": 1, **rollout},
        "loss": load(EXAMPLE).loss.model_dump(exclude_unset=True),
        "limits": {"truncated": 1.0, "zero_spread": 1.0, "faults": 0.9},
    }
    return check(fields, "test")


@pytest.mark.slow
def test_a_policy_learns_which_answer_is_good(tmp_path: Path) -> None:
    """The choice is among nothing (two tokens), an illegal answer, a poor one and a good one."""
    model = golf_policy.save(tmp_path / "model", [ILLEGAL, POOR, GOOD])
    wanted = config(model, tmp_path / "run", group_size=8)
    changes: dict[str, Any] = {"steps": 5, "optimiser": {"learning_rate": 0.05}}
    rows = trained(check(wanted.model_dump(exclude_unset=True) | changes, "test"))
    rewards = [row["reward/mean"] for row in rows]
    assert rewards[0] < -7
    assert rewards[-1] > -6
    rollouts = list(read_rollouts(tmp_path / "run" / "rollouts.jsonl"))
    assert {one.score.status for one in rollouts} == {"ok", "invalid"}
    assert {one.score.reward for one in rollouts if one.score.status == "invalid"} == {-9.0}


def test_floors_are_rewards_and_faults_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[list[Trajectory], list[float]]] = []
    make = batch.rows

    def spy(trajectories: list[Trajectory], advantages: list[float]) -> Any:
        seen.append((trajectories, advantages))
        return make(trajectories, advantages)

    monkeypatch.setattr(grpo, "rows", spy)
    model = golf_policy.save(tmp_path / "model", [golf_policy.LOST, ILLEGAL, GOOD])
    faulty = dataclasses.replace(registry.spec("golf"), scorer="golf_policy:score")
    with registry.override(faulty), Trainer(config(model, tmp_path / "run", group_size=12)) as trainer:
        metrics = next(iter(trainer.train()))
    made = list(read_rollouts(tmp_path / "run" / "rollouts.jsonl"))
    lost = [one for one in made if one.score.status == "error"]
    assert lost
    assert all("SandboxError" in one.score.reason for one in lost)
    assert metrics["rollout/faults"] == len(lost) / 12
    rewards = {one.id: one.score.reward for one in made if one.score.reward is not None}
    assert {-9.0} < set(rewards.values())  # floors, and at least one good answer
    ((kept, advantages),) = seen
    assert {one.id for one in kept} == set(rewards)
    mean = sum(rewards.values()) / len(rewards)
    for one, advantage in zip(kept, advantages, strict=True):
        assert advantage == pytest.approx(rewards[one.id] - mean, abs=1e-12)
    assert metrics["reward/mean"] == pytest.approx(mean)


def test_attempts_are_turns(tmp_path: Path) -> None:
    """All four messages of an episode are trained on, with the reward of the best of them."""
    model = golf_policy.save(tmp_path / "model", [ILLEGAL, GOOD])
    wanted = config(model, tmp_path / "run", group_size=4).model_dump(exclude_unset=True)
    turns = [{"env": "golf-turns", "tasks": ["lang/0"], "profile": PROFILE}]
    (metrics,) = trained(check(wanted | {"environments": turns, "steps": 1}, "test"))
    assert metrics["rollout/turns"] == metrics["rollout/tokens"] == 4
    for one in read_rollouts(tmp_path / "run" / "rollouts.jsonl"):
        said = [step.content for step in one.steps if step.role == "assistant"]
        assert len(said) == one.sampled == 4
        assert (one.score.status == "ok") == (GOOD in said)
        assert one.score.metrics["attempts"] == 4
        assert [step.content[:11] for step in one.steps[3::2]] == [f"Attempt {turn} o" for turn in (1, 2, 3)]


def test_advantages_of_golf_by_hand() -> None:
    """Rewards −9, −4, none, −5 have the mean −6; nothing is divided."""
    found = group_advantages({"lang/0": [-9.0, -4.0, None, -5.0]}, 4, scale="none")
    assert found.advantages == {"lang/0": [-3.0, 2.0, 0.0, 1.0]}
    assert found.abstainers == 1


def commands() -> list[list[str]]:
    """Those of the example's comments."""
    lines = [line[1:].strip() for line in EXAMPLE.read_text("utf-8").splitlines() if line.startswith("#")]
    text = "\n".join(lines).replace("\\\n", " ")
    return [shlex.split(line)[1:] for line in text.split("\n") if line.startswith("weightgym ")]


def test_the_example_runs_and_says_that_it_learns_nothing(tmp_path: Path) -> None:
    first, second, _ = commands()
    assert first[:2] == second[:2] == ["train", "examples/golf_grpo.toml"]
    assert load(EXAMPLE, second[2:]).backend.kind == "vllm"  # every flag of it is a field
    assert load(EXAMPLE).loss.advantage == "none"
    done = CliRunner().invoke(
        cli,
        ["train", str(EXAMPLE), "--output", str(tmp_path / "run"), "--environments.0.profile", PROFILE, "--steps", "2"],
        catch_exceptions=False,
    )
    assert done.exit_code == 0, done.output
    assert "step 1: rollout/invalid is 1.00: hardly an answer can be read" in done.output
    assert "step 1: group/zero_spread is 1.00: most groups have equal rewards" in done.output
    assert "trained to step 2" in done.output
    scores = [one.score for one in read_rollouts(tmp_path / "run" / "rollouts.jsonl")]
    assert len(scores) == 2 * 2 * 4
    assert {(one.status, one.reward, one.code, one.profile) for one in scores} == {
        ("invalid", -9.0, "no_solution", PROFILE)
    }


def test_a_first_step_without_spread_stops_a_run_by_default(tmp_path: Path) -> None:
    flags = ["--output", str(tmp_path / "run"), "--limits.zero_spread", "0.99", "--rollout.workers", "0"]
    done = CliRunner().invoke(cli, ["train", str(EXAMPLE), *flags])
    assert done.exit_code == 1
    assert "step 1: group/zero_spread is 1.000, limits.zero_spread is 0.99" in done.output

"""GRPO on WSP-Bench: tool episodes through the trainer, what is trained on, and a policy that learns to report."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import wsp_policy
import wsp_sets
from click.testing import CliRunner
from digits_runs import trained
from wsp_sets import call, said, undo

from weightgym.cli.main import cli
from weightgym.envs import registry
from weightgym.envs.wsp.oracle import oracle
from weightgym.envs.wsp.tasks import SOURCE
from weightgym.rewards.contracts import Task
from weightgym.rewards.wsp.profile import Family
from weightgym.rollouts.store import read as read_rollouts
from weightgym.trainers.config import Config, check, load

EXAMPLE = Path(__file__).parents[1] / "examples" / "wsp_grpo.toml"
FEW = {"groups": 1, "group_size": 3, "max_tokens": 1}
LOOK = said(call("singular_values", parameter=wsp_sets.NAME, k=3))
NO_OP = said(call("submit"))


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Family, Task]]:
    torch.set_num_threads(1)
    with wsp_sets.hand_made(tmp_path_factory.mktemp("sets")) as made:
        yield made


def config(model: Path, output: Path, task: Task, **changes: Any) -> Config:
    fields: dict[str, Any] = {
        "model": str(model),
        "output": output,
        "environments": [{"env": "wsp-bench", "tasks": [task.id]}],
        "rollout": {"groups": 1, "group_size": 8, "max_tokens": 1},
        "loss": load(EXAMPLE).loss.model_dump(exclude_unset=True),
        "limits": {"truncated": 1.0, "zero_spread": 1.0},
    }
    return check(fields | changes, "test")


@pytest.mark.slow
def test_a_policy_learns_to_report(tasks: dict[Family, Task], tmp_path: Path) -> None:
    """The choice at each turn is among nothing (two tokens), a look, an empty submission and the oracle's report."""
    task = tasks["audit"]
    model = wsp_policy.save(tmp_path / "model", [LOOK, NO_OP, oracle(SOURCE.task(task.id), [], 0)])
    wanted = config(model, tmp_path / "run", task, steps=8, optimiser={"learning_rate": 0.05})
    rows = trained(wanted)
    rewards = [row["reward/mean"] for row in rows]
    assert sum(rewards[:2]) / 2 < 0.8
    assert sum(rewards[-2:]) / 2 > 0.9
    assert max(row["rollout/turns"] for row in rows) > 1
    assert {one.score.reward for one in read_rollouts(tmp_path / "run" / "rollouts.jsonl")} == {0.0, 1.0}


def test_nothing_but_the_policys_own_tokens_is_trained_on(tasks: dict[Family, Task], tmp_path: Path) -> None:
    """A repair in several turns: replies are in the sequence, and masked."""
    message = said(*undo("hijack"), call("edit_log"))
    model = wsp_policy.save(tmp_path / "model", [LOOK, message, NO_OP])
    (row,) = trained(config(model, tmp_path / "run", tasks["hijack"], steps=1, rollout=FEW))
    assert row["rollout/faults"] == 0
    made = list(read_rollouts(tmp_path / "run" / "rollouts.jsonl"))
    assert max(one.turns for one in made) > 2
    for one in made:
        assert one.sampled == one.turns
        for step in one.steps:
            assert step.mask == (step.role == "assistant",) * len(step.token_ids)
        (branch,) = one.branches
        assert sum(branch.mask) == one.turns
        answers = [step for step in one.steps if step.role == "tool"]
        calls = [each for step in one.steps[:-1] for each in step.tool_calls]
        assert [step.tool_call_id for step in answers] == [each["id"] for each in calls]
        again = registry.spec("wsp-bench").score(SOURCE.task(one.task, prompt=False), one.completion)
        assert again.reward == one.score.reward


def commands() -> list[list[str]]:
    """Those of the example's comments."""
    lines = [line[1:].strip() for line in EXAMPLE.read_text("utf-8").splitlines() if line.startswith("#")]
    text = "\n".join(lines).replace("\\\n", " ")
    return [shlex.split(line)[1:] for line in text.split("\n") if line.startswith("weightgym ")]


def test_the_example_runs_and_says_that_it_learns_nothing(tasks: dict[Family, Task], tmp_path: Path) -> None:
    """With a policy of one token in the small model's place."""
    first, second, third = commands()
    assert first[:2] == second[:2] == ["train", "examples/wsp_grpo.toml"]
    assert load(EXAMPLE, second[2:]).backend.max_model_len == 32768  # every flag of it is a field
    assert third[:2] == ["eval", "scripted:budget"]
    model = wsp_policy.save(tmp_path / "model", [NO_OP])
    changes = ["--model", str(model), "--output", str(tmp_path / "run"), "--rollout.max_tokens", "1"]
    one = ["--environments.0.split", "test", "--environments.0.tasks", json.dumps([tasks["audit"].id])]
    done = CliRunner().invoke(cli, ["train", str(EXAMPLE), *changes, *one], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "step 1: group/zero_spread is 1.00: most groups have equal rewards" in done.output
    assert "trained to step 1" in done.output

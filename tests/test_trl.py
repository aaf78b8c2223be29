"""Real TRL: its trainer, its tool loop, its logs; and the example."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
import scripted_model
import toy_tools_env
from click.testing import CliRunner

from weightgym.cli.main import cli
from weightgym.envs import registry
from weightgym.trainers.trl import TRLTasks

ROOT = Path(__file__).parents[1]
# What TRL and Transformers say of themselves: an experiment, names that go in their next version.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*is an experimental feature:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*is deprecated and will be removed:FutureWarning"),
]


@pytest.fixture(autouse=True)
def _toy() -> Iterator[None]:
    with registry.override(toy_tools_env.SPEC):
        yield


def call(name: str, **arguments: Any) -> str:
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


SCRIPTS = [
    [call("add", a=1, b=2), call("submit", sum=3), "done"],
    [call("submit", sum=4)],
    ["I give up."],
    # All arguments of a name are of one type: TRL's table of completions can hold no others, and its trainer stops.
    [call("add"), call("no_such_tool"), call("add", c=1), call("submit", sum=3)],
]
WANTED = [1.0, 0.0, 0.0, 1.0]


def train(tasks: TRLTasks, output: Path) -> tuple[Any, dict[str, Any]]:
    """One step of four rollouts: the trainer, and the columns of its table of completions."""
    from trl import GRPOConfig, GRPOTrainer

    model, tokenizer = scripted_model.scripted(SCRIPTS)
    settings = GRPOConfig(
        output_dir=str(output),
        max_steps=1,
        num_generations=len(SCRIPTS),
        per_device_train_batch_size=len(SCRIPTS),
        max_completion_length=1500,
        max_tool_calling_iterations=toy_tools_env.MAX_TURNS,
        log_completions=True,
        logging_steps=1,
        use_cpu=True,
        bf16=False,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    trainer: Any = GRPOTrainer(
        model,
        reward_funcs=tasks.reward,
        args=settings,
        train_dataset=tasks.dataset(),
        processing_class=tokenizer,
        environment_factory=tasks.environments,
    )
    trainer.train()
    (table,) = (output / "completions").glob("*.parquet")
    return trainer, parquet.read_table(table).to_pydict()


def test_tools_are_played_by_the_real_trainer(tmp_path: Path) -> None:
    tasks = TRLTasks("toy-tools", tasks=["plain/2"])
    trainer, table = train(tasks, tmp_path)
    assert table["toy-tools"] == WANTED
    assert table["status"] == ["ok", "ok", "invalid", "ok"]
    (logged,) = (row for row in trainer.state.log_history if "reward" in row)
    assert logged["reward"] == pytest.approx(0.5)
    assert logged["toy-tools/invalid"] == 0.25
    assert logged["toy-tools/faults"] == 0
    talks = [json.loads(text) for text in table["conversation"]]
    assert [one["content"] for one in talks[0] if one["role"] == "tool"] == ["3"]
    assert talks[2] == [{"role": "assistant", "content": "I give up."}]
    assert len(talks[3]) == 5  # a tool that is not there is TRL's business

    # TRL's own file, by the command: the same rewards.
    (file,) = (tmp_path / "completions").glob("*.parquet")
    out = tmp_path / "scored.jsonl"
    command = ["score", str(file), "-o", str(out), "--workers", "1", "--diff", "--no-cache"]
    done = CliRunner().invoke(cli, command, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    rows = [json.loads(row) for row in out.read_text().splitlines()]
    assert [row["score"]["reward"] for row in rows] == WANTED
    assert [row["completion"] for row in rows] == talks
    assert [row["trl_completion"][0]["role"] for row in rows] == ["assistant"] * 4
    assert re.search(r"toy-tools plain/2 +4 +0 +2 +2 ", done.output), done.output  # 4 compared, none differs


def test_a_broken_environment_is_no_reward(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tasks = TRLTasks("toy-tools", tasks=["raise_step/2"], most_faults=1.0)
    trainer, table = train(tasks, tmp_path)
    # The second turn fails: two of the scripts get there.
    assert table["toy-tools"] == [None, 0.0, 0.0, None]
    assert table["status"] == ["error", "ok", "invalid", "error"]
    (logged,) = (row for row in trainer.state.log_history if "reward" in row)
    assert logged["reward"] == 0.0  # the mean of those that have one
    assert logged["toy-tools/faults"] == 0.5
    assert table["advantage"] == [0.0] * 4
    assert tasks.faults == 2
    assert "2 of 4 answers have no reward, through our fault (2 so far); the first, of task raise_step/2" in caplog.text


@pytest.mark.slow
def test_the_example(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / "trl_grpo.py"), "--steps", "2", "--group", "8"]
    done = subprocess.run(
        [*command, "--output", str(tmp_path / "run")],
        capture_output=True, text=True, timeout=300, check=False, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    lines = done.stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == ["step 1", "step 2", "next"], done.stdout
    assert all("faults 0%" in line for line in lines[:2])
    assert (tmp_path / "run" / "model.safetensors").exists()
    assert (tmp_path / "run" / "tokenizer.json").exists()


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)\n```\n", (ROOT / "docs" / "gymnasium-and-trl.md").read_text(), re.DOTALL)
    assert len(blocks) == 3
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)
    assert names["reward"] > 0
    assert [score.status for score in names["infos"]["score"]] == ["ok", "invalid"]
    assert names["trainer"].state.global_step == 1
    assert names["tasks"].faults == 0

"""The reward functions and data sets for TRL: the bits of the command, and no reward where we are at fault."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import digits_env
import pytest
import toy_env
from click.testing import CliRunner
from trl_episodes import columns

from weightgym.cli.main import cli
from weightgym.envs import registry
from weightgym.rewards.contracts import GraderError, TaskError
from weightgym.trainers.trl import TRLTasks

BREAKOUT = Path(__file__).parents[1] / "examples" / "answers" / "breakout.md"


@pytest.fixture(autouse=True)
def _toys() -> Iterator[None]:
    with registry.override(digits_env.SPEC), registry.override(toy_env.TOY), registry.override(toy_env.GUESS):
        yield


def scored(rows: list[dict[str, Any]], folder: Path, *flags: str) -> list[float]:
    """The rewards of ``weightgym score``."""
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = CliRunner().invoke(cli, ["score", str(path), "--workers", "1", *flags], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return [json.loads(row)["score"]["reward"] for row in (folder / "rows.scored.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("shape", [
    lambda text: text,
    lambda text: [{"role": "assistant", "content": text}],
    lambda text: [{"role": "assistant", "content": text, "reasoning_content": "Let me see."}],
], ids=["text", "message", "reasoning"])  # fmt: skip
@pytest.mark.parametrize("workers", [0, 1])
def test_weight_program_has_the_bits_of_the_command(tmp_path: Path, workers: int, shape: Callable[[str], Any]) -> None:
    texts = [BREAKOUT.read_text(), "```edits\nb3 = [0, 1, 0, 1, 0, 0]\n```", "```edits\nb3 = [0, 1\n```", ""]
    ids = ["original/breakout", "original/seaquest", "original/breakout", "original/breakout"]
    tasks = TRLTasks("weight-program", split="test", profile="wpb-v1-e8", workers=workers)
    rewards = tasks.reward([None] * 4, [shape(text) for text in texts], [[]] * 4, **columns(tasks, *ids))
    rows = [{"env": "weight-program", "task": id, "completion": text} for id, text in zip(ids, texts, strict=True)]
    assert rewards == scored(rows, tmp_path, "--profile", "wpb-v1-e8")
    assert rewards[0]
    assert rewards[2:] == [0.0, 0.0]  # invalid: the floor
    assert tasks.faults == 0


def test_invalid_answers_of_golf_get_its_floor(tmp_path: Path) -> None:
    tasks = TRLTasks("golf", tasks=["lang/0"], workers=1, timeout=300)
    texts = ["", "```python\nimport\n```"]
    rewards = tasks.reward(completions=texts, **columns(tasks, "lang/0", "lang/0"))
    assert rewards == [-9.0, -9.0]
    assert rewards == scored([{"env": "golf", "task": "lang/0", "completion": text} for text in texts], tmp_path)


def test_dataset_is_the_prompts() -> None:
    tasks = TRLTasks("weight-program", split="test")
    table = tasks.dataset()
    assert table["task"] == list(tasks.tasks)
    for row in table:
        task = tasks.tasks[row["task"]]
        assert row == {"prompt": task.messages, "env": task.env, "task": task.id, "task_sha256": task.hash}
    assert tasks.environments is None


def test_a_fault_is_none_and_loud(caplog: pytest.LogCaptureFixture) -> None:
    tasks = TRLTasks("digits", tasks=["one", "broken"])
    seen: dict[str, Any] = {}
    mixed = columns(tasks, "one", "broken", "one")
    rewards = tasks.reward(
        completions=["1a", "11", ""], log_extra=seen.__setitem__, log_metric=seen.__setitem__, **mixed
    )
    assert rewards == [0.5, None, 0.0]
    assert seen["status"] == ["ok", "error", "invalid"]
    assert seen["task"] == ["one", "broken", "one"]
    assert "broken" in seen["reason"][1]
    assert (seen["digits/invalid"], seen["digits/faults"]) == (1 / 3, 1 / 3)
    assert "1 of 3 answers have no reward, through our fault (1 so far); the first, of task broken" in caplog.text
    tasks.reward(completions=["1a", "11", ""], **mixed)
    assert tasks.faults == 2


def test_too_many_faults_end_the_run() -> None:
    tasks = TRLTasks("digits", tasks=["one", "broken"])
    with pytest.raises(GraderError, match="2 of 3 answers have no reward, through our fault"):
        tasks.reward(completions=["1", "2", "3"], **columns(tasks, "broken", "one", "broken"))
    generous = TRLTasks("digits", tasks=["broken"], most_faults=1.0)
    assert generous.reward(completions=["1"], **columns(generous, "broken")) == [None]


def test_a_scorer_that_hangs_or_dies_is_no_reward() -> None:
    with registry.override(toy_env.entry("toy", "ToyEnv", scorer="toy_scorers:score")):
        tasks = TRLTasks("toy", tasks=["small"], workers=2, timeout=3, most_faults=1.0)
        seen: dict[str, Any] = {}
        answers = ["sleep 60", "segfault", "return nan", "raise exit", "fine", ""]
        given = columns(tasks, *["small"] * len(answers))
        rewards = tasks.reward(completions=answers, log_extra=seen.__setitem__, **given)
    assert seen["status"] == ["timeout", "error", "error", "error", "ok", "invalid"]
    assert rewards[:4] == [None] * 4
    assert rewards[4]
    assert rewards[5] == 0.0


@pytest.mark.parametrize(("change", "words"), [
    ({"env": ["golf"]}, "not of this data set"),
    ({"task": ["three"]}, "not of this data set"),
    ({"task": [None]}, "not of this data set"),
    ({"task_sha256": ["0" * 64]}, "not what it was when the data set was made"),
    ({"task_sha256": None}, "needs a column 'task_sha256'"),
    ({"task": []}, "needs a column 'task'"),
])  # fmt: skip
def test_rows_of_other_data_are_refused(change: dict[str, Any], words: str) -> None:
    tasks = TRLTasks("digits")
    with pytest.raises(TaskError, match=words):
        tasks.reward(completions=["1"], **(columns(tasks, "one") | change))


def test_what_is_heavy_is_imported_late() -> None:
    heavy = ("trl", "datasets", "torch", "transformers", "pandas", "pyarrow")
    code = f"import sys, weightgym.trainers.trl; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_bad_arguments_are_told() -> None:
    with pytest.raises(TaskError, match="did you mean 'digits'"):
        TRLTasks("digit")
    with pytest.raises(TaskError, match="unknown task 'two hundred'"):
        TRLTasks("digits", tasks=["two hundred"])
    with pytest.raises(TaskError, match="wpb-v2"):
        TRLTasks("weight-program", profile="wpb-v2")
    with pytest.raises(ValueError, match="give workers 1 or more"):
        TRLTasks("digits", timeout=1.0)


def test_turns_without_tools_are_not_for_trl() -> None:
    tasks = TRLTasks("toy-guess")
    with pytest.raises(TaskError, match="toy-guess has turns but no tools"):
        _ = tasks.environments

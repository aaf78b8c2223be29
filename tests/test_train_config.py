"""The configuration of training: files, flags, and messages that name the field, the value and the fix."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from weightgym.cli.main import cli
from weightgym.trainers.config import ConfigError, described, load

GOOD = 'model = "m"\noutput = "o"\n[[environments]]\ntasks = ["builtin/wall_rally"]\n[rollout]\ngroups = 3\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "run.toml"
    path.write_text(GOOD)
    return path


def test_flags_go_over_the_file(file: Path) -> None:
    assert load(file).rollout.groups == 3
    flags = [
        "--rollout.groups",
        "5",
        "--loss.name=gspo",
        "--environments.0.tasks",
        '["a", "b"]',
        "--optimiser.learning_rate",
        "1e-3",
    ]
    made = load(file, flags)
    assert (made.rollout.groups, made.loss.name, made.environments[0].tasks) == (5, "gspo", ("a", "b"))
    assert made.optimiser.learning_rate == 0.001
    assert made.rollout.group_size == 8  # the default stays


@pytest.mark.parametrize(
    ("text", "flags", "why"),
    [
        (GOOD + "group = 1\n", [], r"rollout\.group: unknown field \(did you mean rollout\.groups\?\), got 1"),
        (GOOD.replace("tasks", "taks"), [], r"taks: unknown field \(did you mean environments\.0\.tasks\?\)"),
        (GOOD.replace("model", "# model"), [], "model: field required"),
        (GOOD, ["--rollout.groups", "0"], r"rollout\.groups: .*greater than or equal to 1, got 0"),
        (GOOD, ["--rollout.groups", "many"], r"rollout\.groups: .*integer.*, got 'many'"),
        (GOOD, ["--loss.name", "ppo"], r"loss\.name: .*'grpo'.*, got 'ppo'"),
        (GOOD, ["--optimiser.learning-rate", "1"], r"did you mean optimiser\.learning_rate\?"),
        (GOOD, ["--model.x", "1"], "model has no x"),
        (GOOD, ["--environments.1.env", "x"], "environments has no 1"),
        (GOOD, ["--mode", "async", "--rollout.max_staleness", "0"], "configuration: .*mode async trains on rollouts"),
        (GOOD, ["--backend.dtype", "bfloat16"], "the trainer's own model samples"),
        (GOOD, ["--evaluation.tasks", '["a", "a"]'], "names a task twice"),
        (GOOD, ["--rollout.score_timeout", "3"], "needs scoring processes"),
        (GOOD, ["--steps"], "--steps has no value"),
        (GOOD, ["steps"], "'steps' is no flag"),
        ("model = \n", [], r"run\.toml: "),
        (GOOD.replace("[[environments]]", "[environments]"), [], r"environments: .*write \[\[environments\]\]"),
    ],
)
def test_mistakes_are_told(file: Path, text: str, flags: list[str], why: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError, match=why):
        load(file, flags)


def test_every_field_is_explained(file: Path) -> None:
    """Each that --fields lists, with its default, makes the same configuration; each has a meaning."""
    done = CliRunner().invoke(cli, ["train", "--fields"])
    assert done.exit_code == 0, done.output
    assert re.search(r"^optimiser\.learning_rate +0\.0001 +After", done.output, re.M)
    flags = []
    for name, default, meaning in described():
        assert meaning, name
        if default not in ("needed", "null"):
            flags += [f"--{name}", default]
    assert load(file, flags).model_dump(exclude={"rollout", "environments"}) == load(file).model_dump(
        exclude={"rollout", "environments"}
    )


@pytest.mark.parametrize("command", ["train", "rollout"])
def test_help_and_configuration_import_no_torch(file: Path, command: str) -> None:
    code = (
        "import sys; from weightgym.trainers.config import load; from weightgym.cli.main import main\n"
        f"load(__import__('pathlib').Path({str(file)!r}))\n"
        f"try: main(['{command}', '--help'])\n"
        "except SystemExit: pass\n"
        "assert not {'torch', 'transformers'} & sys.modules.keys()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

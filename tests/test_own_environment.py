"""The example of an environment of one's own, as another package: installed, found, checked, scored, trained on."""

from __future__ import annotations

import importlib
import itertools
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import gymnasium
import pytest
from click.testing import CliRunner
from docs_commands import ROOT, blocks
from score_runs import invoked

from weightgym.cli import docs_pages
from weightgym.cli.main import cli
from weightgym.envs import registry
from weightgym.envs.testing import failed_checks
from weightgym.rewards.contracts import TaskError
from weightgym.trainers.config import load
from weightgym.trainers.grpo import Trainer

EXAMPLE = ROOT / "examples" / "own_environment"
MODULES = ("neuron_gates", "neuron_turns")
TESTS = tuple(f"test_{name}" for name in MODULES)
ANSWERS = [
    "```edits\nb3 = [1, 1, 1, 1, 1, -0.5]\n```",
    "```edits\nb3 = [1,0,0,0,0,0]\nb3[5]=-0.001\n```\n",
    "```edits\nb3[2] = 999.999\n```",
    "```edits\nb3[2] = 1e3\n```",
    "```edits\nb3[2] = __import__('os').getpid()\n```",
    "```edits\n```",
    "sorry",
    "",
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where pip installed the example, on Python's path."""
    folder = tmp_path_factory.mktemp("site")
    copy = tmp_path_factory.mktemp("copy") / "own_environment"  # pip builds in the folder
    copy.mkdir()
    for name in ("pyproject.toml", *(f"{name}.py" for name in MODULES)):
        (copy / name).write_bytes((EXAMPLE / name).read_bytes())
    offline = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", *offline, "--target", str(folder), str(copy)],
                   check=True, timeout=300)  # fmt: skip
    sys.path.insert(0, str(folder))
    registry.installed.cache_clear()
    yield folder
    sys.path.remove(str(folder))
    registry.installed.cache_clear()
    for id in ("mine/NeuronGates-v1", "mine/NeuronTurns-v1"):
        gymnasium.registry.pop(id, None)
    for name in (*MODULES, *TESTS):
        sys.modules.pop(name, None)


@pytest.fixture
def gates(site: Path) -> ModuleType:
    """The example's module."""
    return importlib.import_module("neuron_gates")


@pytest.mark.parametrize("name", TESTS)
def test_they_pass_the_contract_suite(gates: ModuleType, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(EXAMPLE)])  # behind what was installed
    assert failed_checks(importlib.import_module(name).subject) == {}


def test_attempts_have_one_score_everywhere(gates: ModuleType, tmp_path: Path) -> None:
    """Played with feedback, and scored again from the conversation alone."""
    rollouts, again = tmp_path / "rollouts.jsonl", tmp_path / "again.jsonl"
    invoked("rollout", "tiny-writer", "--env", "neuron-turns", "--split", "train", "--samples", 4, "--max-tokens", 64,
            "-o", rollouts)  # fmt: skip
    invoked("score", rollouts, "-o", again, "--diff", "--no-cache")
    scores = [json.loads(line)["score"] for line in again.read_text().splitlines()]
    assert len(scores) == 20
    assert {score["metrics"].get("attempts") for score in scores} >= {3.0}
    assert len({score["reward"] for score in scores}) > 1
    turns, gates_alone = registry.spec("neuron-turns"), registry.spec("neuron-gates")
    assert turns.scorer.partition(":")[0] == gates_alone.scorer.partition(":")[0]  # what the cache looks for changes in


def test_commands_find_it_and_our_pages_leave_it_out(site: Path, tmp_path: Path) -> None:
    assert "neuron-gates" in CliRunner().invoke(cli, ["envs"]).stdout
    assert registry.spec("mine/NeuronGates-v1") is registry.spec("neuron-gates")
    with pytest.raises(TaskError, match="did you mean 'neuron-gates'"):
        registry.spec("neurongates")
    assert "missing the task" in CliRunner().invoke(cli, ["prompt", "neuron-gates"]).stderr
    assert list(docs_pages.stale(ROOT / "docs")) == []


def test_another_profile_is_refused(site: Path) -> None:
    entry = registry.spec("neuron-gates")
    assert entry.checked_profile("gates-v1") == entry.checked_profile(None) == "gates-v1"
    with pytest.raises(TaskError, match="unknown profile 'gates-v2': neuron-gates has gates-v1 alone"):
        entry.checked_profile("gates-v2")
    answer = str(EXAMPLE / "answer.md")
    done = CliRunner().invoke(cli, ["score", answer, "--env", entry.name, "--task", "any", "--profile", "gates-v2"])
    assert done.exit_code == 1
    assert done.stderr == "Error: unknown profile 'gates-v2': neuron-gates has gates-v1 alone\n"


def test_the_environment_the_scorer_and_the_command_have_one_score(gates: ModuleType, tmp_path: Path) -> None:
    entry = registry.spec("neuron-gates")
    pairs = [(split, id, answer) for split in ("train", "test") for id in entry.tasks.ids(split) for answer in ANSWERS]
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"env": entry.name, "task": id, "completion": answer}) + "\n"
                            for _, id, answer in pairs))  # fmt: skip
    done = CliRunner().invoke(cli, ["score", str(rows), "--workers", "2", "--no-cache"], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    scored = [json.loads(line)["score"] for line in (tmp_path / "rows.scored.jsonl").read_text().splitlines()]
    for (split, id, answer), row in zip(pairs, scored, strict=True):
        env = gates.NeuronGates(split=split)
        env.reset(options={"task": id})
        _, reward, *_ = env.step(answer)
        direct = gates.score(entry.tasks.task(id), answer)
        assert (reward, direct.status, direct.metrics) == (row["reward"], row["status"], row["metrics"])
        assert direct.reward == reward
    assert {row["status"] for row in scored} == {"ok", "invalid"}
    assert len({row["reward"] for row in scored}) > 4


def test_rewards_are_those_of_fractions(gates: ModuleType) -> None:
    """Every gate and random neurons, against whole arithmetic."""
    rng = random.Random(0)
    names = [id for split in gates.GATES for id in gates.GATES[split]]
    for round in range(200):
        id = names[round % len(names)]
        texts = [f"{rng.uniform(-2, 2):.3f}" if rng.random() < 0.7 else str(rng.randint(-1, 1)) for _ in range(6)]
        *weights, bias = map(Fraction, texts)
        inputs = list(itertools.product((0, 1), repeat=5))
        said = [sum((w for w, bit in zip(weights, bits, strict=True) if bit), bias) > 0 for bits in inputs]
        wanted = [digit == "1" for digit in gates.SOURCE.task(id).data["table"]]
        on = Fraction(sum(a and b for a, b in zip(said, wanted, strict=True)), sum(wanted))
        off = Fraction(sum(not a and not b for a, b in zip(said, wanted, strict=True)), 32 - sum(wanted))
        score = gates.score(gates.SOURCE.task(id), "```edits\nb3=[" + ",".join(texts) + "]\n```")
        assert score.reward == pytest.approx(max(0.0, float(on + off - 1)), abs=1e-12)


def test_constants_and_the_prompt_s_example_earn_nothing(gates: ModuleType) -> None:
    for id in (id for split in gates.GATES for id in gates.GATES[split]):
        task = gates.SOURCE.task(id)
        (example,) = blocks(task.prompt[0].content + "\n", ("edits",))
        for text in ("b3[5]=5", "b3[5]=-5", "b3[5]=0", example.rstrip()):
            score = gates.score(task, f"```edits\n{text}\n```")
            assert (score.status, score.reward) == ("ok", 0)


def test_sums_are_exact(gates: ModuleType) -> None:
    """In floats, 0.1 + 0.2 - 0.3 is above 0."""
    assert gates.table(gates.read("```edits\nb3=[0.1,0.2,0,0,0,-0.3]\n```")) == "0" * 32


def test_the_page_runs(gates: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """Its Python; tests/test_docs_commands.py runs its commands."""
    (text,) = blocks((ROOT / "docs" / "write-an-environment.md").read_text(), ("python",))
    exec(compile(text, "page", "exec"), {})
    assert capsys.readouterr().out == "ok: reward 1 (on 1, off 1)\n"


@pytest.mark.slow
def test_it_is_learnt(site: Path, tmp_path: Path) -> None:
    flags = ["--output", str(tmp_path / "run"), "--steps", "10", "--evaluation.samples", "2"]
    with Trainer(load(EXAMPLE / "own_environment.toml", flags)) as trainer:
        rewards = [row["reward/mean"] for row in trainer.train() if "reward/mean" in row]
    assert len(rewards) == 10
    assert rewards[0] < 0.05
    assert rewards[-1] > 0.15

"""The solver: it learns, it depends on its seed only, and a killed run ends as an unbroken one."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from weightgym.cli.main import cli
from weightgym.rewards.weight_program.edits import parse_edits
from weightgym.rewards.weight_program.network import PARAMETERS, tensors, zero_weights
from weightgym.rewards.weight_program.write_edits import write_edits
from weightgym.trainers import solve as solving
from weightgym.trainers.evolution import Evolution, centred_ranks, evolve, network, start
from weightgym.trainers.solve import Solver

SMALL = Evolution(pairs=4, episodes=2, max_actions=100)
GAME = "space_invaders"


def last_parameters(config: Evolution, generations: int, threads: int) -> bytes:
    for progress in evolve(GAME, config, start(config), threads=threads):
        if progress.generation == generations:
            return progress.parameters.tobytes()
    raise AssertionError("evolution ended")


def test_threads_do_not_matter_and_the_seed_does() -> None:
    wanted = last_parameters(SMALL, 3, threads=1)
    assert last_parameters(SMALL, 3, threads=3) == wanted
    assert last_parameters(Evolution(pairs=4, episodes=2, max_actions=100, seed=1), 3, threads=1) != wanted


@pytest.mark.parametrize(
    "change",
    [{"pairs": 5}, {"episodes": 3}, {"sigma": 0.2}, {"learning_rate": 0.1}, {"max_actions": 20}, {"waves": 3}],
)
def test_every_option_matters(change: dict[str, int]) -> None:
    config = Evolution(**({"pairs": 4, "episodes": 2, "max_actions": 100} | change))
    assert last_parameters(config, 2, threads=1) != last_parameters(SMALL, 2, threads=1)


def run(solver: Solver, generations: int) -> list[solving.Evaluation]:
    return list(solver.run(generations, threads=2))


def test_a_resumed_run_is_an_unbroken_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solving, "EVERY", 2)
    whole = Solver(GAME, SMALL, tmp_path / "whole.md", resume=False)
    run(whole, 8)
    run(Solver(GAME, SMALL, tmp_path / "broken.md", resume=False), 4)
    with (tmp_path / "broken.md.curve.jsonl").open("a") as curve:
        curve.write('{"generation": 6, "score": 1.0}\n{"generation": 7, "sc')  # killed while it wrote
    again = Solver(GAME, SMALL, tmp_path / "broken.md", resume=True)
    assert again.progress.generation == 4
    run(again, 8)
    assert np.array_equal(again.best, whole.best)
    assert np.array_equal(again.progress.parameters, whole.progress.parameters)
    curves = [(tmp_path / f"{name}.md.curve.jsonl").read_text() for name in ("whole", "broken")]
    assert curves[0] == curves[1]
    assert [json.loads(line)["generation"] for line in curves[0].splitlines()] == [2, 4, 6, 8]


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    run(Solver(GAME, SMALL, tmp_path / "a.md", resume=False), 1)
    with pytest.raises(ValueError, match="is of another run"):
        Solver("breakout", SMALL, tmp_path / "a.md", resume=True)
    with pytest.raises(ValueError, match="is of another run"):
        Solver(GAME, Evolution(pairs=5), tmp_path / "a.md", resume=True)


def test_it_learns_and_the_command_writes_what_it_says(tmp_path: Path) -> None:
    answer = tmp_path / "answer.md"
    command = ["wpb", "solve", f"original/{GAME}", "-o", str(answer), "--generations", "40", "--pairs", "32"]
    result = CliRunner().invoke(cli, command, catch_exceptions=False)
    assert result.exit_code == 0
    evaluations = [json.loads(line) for line in Path(f"{answer}.curve.jsonl").read_text().splitlines()]
    assert evaluations[-1]["best"] > 2 * 2.721  # zero weights
    with Image.open(f"{answer}.curve.png") as picture:
        assert picture.format == "PNG"
        assert len(np.unique(np.asarray(picture.convert("RGB")).reshape(-1, 3), axis=0)) > 10  # lines are drawn
    scored = CliRunner().invoke(cli, ["score", str(answer), "--task", f"original/{GAME}", "--json"])
    assert f"{json.loads(scored.output)['metrics']['raw_score']:.3f} a game" in result.output
    resumed = CliRunner().invoke(cli, [*command, "--resume"], catch_exceptions=False)
    assert resumed.output.splitlines()[-1] == result.output.splitlines()[-1]
    other = CliRunner().invoke(cli, [*command, "--resume", "--seed", "1"])
    assert other.exit_code == 1
    assert "start anew without --resume" in other.output


def test_without_matplotlib_the_answer_is_there_and_the_fix_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    answer = tmp_path / "answer.md"
    command = ["wpb", "solve", f"original/{GAME}", "-o", str(answer), "--generations", "1", "--pairs", "2"]
    result = CliRunner().invoke(cli, command, catch_exceptions=False)
    assert result.exit_code == 0
    assert "pip install 'weightgym[plots]'" in result.output
    assert parse_edits(answer.read_text()).count > 0
    assert not list(tmp_path.glob("*.png"))


def test_the_first_layer_is_smooth_and_the_rest_is_free() -> None:
    config = Evolution(waves=1)
    net = tensors(network(config, start(config).parameters))
    assert np.ptp(net["W1"][0::6], axis=0).max() == 0  # one wave: the same weight all over the board
    assert np.ptp(net["W2"]) > 0


def test_ranks() -> None:
    assert centred_ranks(np.array([3.0, 1.0, 2.0])).tolist() == [0.5, -0.5, 0.0]
    assert centred_ranks(np.array([1.0, 1.0])).tolist() == [0.0, 0.0]
    assert centred_ranks(np.array([1.0, 2.0, 2.0, 3.0])).sum() == pytest.approx(0)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 1, 2, 4]), st.sampled_from([0.0, 0.01, 1.0]))
def test_written_edits_are_the_rounded_weights(seed: int, decimals: int, density: float) -> None:
    rng = np.random.default_rng(seed)
    weights = (rng.normal(size=PARAMETERS) * (rng.random(PARAMETERS) < density)).astype(np.float32)
    read = parse_edits(write_edits(weights, decimals=decimals)).weights
    assert np.array_equal(read, weights.astype(np.float64).round(decimals).astype(np.float32))
    assert not np.signbit(read[read == 0]).any()
    assert np.array_equal(parse_edits(write_edits(zero_weights(), decimals=2)).weights, zero_weights())

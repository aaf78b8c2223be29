"""The solver: it learns, it depends on its seed only, and a killed run ends as an unbroken one."""

from __future__ import annotations

import itertools
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

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
from weightgym.trainers.evolution import Evolution, Progress, centred_ranks, evolve, network, start
from weightgym.trainers.network_gradient import active_inputs, advantages_of, backward, forward, ppo_gradient
from weightgym.trainers.policy_gradient import Learning, PolicyGradient, improve
from weightgym.trainers.policy_gradient import start as start_learning
from weightgym.trainers.solve import Solver

SMALL = Evolution(pairs=4, episodes=2, max_actions=100)
SHORT = PolicyGradient(generations=20, steps=1024, batch=256, max_actions=100)
GAME = "space_invaders"


def last_parameters(config: Evolution | PolicyGradient, generations: int, threads: int) -> bytes:
    progress: Progress | Learning
    if isinstance(config, Evolution):
        following = itertools.islice(evolve(GAME, config, start(config), threads=threads), generations)
        progress = list(following)[-1]
    else:
        learning = improve(GAME, config, start_learning(config), threads=threads)
        progress = list(itertools.islice(learning, generations))[-1]
    assert progress.generation == generations
    return progress.parameters.tobytes()


def test_threads_do_not_matter_and_the_seed_does() -> None:
    wanted = last_parameters(SMALL, 3, threads=1)
    assert last_parameters(SMALL, 3, threads=3) == wanted
    assert last_parameters(Evolution(pairs=4, episodes=2, max_actions=100, seed=1), 3, threads=1) != wanted
    wanted = last_parameters(SHORT, 2, threads=1)
    assert last_parameters(SHORT, 2, threads=3) == wanted
    assert last_parameters(replace(SHORT, seed=1), 2, threads=1) != wanted


@pytest.mark.parametrize(
    "change",
    [{"pairs": 5}, {"episodes": 3}, {"sigma": 0.2}, {"learning_rate": 0.1}, {"max_actions": 20}, {"waves": 3}],
)
def test_every_option_matters(change: dict[str, int]) -> None:
    config = Evolution(**({"pairs": 4, "episodes": 2, "max_actions": 100} | change))
    assert last_parameters(config, 2, threads=1) != last_parameters(SMALL, 2, threads=1)


@pytest.mark.parametrize(
    "change",
    [
        *({"generations": 21}, {"steps": 512}, {"epochs": 2}, {"batch": 512}, {"learning_rate": 0.1}),
        *({"entropy": 0.1}, {"discount": 0.9}, {"trace": 0.9}, {"clip": 0.1}, {"max_actions": 20}),
    ],
)
def test_every_option_of_policy_gradients_matters(change: dict[str, Any]) -> None:
    assert last_parameters(replace(SHORT, **change), 2, threads=1) != last_parameters(SHORT, 2, threads=1)


def run(solver: Solver, generations: int) -> list[solving.Evaluation]:
    return list(solver.run(generations, threads=2))


@pytest.mark.parametrize("config", [SMALL, SHORT])
def test_a_resumed_run_is_an_unbroken_one(
    config: Evolution | PolicyGradient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solving, "EVERY", 2)
    whole = Solver(GAME, config, tmp_path / "whole.md", resume=False)
    run(whole, 8)
    run(Solver(GAME, config, tmp_path / "broken.md", resume=False), 4)
    with (tmp_path / "broken.md.curve.jsonl").open("a") as curve:
        curve.write('{"generation": 6, "score": 1.0}\n{"generation": 7, "sc')  # killed while it wrote
    again = Solver(GAME, config, tmp_path / "broken.md", resume=True)
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
    begin = zero_weights()
    run(Solver(GAME, SHORT, tmp_path / "b.md", resume=False, begin=begin), 1)
    assert Solver(GAME, SHORT, tmp_path / "b.md", resume=True, begin=begin).progress.generation == 1
    with pytest.raises(ValueError, match="is of another run"):
        Solver(GAME, SHORT, tmp_path / "b.md", resume=True)


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


def test_policy_gradients_learn_and_begin_with_an_answer(tmp_path: Path) -> None:
    first, second = tmp_path / "first.md", tmp_path / "second.md"
    command = ["wpb", "solve", f"original/{GAME}", "--method", "gradient", "--max-actions", "200", "--steps", "8192"]
    CliRunner().invoke(cli, [*command, "-o", str(first), "--generations", "40"], catch_exceptions=False)
    learnt = json.loads(Path(f"{first}.curve.jsonl").read_text().splitlines()[-1])
    assert learnt["best"] > 2 * 2.721  # zero weights
    more = [*command, "-o", str(second), "--generations", "1", "--learning-rate", "1e-9", "--begin", str(first)]
    CliRunner().invoke(cli, more, catch_exceptions=False)
    again = json.loads(Path(f"{second}.curve.jsonl").read_text())
    assert again["best"] == pytest.approx(learnt["best"], rel=0.3)
    wrong = CliRunner().invoke(cli, ["wpb", "solve", f"original/{GAME}", "-o", str(second), "--begin", str(first)])
    assert wrong.exit_code == 2
    assert "--begin needs --method gradient" in wrong.output


def objective(weights: Any, inputs: Any, change: Any) -> float:
    out, hidden = np.empty(6, np.float32), np.empty((2, 32), np.float32)
    forward(weights, inputs, *hidden, out)
    return float(change.astype(np.float64) @ out)


def test_the_passes_are_those_of_the_network() -> None:
    rng = np.random.default_rng(0)
    weights = rng.normal(scale=0.3, size=PARAMETERS).astype(np.float32)
    observation = rng.random((10, 10, 6)) < 0.05
    words = [sum(1 << k for k in np.flatnonzero(row).tolist()) for row in observation.reshape(10, 60)]
    starts, inputs = active_inputs(np.array([words], np.uint64))
    assert inputs.tolist() == np.flatnonzero(observation).tolist()
    assert starts.tolist() == [0, inputs.size]
    out, hidden = np.empty(6, np.float32), np.empty((2, 32), np.float32)
    forward(weights, inputs, *hidden, out)
    wide = {name: tensor.astype(np.float64) for name, tensor in tensors(weights).items()}
    h1 = np.tanh(wide["b1"] + wide["W1"][inputs].sum(0))
    h2 = np.tanh(wide["b2"] + h1 @ wide["W2"])
    assert out == pytest.approx(wide["b3"] + h2 @ wide["W3"], abs=1e-4)
    change, gradient = rng.normal(size=6).astype(np.float32), np.zeros(PARAMETERS, np.float32)
    backward(weights, inputs, *hidden, change, gradient)
    direction = rng.normal(size=PARAMETERS).astype(np.float32)
    step = np.float32(1e-3) * direction
    slope = (objective(weights + step, inputs, change) - objective(weights - step, inputs, change)) / 2e-3
    assert float(gradient.astype(np.float64) @ direction) == pytest.approx(slope, rel=0.02)


def test_a_better_action_than_expected_becomes_likelier_and_the_clip_holds() -> None:
    starts, inputs = np.array([0, 1]), np.array([7], np.int32)

    def slope(log_probability: float) -> float:
        actor, critic = np.zeros((2, PARAMETERS), np.float32)
        gradients = np.zeros((2, PARAMETERS), np.float32)
        one = [np.array([value], np.float32) for value in (log_probability, 1.0, 2.0)]
        whole = np.array([0]), np.array([3])
        ppo_gradient(actor, critic, starts, inputs, *whole, *one, np.float32(0.2), np.float32(0), *gradients)
        assert tensors(gradients[1])["b3"].tolist() == [2, 0, 0, 0, 0, 0]
        return float(tensors(gradients[0])["b3"][3])

    assert slope(np.log(1 / 6)) == pytest.approx(5 / 6)
    assert slope(np.log(1 / 12)) == 0


def test_advantages() -> None:
    values = np.array([1, 2, 9, 1, 4], np.float32)  # two episodes: two steps and one, with the values after them
    out = np.empty((2, 3), np.float32)
    rewards, ends, terminal = np.array([0, 1, 0], np.float32), np.array([2, 3]), np.array([True, False])
    advantages_of(values, rewards, ends, terminal, np.float32(0.5), np.float32(1), *out)
    assert out.tolist() == [[0.5 * 2 - 1 + 0.5 * (1 - 2), 1 - 2, 0.5 * 4 - 1], [0.5, 1, 2]]


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

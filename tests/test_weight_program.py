"""WeightProgramBench as its users meet it: tasks, prompts, the scorer, the environment's contract."""

from __future__ import annotations

import ast
import importlib.util
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from played_in import dense_policy
from pydantic import JsonValue

from weightgym.envs import registry
from weightgym.envs.testing import EnvSubject, contract_test
from weightgym.envs.weight_program.env import WeightProgramEnv
from weightgym.envs.weight_program.references import reference_answer
from weightgym.envs.weight_program.tasks import SOURCE, WeightProgramTasks
from weightgym.rewards.contracts import Completion, Score, Task, TaskError
from weightgym.rewards.weight_program import minatar, scorer, simulate
from weightgym.rewards.weight_program.channels import CAPS, CHANNEL_MAPS, channel_masks
from weightgym.rewards.weight_program.edits import parse_edits
from weightgym.rewards.weight_program.games import GAMES
from weightgym.rewards.weight_program.network import PARAMETERS, SHAPES, Weights, tensors, zero_weights
from weightgym.rewards.weight_program.profile import profile
from weightgym.rewards.weight_program.scorer import score

BREAKOUT = (Path(__file__).parents[1] / "examples/answers/breakout.md").read_text()
IDS = SOURCE.ids("test")
ZERO = "```edits\nb1[0] = 0\n```"


def edits_of(weights: Weights) -> str:
    """An answer that programs exactly these weights."""
    statements = [f"{name} = {tensor.astype(float).tolist()!r}" for name, tensor in tensors(weights).items()]
    return "```edits\n" + "\n".join(statements) + "\n```"


def without_seconds(result: Score) -> dict[str, object]:
    return result.model_dump(exclude={"seconds"})


def subject() -> EnvSubject:
    return EnvSubject(
        make=WeightProgramEnv,
        gold=lambda task_id: (BREAKOUT, 0.1) if task_id in IDS else (reference_answer(task_id.split("/")[1]), 0.2),
        floor=0.0,
        flags={"profile": ("wpb-v1-e20", "wpb-v1-e21"), "variants": (False, True)},
        config={"profile": "wpb-v1-e20"},
        gym_id="weightgym/WeightProgram-v1",
        slow_ids=("original/breakout", SOURCE.ids("train")[0]),
        invalid=("```edits\nW1[600, 0] = 1\n```", "```edits\nb1 = __import__('os')\n```", "```edits\nb1[0] = 1"),
    )


test_contract = contract_test(subject)


def test_reward_is_the_clipped_mean_over_the_cap() -> None:
    for task_id in IDS:
        task = SOURCE.task(task_id, prompt=False)
        result = score(task, ZERO, profile="wpb-v1-e64")
        game = task_id.split("/")[1]
        episodes = simulate.simulate(game, zero_weights(), profile("wpb-v1-e64"))
        assert result.status == "ok"
        assert result.metrics["raw_score"] == episodes.scores.sum() / 64
        assert result.metrics["mean_length"] == episodes.lengths.sum() / 64
        assert result.reward == min(max(result.metrics["raw_score"], 0.0), CAPS[game]) / CAPS[game]
        assert (result.profile, result.metrics["episodes"], result.metrics["edits"]) == ("wpb-v1-e64", 64, 1)


@pytest.mark.parametrize(("raw", "reward"), [(-7, 0.0), (0, 0.0), (250, 0.25), (1000, 1.0), (1500, 1.0)])
def test_reward_is_clipped_at_both_ends(monkeypatch: pytest.MonkeyPatch, raw: int, reward: float) -> None:
    episodes = simulate.Episodes(np.full(4, raw, np.int64), np.full(4, 10, np.int32))
    monkeypatch.setattr(scorer, "simulate", lambda *args, **options: episodes)
    result = score(SOURCE.task("original/breakout", prompt=False), ZERO, profile="wpb-v1-e4")
    assert (result.reward, result.metrics["raw_score"]) == (reward, raw)


def test_the_sample_answer_plays_well() -> None:
    result = score(SOURCE.task("original/breakout", prompt=False), BREAKOUT, threads=2)
    assert result.metrics["raw_score"] == 491.472
    assert result.reward == 491.472 / 1000


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(IDS))
def test_how_an_answer_is_written_does_not_move_a_bit(seed: int, task_id: str) -> None:
    task = SOURCE.task(task_id, prompt=False)
    weights = dense_policy(seed)
    plain = edits_of(weights)
    assert np.array_equal(parse_edits(plain).weights, weights)
    wanted = without_seconds(score(task, plain, profile="wpb-v1-e2"))
    message = [{"role": "user", "content": "go"}, {"role": "assistant", "content": plain}]
    rewritings: list[Completion] = [
        message,
        "Earlier try:\n```edits\nW1[0] = 1\n```\nNo, better:\n" + plain + "\nDone.",
        plain.replace("\n", "\r\n"),
        plain.replace("```edits\n", "```edits\n# a comment\n\n"),
    ]
    for rewriting in rewritings:
        assert without_seconds(score(task, rewriting, profile="wpb-v1-e2", threads=3)) == wanted
    on_reference = score(task, plain, profile="wpb-v1-e1", backend="reference")
    assert without_seconds(on_reference) == without_seconds(score(task, plain, profile="wpb-v1-e1"))


def test_invalid_answers_get_the_floor_and_a_reason() -> None:
    task = SOURCE.task("original/asterix", prompt=False)
    for answer, code in (("", "no_block"), ("```edits\nW1 = nan\n```", "bad_value"), ([], "bad_completion")):
        result = score(task, answer)
        assert (result.status, result.reward, result.code, result.profile) == ("invalid", 0.0, code, "wpb-v1")


@pytest.mark.parametrize("completion", [None, 3, b"x", {"role": "assistant", "content": "a"}])
def test_a_caller_s_mistake_is_no_reward(completion: Any) -> None:
    result = score(SOURCE.task("original/asterix", prompt=False), completion)
    assert (result.status, result.reward) == ("error", None)
    assert "a completion is text or a list of messages" in result.reason


def test_an_environment_that_could_not_score_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate, "find_engine", lambda: (None, "no compiler"))
    WeightProgramEnv()  # the reference scores, slowly
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(TaskError, match="MinAtar package is not installed"):
        WeightProgramEnv()


def test_training_tasks_are_the_default() -> None:
    env = WeightProgramEnv(profile="wpb-v1-e1")
    assert {env.reset(seed=seed)[1]["task"] for seed in range(30)} <= set(SOURCE.ids("train"))


def test_a_fault_of_ours_is_no_reward(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **options: object) -> simulate.Episodes:
        raise MemoryError("no room")

    monkeypatch.setattr(scorer, "simulate", broken)
    result = score(SOURCE.task("original/asterix", prompt=False), ZERO)
    assert (result.status, result.reward, result.code) == ("error", None, "grader_error")
    assert "no room" in result.reason


@pytest.mark.parametrize("name", ["wpb-v2", "wpb-v1-e0", "wpb-v1-e1001", "wpb-v1-e064", "wpb-v1-e", "wpb-v1-e٣", ""])
def test_unknown_profiles_are_refused(name: str) -> None:
    with pytest.raises(TaskError, match=r"use wpb-v1 or wpb-published, or .*-eN with N from 1 to 1000"):
        score(SOURCE.task("original/asterix", prompt=False), ZERO, profile=name)
    with pytest.raises(TaskError, match="unknown profile"):
        WeightProgramEnv(profile=name)


@pytest.mark.parametrize(
    "change", [{"env": "golf"}, {"data": {}}, {"data": {"game": "asterix", "source": "original", "cap": 10}}]
)
def test_foreign_tasks_are_refused(change: dict[str, object]) -> None:
    row = SOURCE.task("original/asterix", prompt=False).model_dump(exclude={"hash"}) | change
    with pytest.raises(TaskError, match="want env 'weight-program'"):
        score(Task.model_validate(row), ZERO)


def test_tasks() -> None:
    games = ("asterix", "breakout", "freeway", "seaquest", "space_invaders")
    assert tuple(f"original/{game}" for game in games) == IDS
    assert SOURCE.ids("train") == tuple(f"builtin/{game}" for game in GAMES)
    with pytest.raises(TaskError, match="did you mean 'original/breakout'"):
        SOURCE.task("original/brekout")
    for task_id in IDS:
        task = SOURCE.task(task_id)
        assert task.system_prompt.startswith("You directly program neural-network weights.")
        assert task.data["cap"] == (100 if task_id.endswith("freeway") else 1000)
        assert SOURCE.task(task_id, prompt=False).data == task.data


@pytest.mark.parametrize("task_id", IDS)
def test_prompts_say_everything(task_id: str) -> None:
    game = task_id.split("/")[1]
    prompt = SOURCE.task(task_id).prompt[0].content
    installed = find_spec("minatar")
    assert installed is not None
    assert installed.origin is not None
    assert (Path(installed.origin).parent / "environments" / f"{game}.py").read_text().strip() in prompt
    for native in CHANNEL_MAPS[game]:
        assert native in prompt
    for wanted in ("600x32", "20,486", "1,000 episodes", "10,000 actions", f"0...{CAPS[game]}", "```edits", "sticky"):
        assert wanted in prompt
    assert "$" not in prompt


@pytest.mark.parametrize("task_id", IDS)
def test_the_prompt_s_example_is_valid_and_does_what_it_says(task_id: str) -> None:
    prompt = SOURCE.task(task_id).prompt[0].content
    example = re.findall(r"```edits\n.*?```", prompt, re.DOTALL)[-1]
    net = tensors(parse_edits("Like so:\n" + example).weights)
    assert net["W1"][564, 0] == 4.0  # channel 0 of row 9, column 4
    assert np.flatnonzero(net["W1"][:, 1]).tolist() == [540 + 6 * column for column in range(10)]
    for line in example.splitlines()[1:-1]:
        ast.parse(line)  # the language is a part of Python's


def test_channel_maps_cover_minatar_s_channels() -> None:
    for game, channels in CHANNEL_MAPS.items():
        env = minatar.environment(game, sticky=0.1)
        assert list(env.env.channels) == list(channels)
        assert len(channel_masks(game)) == env.n_channels


def test_prompts_need_the_right_minatar(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(TaskError, match=r"not installed: pip install --no-deps MinAtar==1\.0\.15"):
        SOURCE.task("original/breakout")
    assert SOURCE.task("original/breakout", prompt=False).prompt == ()
    monkeypatch.undo()
    monkeypatch.setitem(minatar.SOURCE_SHA256, "breakout", "0" * 64)
    with pytest.raises(TaskError, match=r"breakout\.py is not that of version 1\.0\.15"):
        SOURCE.task("original/breakout")


def test_the_splits_are_disjoint_by_hash_and_by_source() -> None:
    """No text of a game, and no task, stands on both sides, variants included."""
    every = WeightProgramTasks(with_variants=True)
    train = [every.task(id) for id in every.ids("train")]
    test = [every.task(id) for id in every.ids("test")]

    def sources(tasks: list[Task]) -> set[JsonValue]:
        return {task.data.get("sha256") or task.data.get("minatar_sha256") for task in tasks}

    assert len({task.hash for task in train + test}) == len(train) + len(test)
    assert len(sources(train) | sources(test)) == len(train) + len(test)
    assert {task.split for task in train} == {"train"}
    assert {task.split for task in test} == {"test"}


def test_network_layout() -> None:
    assert PARAMETERS == 20_486
    weights = np.arange(PARAMETERS, dtype=np.float32)
    net = tensors(weights)
    assert {name: tensor.shape for name, tensor in net.items()} == SHAPES
    assert np.array_equal(np.concatenate([tensor.ravel() for tensor in net.values()]), weights)
    net["b3"][5] = -1
    assert weights[-1] == -1


def test_env_by_name() -> None:
    env = gymnasium.make("weightgym/WeightProgram-v1", profile="wpb-v1-e10")
    prompt, info = env.reset(seed=0, options={"task": "original/freeway"})
    assert "Freeway" in prompt
    assert [message["role"] for message in info["messages"]] == ["system", "user"]
    observation, reward, terminated, truncated, info = env.step(ZERO)
    assert (terminated, truncated) == (True, False)
    assert reward == info["score"].reward
    assert observation.startswith("ok: reward ")
    assert registry.spec("weight-program").gym_id == "weightgym/WeightProgram-v1"

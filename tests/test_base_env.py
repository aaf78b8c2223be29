"""Task choice, seeding and the single-turn step: what every environment of ours inherits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import gymnasium
import pytest
import toy_env
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_env import ToyEnv

from weightgym.envs import registry
from weightgym.envs.base import TaskEnv, pick_index, reward_of, verdict
from weightgym.rewards.contracts import GraderError, Score, Task, TaskError


@pytest.fixture(scope="module", autouse=True)
def _registered_toy() -> Iterator[None]:
    with registry.override(toy_env.TOY):
        yield


def ids(env: TaskEnv, count: int, **first: Any) -> list[str]:
    """The tasks of some resets."""
    return [env.reset(**(first if number == 0 else {}))[1]["task"] for number in range(count)]


# Seeds


@pytest.mark.parametrize("seed", [0, 1, 123, 2**63])
def test_seed_gives_one_sequence(seed: int) -> None:
    used = ToyEnv()
    ids(used, 5, seed=99)
    assert ids(used, 40, seed=seed) == ids(ToyEnv(), 40, seed=seed) == ids(used, 40, seed=seed)


def test_sequences_of_many_seeds_differ_and_visit_everything() -> None:
    env = ToyEnv()
    sequences = {tuple(ids(env, 24, seed=seed)) for seed in range(50)}
    assert len(sequences) == 50
    assert all(set(sequence) == set(toy_env.ROWS["train"]) for sequence in sequences)


def test_choice_is_even_along_and_across_seeds() -> None:
    along = Counter(pick_index("e", "train", 0, index, 10) for index in range(5000))
    across = Counter(pick_index("e", "train", seed, 0, 10) for seed in range(5000))
    for counts in (along, across):
        assert sorted(counts) == list(range(10))
        assert max(counts.values()) - min(counts.values()) < 200  # 500 each; 4 standard deviations apart at most


def test_neighbouring_seeds_splits_and_envs_share_nothing_but_chance() -> None:
    def run(env: str, split: str, seed: int, start: int = 0) -> list[int]:
        return [pick_index(env, split, seed, index, 1000) for index in range(start, start + 500)]

    base = run("e", "train", 7)
    for other in (run("e", "train", 8), run("e", "train", 6, 1), run("e", "test", 7), run("f", "train", 7)):
        assert sum(a == b for a, b in zip(base, other, strict=True)) < 8
        assert len(set(base) & set(other)) < 250  # chance: about 155


def test_chosen_task_takes_nothing_from_the_sequence() -> None:
    env = ToyEnv()
    plain = ids(env, 10, seed=4)
    env.reset(seed=4)
    picked = [plain[0]]
    for _ in range(9):
        assert ids(env, 1, options={"task": "large"}) == ["large"]
        picked += ids(env, 1)
    assert picked == plain


@pytest.mark.parametrize("before", [None, 0, 3])
def test_seed_counts_beside_a_chosen_task(before: int | None) -> None:
    env = ToyEnv()
    if before is not None:
        ids(env, 3, seed=before)
    env.reset(seed=8, options={"task": "small"})
    assert ids(env, 10) == ids(ToyEnv(), 10, seed=8)


def test_unseeded_instances_differ() -> None:
    assert len({tuple(ids(ToyEnv(), 40)) for _ in range(4)}) == 4


def test_none_and_empty_options_choose_nothing() -> None:
    wanted = ids(ToyEnv(), 1, seed=1)
    for options in (None, {}, {"task": None}):
        assert ids(ToyEnv(), 1, seed=1, options=options) == wanted


# Refusals


@pytest.mark.parametrize(("options", "error", "text"), [
    ({"task": "smal"}, TaskError, "smal"),
    ({"task": 5}, TaskError, "reset option 'task' is a task id (text), not 5"),
    ({"task": ["small"]}, TaskError, "not ['small']"),
    ({"task": ""}, TaskError, "unknown task ''"),
    ({"tsak": "small"}, ValueError, "unknown reset option 'tsak': the only one is 'task'"),
    ({"task": "small", "seed": 3}, ValueError, "unknown reset option 'seed'"),
    ({3: "small", "b": 1}, ValueError, "unknown reset option"),
])  # fmt: skip
def test_refused_reset_changes_nothing(options: dict[Any, Any], error: type[Exception], text: str) -> None:
    env, twin = ToyEnv(), ToyEnv()
    for instance in (env, twin):
        instance.reset(seed=5)
    before = env.np_random.bit_generator.state
    with pytest.raises(error) as caught:
        env.reset(seed=77, options=options)
    assert text in str(caught.value)
    assert env.np_random.bit_generator.state == before
    assert env.step("answer: 3")[:2] == twin.step("answer: 3")[:2]  # the episode goes on
    assert ids(env, 10) == ids(twin, 10)


@pytest.mark.parametrize("seed", [-1, 1.5, "1"])
def test_bad_seed_is_refused_and_changes_nothing(seed: Any) -> None:
    env, twin = ToyEnv(), ToyEnv()
    ids(env, 2, seed=5)
    ids(twin, 2, seed=5)
    with pytest.raises(gymnasium.error.Error):
        env.reset(seed=seed)
    assert ids(env, 10) == ids(twin, 10)


@pytest.mark.parametrize("split", ["dev", "", None, "Train"])
def test_unknown_split_is_refused_at_once(split: Any) -> None:
    with pytest.raises(ValueError, match=r"unknown split .*: use one of train, test"):
        ToyEnv(split=split)


def test_unknown_name_is_refused_at_once() -> None:
    with pytest.raises(TaskError, match="did you mean 'toy'"):
        TaskEnv("toyy", split="train")


def test_empty_split_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(toy_env.SOURCE.rows, "test", {})
    with pytest.raises(TaskError, match="toy: split 'test' has no tasks"):
        ToyEnv(split="test").reset(seed=0)


def test_profile_defaults_to_the_registered_one_and_empty_is_not_default() -> None:
    assert TaskEnv("toy", split="train").profile == "toy-v1"
    assert TaskEnv("toy", split="train", profile="toy-strict-v1").profile == "toy-strict-v1"
    assert TaskEnv("toy", split="train", profile="").profile == ""


# Steps


def test_prompt_info_and_score_of_an_episode() -> None:
    env = ToyEnv(split="test")
    observation, info = env.reset(options={"task": "odd"})
    row = toy_env.SOURCE.task("odd")
    assert observation == row.prompt[0].content
    assert info == {"task": "odd", "task_hash": row.hash, "messages": row.messages, "tools": []}
    said, reward, terminated, truncated, info = env.step("answer: 7")
    assert (said, reward, terminated, truncated) == ("ok: reward 1 (distance 0, tolerance 10)", 1.0, True, False)
    assert info["score"] == toy_env.score(row, "answer: 7", profile="toy-v1")
    assert info["task_hash"] == row.hash


@given(st.text(st.characters(), max_size=40))
@settings(max_examples=200)
def test_any_text_ends_the_episode_as_the_scorer_says(text: str) -> None:
    env = ToyEnv()
    _, info = env.reset(seed=0)
    observation, reward, terminated, truncated, last = env.step(text)
    assert observation in env.observation_space
    assert last["score"] == toy_env.score(toy_env.SOURCE.task(info["task"]), text)
    assert (reward, terminated, truncated) == (last["score"].reward, True, False)


def test_message_is_scored_by_its_content() -> None:
    env = ToyEnv()
    for content in ("answer: 3", [{"type": "text", "text": "answer: "}, {"type": "text", "text": "3"}]):
        env.reset(options={"task": "small"})
        assert env.step({"role": "assistant", "content": content})[1] == 1.0
    env.reset(options={"task": "small"})
    assert env.step({"role": "user", "content": "answer: 3"})[1] == 0.0


@pytest.mark.parametrize("action", [None, 5, b"answer: 3", ["answer: 3"], [{"role": "assistant", "content": "x"}]])
def test_what_no_policy_wrote_raises_and_keeps_the_episode(action: Any) -> None:
    env = ToyEnv()
    env.reset(options={"task": "small"})
    with pytest.raises(TypeError, match="an action is the assistant's text or message, not "):
        env.step(action)
    assert env.step("answer: 3")[1] == 1.0


def test_step_without_an_episode_raises() -> None:
    env = ToyEnv()
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"call reset\(\) first"):
            env.step("answer: 3")
        env.reset(options={"task": "small"})
        env.step("answer: 3")


# Faults of ours


@pytest.mark.parametrize(("fault", "error", "text"), [
    (Score(status="error", reward=None, reason="grader_error: disk full"), GraderError, "grader_error: disk full"),
    (Score(status="timeout", reward=None, reason="wall_limit: 4 s"), GraderError, "timeout: wall_limit: 4 s"),
    (TaskError("row is torn"), TaskError, "row is torn"),
    (ZeroDivisionError("bug"), ZeroDivisionError, "bug"),
])  # fmt: skip
def test_fault_raises_and_the_next_episode_works(
    fault: Score | Exception, error: type[Exception], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(task: Task, completion: Any, *, profile: str = "") -> Score:
        if isinstance(fault, Exception):
            raise fault
        return fault

    env = ToyEnv()
    env.reset(options={"task": "small"})
    with monkeypatch.context() as patch:
        patch.setattr(toy_env, "score", failing)
        with pytest.raises(error) as caught:
            env.step("answer: 3")
    assert text in str(caught.value)
    with pytest.raises(RuntimeError, match="call reset"):
        env.step("answer: 3")  # the answer was handed in
    env.reset(options={"task": "small"})
    assert env.step("answer: 3")[1] == 1.0


def test_verdict_is_one_line_for_every_status() -> None:
    ok = Score(status="ok", reward=0.25, metrics={"hits": 3.0, "loss": 1e-9})
    invalid = Score(status="invalid", reward=-9.0, reason="no_block: no edits block")
    fault = Score(status="error", reward=None, reason="grader_error: bug")
    assert verdict(ok) == "ok: reward 0.25 (hits 3, loss 1e-09)"
    assert verdict(Score(status="ok", reward=1.0)) == "ok: reward 1"
    assert verdict(invalid) == "invalid: reward -9 (no_block: no edits block)"
    assert verdict(fault) == "error: no reward (grader_error: bug)"
    assert (reward_of(ok), reward_of(invalid)) == (0.25, -9.0)
    with pytest.raises(GraderError, match="error: grader_error: bug"):
        reward_of(fault)

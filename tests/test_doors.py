"""One answer has the same bits through every door: command, environment, rollouts, training, TRL and files.

The door of verifiers is in ``test_hub_benchmarks.py``, in an environment of its own.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import golf_answers
import golf_policy
import pytest
import torch
import wpb_known
import wsp_sets
from digits_runs import trained
from doors import DOORS, Case
from score_runs import invoked, without_times
from wsp_policy import written
from wsp_shipped import shipped

from weightgym.envs import registry
from weightgym.rewards.batch_worker import score_one
from weightgym.rewards.contracts import Score
from weightgym.rollouts.store import read as read_rollouts
from weightgym.trainers.config import check

pytestmark = pytest.mark.slow

ENVS = ("weight-program", "golf", "wsp-bench")
#: Episodes of WSP-Bench: family of the instance, and who plays. First those that cost next to nothing.
PLAYED = (("audit", "oracle"), ("audit", "budget"), ("audit", "no-op"), ("fact", "oracle"))


@functools.cache
def played(family: Any, agent: str) -> tuple[Case, Score]:
    """``weightgym wsp play``: the conversation, and the score that it prints."""
    with TemporaryDirectory() as folder:
        talk = Path(folder) / "talk.jsonl"
        score = invoked("wsp", "play", shipped(family), "--agent", agent, "-o", talk, "--json")
        row = json.loads(talk.read_text())
    return Case(row["env"], "wsp-v1", row["task"], row["completion"]), Score.model_validate_json(score)


@functools.cache
def cases(env: str) -> tuple[Case, ...]:
    """Good ones, mediocre ones, and some that are worth the floor."""
    if env == "weight-program":
        return tuple(Case(env, wpb_known.PROFILE, known.task, known.text) for known in wpb_known.KNOWN)
    if env == "golf":
        texts = (golf_answers.GOOD, golf_answers.POOR, golf_answers.BROKEN, golf_answers.ILLEGAL)
        return tuple(Case(env, golf_answers.PROFILE, "lang/1", text) for text in texts)
    every = list(range(wsp_sets.ROWS))
    blown_up = wsp_sets.call("scale", parameter="model.norm.weight", axis="rows", indices=every, factor=3e38)
    broken = [wsp_sets.said(blown_up), wsp_sets.said(wsp_sets.call("submit"))]
    return (*(played(*one)[0] for one in PLAYED), Case(env, "wsp-v1", shipped("fact"), broken))


@functools.cache
def scores(env: str) -> tuple[Score, ...]:
    """What the scorer says of them."""
    torch.set_num_threads(1)
    entry = registry.spec(env)
    return tuple(
        score_one(entry.score, entry.tasks.task(one.task, prompt=False), one.completion, profile=one.profile)
        for one in cases(env)
    )


def bits(rewards: Iterable[Any]) -> list[str]:
    return [float(reward).hex() for reward in rewards]


@pytest.mark.parametrize("env", ENVS)
@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_an_answer_has_the_same_bits_through_every_door(door: Any, env: str, tmp_path: Path) -> None:
    assert bits(door(cases(env), tmp_path)) == bits(score.reward for score in scores(env))


@pytest.mark.parametrize("env", ENVS)
def test_the_answers_are_good_mediocre_and_invalid(env: str) -> None:
    """Equal bits would say little otherwise."""
    valid = {score.reward for score in scores(env) if score.status == "ok" and score.reward is not None}
    floor = registry.spec(env).floor
    assert {score.reward for score in scores(env) if score.status == "invalid"} == {floor}
    assert len(valid - {floor}) > 1


def test_weight_programs_have_the_rewards_that_they_have_everywhere() -> None:
    wanted = [known.reward for known in wpb_known.KNOWN]
    assert bits(score.reward for score in scores("weight-program")) == bits(wanted)


def test_an_episode_that_was_played_has_the_score_of_its_conversation() -> None:
    shown = [played(*one)[1] for one in PLAYED]
    assert [without_times(one) for one in shown] == [without_times(one) for one in scores("wsp-bench")[: len(shown)]]


@pytest.mark.parametrize("env", ENVS)
def test_a_trainer_trains_on_the_same_bits(env: str, tmp_path: Path) -> None:
    """The policy's tokens are whole answers, in WSP-Bench whole messages; each is drawn at least once."""
    (task, profile), *_ = [(one.task, one.profile) for one in cases(env)]
    wanted = {score.reward for score, one in zip(scores(env), cases(env), strict=True) if one.task == task}
    messages = [message for one in cases(env) if one.task == task for message in one.messages]
    texts = dict.fromkeys(written(one) if "tool_calls" in one else one["content"] for one in messages)
    fields: dict[str, Any] = {
        "model": str(golf_policy.save(tmp_path / "model", [*texts])),
        "output": tmp_path / "run",
        "environments": [{"env": env, "tasks": [task], "profile": profile}],
        "rollout": {"groups": 1, "group_size": 24, "max_tokens": 1},
        "limits": {"truncated": 1.0, "zero_spread": 1.0},
        "steps": 1,
    }
    trained(check(fields, "test"))
    rollouts = tmp_path / "run" / "rollouts.jsonl"
    assert {one.score.reward for one in read_rollouts(rollouts)} == wanted
    invoked("score", rollouts, "--diff", "--no-cache", "-o", tmp_path / "again.jsonl", "--profile", profile)

"""Everything that is registered, through Gymnasium's own doors; and the two example agents.

Whole episodes in vectors, also in processes, are the contract suite's: see ``weightgym.envs.testing``.
"""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import gymnasium
import pytest

from weightgym.envs import registry
from weightgym.rewards.contracts import Split

EXAMPLES = Path(__file__).parents[1] / "examples"
SPECS = pytest.mark.parametrize("entry", registry.specs(), ids=lambda entry: entry.name)
#: Whose tasks need nothing but the package. WSP-Bench needs its sets: test_wsp_env.py runs the contract suite on one.
READY = pytest.mark.parametrize(
    "entry", [entry for entry in registry.specs() if entry.name != "wsp-bench"], ids=lambda entry: entry.name
)
SPLITS = pytest.mark.parametrize("split", get_args(Split))


def start(env: Any, **reset: Any) -> tuple[Any, ...]:
    """What an environment says first, and then it is closed."""
    try:
        return env.reset(**reset)  # type: ignore[no-any-return]
    finally:
        env.close()


@SPECS
def test_the_registered_specification_is_data(entry: registry.EnvSpec) -> None:
    spec = gymnasium.spec(entry.gym_id)
    assert spec.entry_point == entry.env  # a text: nothing is imported by looking at it
    for same in (pickle.loads(pickle.dumps(spec)), copy.deepcopy(spec)):
        assert same == spec


@SPLITS
@READY
def test_a_pickled_specification_makes_the_same_environment(entry: registry.EnvSpec, split: Split) -> None:
    env = gymnasium.make(entry.gym_id, split=split)
    spec = pickle.loads(pickle.dumps(env.spec))
    assert spec == env.spec
    assert spec.kwargs == {"split": split}
    first = start(env, seed=3)
    assert start(gymnasium.make(spec), seed=3) == first
    assert first[1]["task"] in entry.tasks.ids(split)
    assert env.observation_space.contains(first[0])


@READY
def test_lanes_of_a_vector_are_the_environment(entry: registry.EnvSpec) -> None:
    observations, infos = start(gymnasium.make_vec(entry.gym_id, num_envs=3, vectorization_mode="sync"), seed=11)
    singles = [start(gymnasium.make(entry.gym_id), seed=11 + lane) for lane in range(3)]
    assert list(observations) == [observation for observation, _ in singles]
    assert list(infos["task_hash"]) == [info["task_hash"] for _, info in singles]
    assert [list(messages) for messages in infos["messages"]] == [info["messages"] for _, info in singles]


def run(name: str, *arguments: str) -> list[str]:
    """The lines that an example prints; a warning ends it."""
    command = [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def test_the_random_agent() -> None:
    *lines, last = run("gym_random.py", "--steps", "3", "--lanes", "2")
    assert len(lines) == 3 * 2
    rewards = []
    for line in lines:
        found = re.fullmatch(r"builtin/\w+ +ok +reward ([0-9.]+)", line)
        assert found, line  # random, but always valid
        rewards.append(float(found[1]))
    assert last.startswith("mean reward ")
    assert float(last.split()[-1]) == pytest.approx(sum(rewards) / len(rewards), abs=1e-3)
    assert run("gym_random.py", "--steps", "3", "--lanes", "2") == [*lines, last]


def test_the_scripted_agent() -> None:
    (line,) = run("gym_scripted.py", "builtin/deep_drill")
    found = re.fullmatch(r"builtin/deep_drill +action ([0-5]): reward ([0-9.]+)", line)
    assert found, line
    env = gymnasium.make("weightgym/WeightProgram-v1", profile="wpb-v1-e64")
    env.reset(options={"task": "builtin/deep_drill"})
    _, reward, *_ = env.step(f"```edits\nb3[{found[1]}] = 1\n```")
    assert float(reward) == pytest.approx(float(found[2]), abs=1e-4)
    assert float(reward) > 0.05
    env.close()

"""The environment is a good citizen of Gymnasium."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec as GymnasiumSpec
from gymnasium.utils.env_checker import check_env

from weightgym.envs.testing.expect import expect_equal, fail
from weightgym.envs.testing.harness import Harness, TextEnv, Trace
from weightgym.envs.testing.subject import Episode
from weightgym.rewards.contracts import Score


def target(h: Harness) -> str | GymnasiumSpec:
    """What ``gymnasium.make`` takes: the id, or a specification around ``make``."""
    return h.subject.gym_id or GymnasiumSpec("weightgym-contract/Subject-v0", entry_point=h.subject.make)


def passes_gymnasium_checker(h: Harness) -> None:
    """``gymnasium.utils.env_checker.check_env`` has nothing to say, not even a warning. Protects every user's tooling.

    The checker compares two infos with ``==``; the clock in ``Score.seconds`` is stopped for it.
    """
    env = gymnasium.make(target(h), **h.config()).unwrapped
    try:
        _stop_clock(env)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_env(env)
    except (Exception, Warning) as error:
        fail("gymnasium.utils.env_checker.check_env", wanted="no word", seen=f"{type(error).__name__}: {error}")
    finally:
        env.close()


def gymnasium_make_is_make(h: Harness) -> None:
    """``gymnasium.make`` gives the environment that ``make`` gives, through its default wrappers, without a warning.
    Protects from a registration with other defaults.
    """
    for id in h.slow_ids[:1]:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                seen = _play(h, gymnasium.make(target(h), **h.config(h.split_of[id])), h.gold(id), id)
            except (Exception, Warning) as error:
                fail("gymnasium.make", wanted="no error and no warning", seen=f"{type(error).__name__}: {error}")
        expect_equal(f"gold episode of task {id!r} by gymnasium.make", wanted=h.gold_trace(id), seen=seen)


def spec_survives_pickling(h: Harness) -> None:
    """``env.spec`` pickles and copies, and makes the same environment again. Protects workers in other processes, which
    get the specification and nothing else.
    """
    for id in h.slow_ids[:1]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are gymnasium_make_is_make's business
            env = gymnasium.make(target(h), **h.config(h.split_of[id]))
            wanted = _play(h, env, "", id)
            try:
                copies = [pickle.loads(pickle.dumps(env.spec)), copy.deepcopy(env.spec)]
            except Exception as error:
                fail("pickling env.spec", wanted="no error", seen=f"{type(error).__name__}: {error}")
            for spec in copies:
                expect_equal("env.spec after a copy", wanted=env.spec, seen=spec)
                seen = _play(h, gymnasium.make(spec), "", id)
                expect_equal("an episode by the copied spec", wanted=wanted, seen=seen)


def _play(h: Harness, env: TextEnv, episode: Episode, id: str) -> Trace:
    """One episode, and the environment is closed."""
    try:
        return h.play(env, episode, id)
    finally:
        env.close()


def _stop_clock(env: TextEnv) -> None:
    step = env.step

    def timeless_step(action: Any) -> Any:
        *rest, info = step(action)
        score = info.get("score")
        stopped = (
            {"score": score.model_copy(update={"seconds": 0.0, "timings": {}})} if isinstance(score, Score) else {}
        )
        return *rest, info | stopped

    # On the instance: a wrapper would be warned about.
    env.step = timeless_step  # type: ignore[method-assign]

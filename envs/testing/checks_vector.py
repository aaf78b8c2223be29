"""Vector environments: each lane is the single environment."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from itertools import chain, islice, repeat
from typing import Any

import gymnasium

from weightgym.envs.base import Action
from weightgym.envs.testing.checks_gymnasium import target
from weightgym.envs.testing.expect import expect_equal, fail
from weightgym.envs.testing.harness import Harness, TextEnv, actions_of

SEED = 7
_TIMEOUT_S = 300.0  # a hung worker must fail the check, not hang it

Script = list[Action]


def sync_vector_is_single(h: Harness) -> None:
    """``make_vec`` in this process: same observations, rewards and infos, through an automatic reset. Protects from
    state that the lanes share and from spaces that can't be batched.
    """
    _expect_lanes_single(h, "sync", {})


def async_vector_is_single(h: Harness) -> None:
    """``make_vec`` with one process a lane: the same again. Protects from results that hang on the process.

    Texts have no fixed size, so they go through pipes: ``vector_kwargs={"shared_memory": False}``.
    """
    _expect_lanes_single(h, "async", {"shared_memory": False})


def _expect_lanes_single(h: Harness, mode: str, vector_kwargs: dict[str, Any]) -> None:
    for id in h.slow_ids[:1]:
        config = h.config(h.split_of[id])
        # Two episodes a lane and the reset between them; lane 0 begins with the good one.
        length = 2 * h.max_turns + 1
        scripts = [list(islice(chain(actions_of(episode), repeat("")), length)) for episode in (h.gold(id), "garbage")]
        # Warnings are gymnasium_make_is_make's business. Here they would hide a worker's own error.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                seen = _lanes(h, mode, vector_kwargs, config, id, scripts)
            except Exception as error:
                fail(f"the {mode} vector environment", wanted="no error", seen=f"{type(error).__name__}: {error}")
            for lane, script in enumerate(scripts):
                # One after the other: lanes that share state must not look like singles that share it.
                single = gymnasium.make(target(h), **config)
                try:
                    wanted = _single(single, SEED + lane, id, script)
                finally:
                    single.close()
                expect_equal(f"lane {lane} of the {mode} vector environment", wanted=wanted, seen=seen[lane])


def _lanes(
    h: Harness, mode: str, vector_kwargs: dict[str, Any], config: dict[str, Any], id: str, scripts: list[Script]
) -> list[list[Any]]:
    """What each lane of a vector environment gives."""
    lanes = range(len(scripts))
    vec: Any = gymnasium.make_vec(
        target(h), num_envs=len(scripts), vectorization_mode=mode, vector_kwargs=vector_kwargs, **config
    )
    finished = False
    try:
        observations, infos = _reset(vec, {"task": id})
        seen: list[list[Any]] = [[(observations[lane], _lane_of(infos, lane))] for lane in lanes]
        for actions in zip(*scripts, strict=True):
            observations, *arrays, infos = _step(vec, actions)
            for lane in lanes:
                seen[lane].append((observations[lane], *(array[lane] for array in arrays), _lane_of(infos, lane)))
        finished = True
    finally:
        vec.close(**({} if finished or mode == "sync" else {"terminate": True}))
    return seen


def _reset(vec: Any, options: dict[str, Any]) -> Any:
    if not hasattr(vec, "reset_async"):
        return vec.reset(seed=SEED, options=options)
    vec.reset_async(seed=SEED, options=options)
    return vec.reset_wait(timeout=_TIMEOUT_S)


def _step(vec: Any, actions: tuple[Action, ...]) -> Any:
    if not hasattr(vec, "step_async"):
        return vec.step(actions)
    vec.step_async(actions)
    return vec.step_wait(timeout=_TIMEOUT_S)


def _single(env: TextEnv, seed: int, id: str, script: Script) -> list[Any]:
    """One environment driven as a vector drives its lanes: the step after an end is a reset, its action is unused."""
    seen: list[Any] = [env.reset(seed=seed, options={"task": id})]
    ended = False
    for action in script:
        if ended:
            observation, info = env.reset()
            result: tuple[Any, ...] = (observation, 0.0, False, False, info)
        else:
            result = env.step(action)
        ended = bool(result[2] or result[3])
        seen.append(result)
    return seen


def _lane_of(infos: Mapping[str, Any], lane: int) -> dict[str, Any]:
    """The info of one lane, out of the arrays that a vector environment makes of the infos."""
    info: dict[str, Any] = {}
    for key, value in infos.items():
        if f"_{key}" in infos and infos[f"_{key}"][lane]:
            info[key] = _lane_of(value, lane) if isinstance(value, Mapping) else value[lane]
    return info

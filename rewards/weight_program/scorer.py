"""The one scorer of WeightProgramBench."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from weightgym.rewards.contracts import Completion, ModelError, Score, Task, TaskError, completion_text
from weightgym.rewards.weight_program import builtin
from weightgym.rewards.weight_program.channels import CAPS
from weightgym.rewards.weight_program.edits import parse_edits
from weightgym.rewards.weight_program.profile import profile as find_profile
from weightgym.rewards.weight_program.simulate import Backend, simulate

#: The reward of an answer that can't be read.
FLOOR = 0.0


def score(
    task: Task, completion: Completion, *, profile: str = "wpb-v1", threads: int = 1, backend: Backend = "auto"
) -> Score:
    """Score one answer: ``reward = clip(mean score, 0, cap) / cap`` over the profile's episodes.

    Metrics: ``raw_score`` (mean score an episode, not clipped), ``mean_length`` (actions an episode), ``cap``,
    ``edits`` (statements), ``episodes``. The result has the same bits for any number of threads, on any machine.

    Raises:
        TaskError: the task's data is not of this benchmark, or there is no such profile.
    """
    started = time.perf_counter()
    rules = find_profile(profile)
    game, cap = _read_task(task)
    try:
        edits = parse_edits(completion_text(completion))
        episodes = simulate(game, edits.weights, rules, threads=threads, backend=backend)
    except ModelError as error:
        seconds = time.perf_counter() - started
        return Score(status="invalid", reward=FLOOR, reason=str(error), profile=profile, seconds=seconds)
    except Exception as error:
        return Score.fault(error, profile=profile, seconds=time.perf_counter() - started)
    raw_score = int(episodes.scores.sum()) / rules.episodes
    return Score(
        status="ok",
        reward=float(np.clip(raw_score, 0, cap)) / cap,
        metrics={
            "raw_score": raw_score,
            "mean_length": int(episodes.lengths.sum()) / rules.episodes,
            "cap": float(cap),
            "edits": float(edits.count),
            "episodes": float(rules.episodes),
        },
        profile=profile,
        seconds=time.perf_counter() - started,
    )


def _read_task(task: Task) -> tuple[str, int]:
    """Game and cap."""
    data: dict[str, Any] = task.data
    game, source, cap = data.get("game"), data.get("source"), data.get("cap")
    caps = CAPS if source == "original" else builtin.caps() if source == "builtin" else {}
    if task.env != "weight-program" or not isinstance(game, str) or game not in caps or caps[game] != cap:
        raise TaskError(
            f"task {task.id!r} of {task.env!r}: want env 'weight-program' and data with source 'original' or "
            f"'builtin', a game of that source and its cap; got source {source!r}, game {game!r}, cap {cap!r}"
        )
    return game, caps[game]

"""The one scorer of WeightProgramBench."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

from weightgym.rewards.contracts import Completion, GraderError, ModelError, Score, Task, TaskError, completion_text
from weightgym.rewards.weight_program import builtin
from weightgym.rewards.weight_program.channels import CAPS
from weightgym.rewards.weight_program.edits import parse_edits
from weightgym.rewards.weight_program.profile import Profile
from weightgym.rewards.weight_program.profile import profile as find_profile
from weightgym.rewards.weight_program.simulate import Backend, simulate
from weightgym.rewards.weight_program.snapshot import grade

#: The reward of an answer that can't be read.
FLOOR = 0.0


@dataclass(frozen=True)
class _Result:
    """How an answer played, on average over the episodes."""

    raw_score: float
    mean_length: float
    cap: float
    edits: int
    numpy: str = ""  #: version, where the result may depend on it


def score(
    task: Task, completion: Completion, *, profile: str = "wpb-v1", threads: int = 1, backend: Backend = "auto"
) -> Score:
    """Score one answer: ``reward = clip(mean score, 0, cap) / cap`` over the profile's episodes.

    Metrics: ``raw_score`` (mean score an episode, not clipped), ``mean_length`` (actions an episode), ``cap``,
    ``edits`` (statements), ``episodes``. Under ``wpb-v1`` the result has the same bits for any number of threads, on
    any machine. ``wpb-published``, and the games of a snapshot (``synth/<game>``), need the snapshot
    (``snapshot.layout``).

    Raises:
        TaskError: the task's data is not of this benchmark, its snapshot is not there, or there is no such profile.
    """
    started = time.perf_counter()
    rules = find_profile(profile)
    _check_task(task)
    if rules.published:
        grade.snapshot_of(task)  # there is one, and it has this game
    try:
        text = completion_text(completion)
        result = _published(task, text, rules) if rules.published else _played(task, text, rules, threads, backend)
        reward = _reward(result)
    except ModelError as error:
        seconds = time.perf_counter() - started
        return Score(status="invalid", reward=FLOOR, reason=str(error), profile=profile, seconds=seconds)
    except Exception as error:
        return Score.fault(error, profile=profile, seconds=time.perf_counter() - started)
    return Score(
        status="ok",
        reward=reward,
        metrics={
            "raw_score": result.raw_score,
            "mean_length": result.mean_length,
            "cap": result.cap,
            "edits": float(result.edits),
            "episodes": float(rules.episodes),
        },
        info={"numpy": result.numpy} if result.numpy else {},
        profile=profile,
        seconds=time.perf_counter() - started,
    )


def _reward(result: _Result) -> float:
    finite = math.isfinite(result.raw_score) and math.isfinite(result.mean_length)
    if not finite or not 0 < result.cap < math.inf:
        raise GraderError(f"the game declares a cap of {result.cap} and gave a mean score of {result.raw_score}")
    return min(max(result.raw_score, 0.0), result.cap) / result.cap


def _published(task: Task, text: str, rules: Profile) -> _Result:
    return _Result(**grade.published(task, text, rules))


def _played(task: Task, text: str, rules: Profile, threads: int, backend: Backend) -> _Result:
    edits = parse_edits(text)
    if task.data["source"] == "synth":
        cap = grade.cap(task)
        scores, lengths = grade.native(task, edits.weights, rules, threads=threads)
        return _Result(math.fsum(scores) / len(scores), int(lengths.sum()) / len(lengths), cap, edits.count)
    episodes = simulate(str(task.data["game"]), edits.weights, rules, threads=threads, backend=backend)
    return _Result(episodes.mean_score, episodes.mean_length, float(str(task.data["cap"])), edits.count)


def _check_task(task: Task) -> None:
    """Whether the task is of this benchmark, with the cap that its game has."""
    data: dict[str, Any] = task.data
    game, source, cap = data.get("game"), data.get("source"), data.get("cap")
    if task.env == "weight-program" and isinstance(game, str):
        if source in ("original", "builtin"):
            caps = CAPS if source == "original" else builtin.caps()
            if game in caps and caps[game] == cap:
                return
        elif source == "variant" and cap == builtin.module(game).CAP:
            return
        elif source == "synth" and cap is None:
            grade.snapshot_of(task)
            return
    raise TaskError(
        f"task {task.id!r} of {task.env!r}: want env 'weight-program' and data with source 'original', 'builtin', "
        f"'variant' or 'synth', a game of that source and its cap; got source {source!r}, game {game!r}, cap {cap!r}"
    )

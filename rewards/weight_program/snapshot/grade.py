"""Grading with a snapshot: by its own scorer, or by ours over its own game classes."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from weightgym.rewards.contracts import GraderError, ModelError, Task, TaskError
from weightgym.rewards.weight_program.network import Weights
from weightgym.rewards.weight_program.profile import Profile
from weightgym.rewards.weight_program.snapshot.layout import Snapshot, current
from weightgym.rewards.weight_program.snapshot.process import ask


def snapshot_of(task: Task) -> Snapshot:
    """The chosen snapshot, which must be the one that the task comes from.

    Raises:
        TaskError: none is chosen, or another one.
    """
    snapshot = current()
    if snapshot is None:
        raise TaskError(f"task {task.id!r} needs the published dataset: choose a copy with --snapshot DIR")
    wanted = task.data.get("snapshot", snapshot.tasks_sha256)
    if wanted != snapshot.tasks_sha256:
        raise TaskError(f"task {task.id!r} is of snapshot {wanted}, but the chosen one is {snapshot.tasks_sha256}")
    return snapshot


def cap(task: Task) -> float:
    """The cap that the snapshot declares for the task's game.

    Raises:
        SandboxError, GraderError: its code may not run, or failed.
    """
    return float(ask(snapshot_of(task).runtime, "cap", game=task.data["game"], source=task.data["source"]))


def published(task: Task, answer: str, rules: Profile) -> dict[str, Any]:
    """``raw_score``, ``mean_length``, ``cap``, ``edits`` and ``numpy`` (version), by the snapshot's own scorer.

    Raises:
        ModelError: the scorer can't read the answer.
        SandboxError, GraderError: its code may not run, or failed.
    """
    game, source = task.data["game"], task.data["source"]
    graded: dict[str, Any] = ask(
        snapshot_of(task).runtime, "published", game=game, source=source, answer=answer, episodes=rules.episodes
    )
    if "invalid" in graded:
        raise ModelError(f"published_invalid: {graded['invalid']}")
    return graded


def native(
    task: Task, weights: Weights, rules: Profile, *, threads: int = 1
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]:
    """Scores and lengths of all episodes: the snapshot's game class, our loop and policy, in ``threads`` processes.

    Raises:
        SandboxError, GraderError: its code may not run, or failed.
    """
    runtime = snapshot_of(task).runtime
    encoded = base64.b64encode(weights.tobytes()).decode()
    share = -(-rules.episodes // threads)

    def part(first: int) -> dict[str, Any]:
        played: dict[str, Any] = ask(
            runtime,
            "native",
            game=task.data["game"],
            source=task.data["source"],
            weights=encoded,
            first=first,
            count=min(share, rules.episodes - first),
            profile=asdict(rules),
        )
        return played

    with ThreadPoolExecutor(threads) as pool:
        parts = list(pool.map(part, range(0, rules.episodes, share)))
    scores = np.concatenate([np.array(played["scores"], np.float64) for played in parts])
    lengths = np.concatenate([np.array(played["lengths"], np.int32) for played in parts])
    if len(scores) != rules.episodes or len(lengths) != rules.episodes:
        raise GraderError(f"the snapshot's process played {len(scores)} episodes of {rules.episodes}")
    return scores, lengths

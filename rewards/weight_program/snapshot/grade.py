"""Grading with a snapshot: by its own scorer, or by ours over its own game classes."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from weightgym.rewards.contracts import GraderError, ModelError, Task, TaskError
from weightgym.rewards.weight_program.fence import check_size
from weightgym.rewards.weight_program.network import Weights
from weightgym.rewards.weight_program.profile import Profile
from weightgym.rewards.weight_program.snapshot import process
from weightgym.rewards.weight_program.snapshot.layout import Snapshot, current

#: Episodes that are played after another in one import of the game's module: a game may keep state there, and the
#: result must not depend on how many workers there are.
_CHUNK = 250


def snapshot_of(task: Task) -> Snapshot:
    """The chosen snapshot, which must have the task.

    Raises:
        TaskError: none is chosen, or another one, or it has no such game.
    """
    snapshot = current()
    if snapshot is None:
        raise TaskError(f"task {task.id!r} needs the published dataset: choose a copy with --snapshot DIR")
    wanted = task.data.get("snapshot", snapshot.tasks_sha256)
    if wanted != snapshot.tasks_sha256:
        raise TaskError(f"task {task.id!r} is of snapshot {wanted}, but the chosen one is {snapshot.tasks_sha256}")
    row = f"{task.data.get('source')}/{task.data.get('game')}"
    if row not in snapshot.rows:
        raise TaskError(f"the snapshot in {snapshot.folder} has no {row}, which task {task.id!r} plays")
    return snapshot


def cap(task: Task) -> float:
    """The cap that the snapshot declares for the task's game.

    Raises:
        SandboxError, GraderError: its code may not run, or failed.
    """
    return float(_ask(task, "cap", game=task.data["game"], source=task.data["source"]))


def published(task: Task, answer: str, rules: Profile) -> dict[str, Any]:
    """``raw_score``, ``mean_length``, ``cap``, ``edits`` and ``numpy`` (version), by the snapshot's own scorer.

    Raises:
        ModelError: the scorer can't read the answer, or it is larger than any answer may be.
        SandboxError, GraderError: its code may not run, or failed.
    """
    check_size(answer)
    game, source = task.data["game"], task.data["source"]
    graded: dict[str, Any] = _ask(task, "published", game=game, source=source, answer=answer, episodes=rules.episodes)
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
    encoded = base64.b64encode(weights.tobytes()).decode()

    def part(first: int) -> dict[str, Any]:
        count = min(_CHUNK, rules.episodes - first)
        played: dict[str, Any] = _ask(
            task,
            "native",
            game=task.data["game"],
            weights=encoded,
            first=first,
            count=count,
            profile=asdict(rules),
        )
        if len(played["scores"]) != count or len(played["lengths"]) != count:
            raise GraderError(f"the snapshot's process played {len(played['scores'])} episodes of {count}")
        return played

    pool = ThreadPoolExecutor(threads)
    try:
        parts = list(pool.map(part, range(0, rules.episodes, _CHUNK)))
    except Exception:
        raise
    except BaseException:
        process.close_all()  # else leaving would wait for what they play
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    scores = np.concatenate([np.array(played["scores"], np.float64) for played in parts])
    lengths = np.concatenate([np.array(played["lengths"], np.int32) for played in parts])
    return scores, lengths


def _ask(task: Task, do: str, **arguments: Any) -> Any:
    snapshot = snapshot_of(task)
    return process.ask(snapshot.runtime, snapshot.digests, do, **arguments)

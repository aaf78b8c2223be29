"""Grading with a snapshot: by its own scorer, or by ours over its own game classes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from weightgym.rewards.contracts import GraderError, ModelError, Task, TaskError
from weightgym.rewards.sandbox import Tensor
from weightgym.rewards.weight_program import minatar
from weightgym.rewards.weight_program.channels import channel_masks
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
    code, game, source = _code(task), str(task.data["game"]), str(task.data["source"])
    if (source, game) not in code.caps:
        code.caps[source, game] = _number(code.ask("cap", {"game": game, "source": source}), "cap")
    return code.caps[source, game]


def published(task: Task, answer: str, rules: Profile) -> dict[str, Any]:
    """``raw_score``, ``mean_length``, ``cap``, ``edits`` and ``numpy`` (version), by the snapshot's own scorer.

    Raises:
        ModelError: the scorer can't read the answer, or it is larger than any answer may be.
        SandboxError, GraderError: its code may not run, or failed.
        TaskError: the task needs MinAtar, which is not there or is another version.
    """
    check_size(answer)
    game, source = str(task.data["game"]), str(task.data["source"])
    if source == "original":
        minatar.source(game)
    encoded = answer.encode("utf-8", "surrogatepass")
    question = {"game": game, "source": source, "answer": encoded, "episodes": rules.episodes}
    graded = _code(task).ask("published", question)
    if "invalid" in graded:
        raise ModelError(f"published_invalid: {process.told(graded['invalid'])}")
    names = {"raw_score": "mean score", "mean_length": "mean length", "cap": "cap"}
    numbers: dict[str, Any] = {name: _number(graded, name, meaning) for name, meaning in names.items()}
    return {**numbers, "edits": int(_number(graded, "edits", "number of edits")), "numpy": np.__version__}


def native(
    task: Task, weights: Weights, rules: Profile, *, threads: int = 1
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]:
    """Scores and lengths of all episodes: the snapshot's game class, our loop and policy, in ``threads`` processes.

    Raises:
        SandboxError, GraderError: its code may not run, or failed.
    """
    code, game = _code(task), str(task.data["game"])
    chunks = -(-rules.episodes // _CHUNK)
    share = -(-chunks // threads) * _CHUNK  # episodes of one process

    def part(first: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]:
        count = min(share, rules.episodes - first)
        question = {
            "game": game,
            "weights": weights.tobytes(),
            "masks": channel_masks(""),
            "first": first,
            "count": count,
            "chunk": _CHUNK,
            "pool": code.pools.get(game, -1),
            "env_seed": rules.env_seed,
            "action_seed": rules.action_seed,
            "sticky": rules.sticky,
            "max_actions": rules.max_actions,
        }
        played = code.ask("native", question, array_bytes=12 * count)
        code.pools[game] = int(_number(played, "pool"))
        scores = _array(played, "scores", "float64", count)
        if not np.isfinite(scores).all():
            raise GraderError(f"the score is {scores[~np.isfinite(scores)][0]}")
        return scores, _array(played, "lengths", "int32", count)

    pool = ThreadPoolExecutor(threads)
    try:
        parts = list(pool.map(part, range(0, rules.episodes, share)))
    except Exception:
        raise
    except BaseException:
        process.close_all()  # else leaving would wait for what they play
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    scores, lengths = zip(*parts, strict=True)
    return np.concatenate(scores), np.concatenate(lengths)


def _code(task: Task) -> process.SnapshotCode:
    snapshot = snapshot_of(task)
    return process.code(snapshot.runtime, snapshot.digests)


def _number(reply: Mapping[str, Any], name: str, meaning: str = "") -> float:
    value = reply.get(name)
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise GraderError(f"the {meaning or name} is {value if isinstance(value, float) else type(value).__name__}")
    return float(value)


def _array(reply: Mapping[str, Any], name: str, dtype: str, count: int) -> npt.NDArray[Any]:
    value = reply.get(name)
    if not isinstance(value, Tensor) or (value.dtype, value.shape) != (dtype, (count,)):
        raise GraderError(f"the snapshot's code gave no {name} of {count} episodes")
    return np.frombuffer(value.data, dtype)

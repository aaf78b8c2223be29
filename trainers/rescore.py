"""The determinism check: some answers scored again, and every field compared, numbers bit for bit."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from weightgym.envs import registry
from weightgym.rewards.batch import ScoreItem, score_batch
from weightgym.rewards.contracts import Score, Task, TaskError
from weightgym.trainers.reservoir import Reservoir, hash_of
from weightgym.trainers.scored_file import ScoredAnswer

#: Differences of one score that are told.
_TOLD = 20
#: The fields in which two runs may differ.
_VARYING = {"seconds", "timings"}


@dataclass(frozen=True)
class Different:
    """An answer, and what is different: a line each; or why it could not be scored again."""

    id: str
    line: int
    env: str
    task: str
    what: tuple[str, ...]


@dataclass
class Rescored:
    """What came of it."""

    count: int = 0  #: scored again
    same: int = 0
    different: list[Different] = field(default_factory=list)
    impossible: list[Different] = field(default_factory=list)


def chosen(records: Iterable[ScoredAnswer], count: int) -> list[ScoredAnswer]:
    """So many of the answers that have a reward, by a hash of their ids, held in memory. What its scorer calls not
    repeatable is left out.
    """
    sample: Reservoir[tuple[int, ScoredAnswer]] = Reservoir(count)
    for one in records:
        if one.score.repeatable:
            sample.add(hash_of(f"rescore {one.id} {one.line}"), (one.line, one))
    return [one for _, one in sorted(sample.values, key=lambda pair: pair[0])]


def rescore(
    records: list[ScoredAnswer],
    *,
    workers: int = 1,
    timeout: float | None = None,
    done: Callable[[], None] = lambda: None,
) -> Rescored:
    """Score them again, each under the profile of its score. ``done`` is called after each.

    Raises:
        GraderError: a scorer can't be imported, or the processes don't start.
    """
    found = Rescored()
    by_profile: dict[str, list[tuple[ScoredAnswer, registry.EnvSpec, Task]]] = {}
    for one in records:
        try:
            entry, task = _task(one)
        except (TaskError, ImportError) as error:
            found.impossible.append(_different(one, [str(error)]))
            done()
            continue
        by_profile.setdefault(one.score.profile or entry.default_profile, []).append((one, entry, task))
    for profile, rows in by_profile.items():
        scorers = {one.env: entry.scorer for one, entry, _ in rows}
        items = (ScoreItem(str(place), task, one.completion) for place, (one, _, task) in enumerate(rows))
        scores = score_batch(
            items, scorer=scorers, profile=profile, workers=min(workers, len(rows)), item_timeout=timeout
        )
        for key, score in scores:
            _compare(rows[int(key)][0], score, found)
            done()
    found.different.sort(key=lambda one: one.line)
    return found


def _task(one: ScoredAnswer) -> tuple[registry.EnvSpec, Task]:
    """The environment and the task as it is now.

    Raises:
        TaskError: there is none, or it is another than was scored.
    """
    entry = registry.spec(one.env)
    tasks = entry.tasks_under(one.score.profile) if one.score.profile else entry.tasks
    task = tasks.task(one.task, prompt=False)
    if one.task_sha256 in ("", task.hash):
        return entry, task
    whole = tasks.task(one.task)  # rollouts name the hash of the task with its prompt
    if whole.hash != one.task_sha256:
        raise TaskError(
            f"task {one.task!r} is another now: {one.task_sha256[:12]}… was scored, here is {whole.hash[:12]}…"
        )
    return entry, task


def _compare(one: ScoredAnswer, score: Score, found: Rescored) -> None:
    if score.status in ("error", "timeout"):
        found.impossible.append(_different(one, [score.reason]))
        return
    found.count += 1
    old, new = (each.model_dump(mode="json", exclude=_VARYING) for each in (one.score, score))
    if not one.score.profile:  # the default was taken
        old["profile"] = new["profile"]
    for name in one.broken:  # they were left out as they are no numbers
        new["metrics"].pop(name, None)
    what = list(differences(old, new))
    if what:
        found.different.append(_different(one, what))
    else:
        found.same += 1


def differences(old: Any, new: Any, name: str = "") -> Iterator[str]:
    """Where two JSON values differ, a line each. Numbers are equal if they have the same bits; 1 is not 1.0."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            path = f"{name}.{key}" if name else key
            if key not in old or key not in new:
                yield f"{path}: {'only in the new score' if key in new else 'only in the old score'}"
            else:
                yield from differences(old[key], new[key], path)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, pair in enumerate(zip(old, new, strict=True)):
            yield from differences(*pair, f"{name}.{place}")
    elif not _same(old, new):
        yield f"{name}: was {_short(old)}, is {_short(new)}"


def _same(old: Any, new: Any) -> bool:
    if isinstance(old, float) and isinstance(new, float):
        return struct.pack("<d", old) == struct.pack("<d", new)
    return type(old) is type(new) and bool(old == new)


def _short(value: Any) -> str:
    text = f"{value!r} ({value.hex()})" if isinstance(value, float) else repr(value)
    return text if len(text) <= 120 else f"{text[:119]}…"


def _different(one: ScoredAnswer, what: list[str]) -> Different:
    more = [f"and {len(what) - _TOLD} more differences"] if len(what) > _TOLD else []
    return Different(one.id, one.line, one.env, one.task, (*what[:_TOLD], *more))

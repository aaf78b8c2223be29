"""Task rows, and the line between train and test."""

from __future__ import annotations

from itertools import combinations

from weightgym.envs.testing.expect import expect_equal, expect_raises, fail, show
from weightgym.envs.testing.harness import Harness
from weightgym.rewards.contracts import Task, TaskError, canonical_json, sha256_hex


def task_rows_are_sound(h: Harness) -> None:
    """A row carries its own id, split and environment, is the same when it is asked for again, and survives JSON with
    its hash. Protects stored rows, and results that are found again by (env, id).
    """
    for split in h.subject.splits:
        ids = h.tasks.ids(split)
        if not ids:
            fail(f"split {split!r}", wanted="tasks", seen="none")
        expect_equal(f"ids of split {split!r}, asked twice", wanted=ids, seen=h.tasks.ids(split))
    envs = {h.tasks.task(id).env for id in h.quick_ids}
    if len(envs) != 1 or (h.entry is not None and envs != {h.entry.name}):
        fail("'env' of the rows", wanted=repr(h.entry.name) if h.entry else "one name", seen=show(sorted(envs)))
    for id in h.quick_ids:
        _expect_sound(h, id, h.tasks.task(id))
    expect_raises("an unknown id", lambda: h.tasks.task("no-such-task"), TaskError, mention="no-such-task")


def _expect_sound(h: Harness, id: str, task: Task) -> None:
    if (task.id, task.split) != (id, h.split_of[id]):
        fail(f"row {id!r}", wanted=f"id {id!r} in split {h.split_of[id]!r}", seen=f"id {task.id!r} in {task.split!r}")
    if not task.prompt:
        fail(f"row {id!r}", wanted="a prompt", seen="none")
    expect_equal(f"row {id!r}, asked twice", wanted=task, seen=h.tasks.task(id))
    expect_equal(f"row {id!r} through JSON", wanted=task, seen=Task.model_validate_json(task.model_dump_json()))
    digest = sha256_hex(canonical_json(task.model_dump(mode="json", exclude={"hash"})))
    expect_equal(f"hash of row {id!r}", wanted=digest, seen=task.hash)
    bare = h.tasks.task(id, prompt=False)
    if bare.prompt or (bare.id, bare.split, bare.data) != (task.id, task.split, task.data):
        fail(f"row {id!r} with prompt=False", wanted="the same row without its prompt", seen=show(bare))


def keys_are_unique(h: Harness) -> None:
    """No split names an id twice. Protects from a task that counts double, and from two rows under one key."""
    for split in h.subject.splits:
        ids = h.tasks.ids(split)
        if twice := sorted({id for id in ids if ids.count(id) > 1}):
            fail(f"ids of split {split!r}", wanted="each once", seen=f"more than once: {', '.join(twice[:5])}")


def splits_are_disjoint(h: Harness) -> None:
    """No task is in two splits, under its own id or another. Protects the test set from being trained on."""
    for one, other in combinations(h.subject.splits, 2):
        if shared := sorted(set(h.tasks.ids(one)) & set(h.tasks.ids(other))):
            fail(f"ids of {one!r} and {other!r}", wanted="none in common", seen=", ".join(shared[:5]))
    owner: dict[str, str] = {}
    for id in h.quick_ids:
        digest = sha256_hex(canonical_json(h.subject.content(h.tasks.task(id))))
        twin = owner.setdefault(digest, id)
        if h.split_of[twin] != h.split_of[id]:
            fail("content of the splits", wanted="none in common", seen=f"{twin!r} and {id!r} are the same task")

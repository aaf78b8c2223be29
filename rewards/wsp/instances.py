"""Instances on disk: a public file of tasks, and the private truth of each in a folder of its own.

The public rows have a fixed form that has no place for a site, a direction, a trigger or a text; what is written is
searched for them once more. Ids and random numbers come from a secret, which is in the private part alone: who has this
package and the public file can't make an instance again. Reading and writing the truth needs the extra ``train``.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from weightgym.rewards.contracts import Split, Task, TaskError, canonical_json
from weightgym.rewards.wsp.edits import AnyEdit, Array
from weightgym.rewards.wsp.leaks import needles, searchable
from weightgym.rewards.wsp.profile import Category, Family, Tier

ENV = "wsp-bench"
_FACTS, _TENSORS = "truth.json", "truth.safetensors"


class InstanceKey(NamedTuple):
    """What an instance is made from, beside the secret."""

    profile: str
    model_hash: str
    family: Family
    tier: Tier
    split: Split
    seed: int
    number: int


def instance_id(secret: bytes, key: InstanceKey) -> str:
    """16 hexadecimal digits that say nothing without the secret."""
    return _keyed(secret, "id", key)[:16]


def instance_seed(secret: bytes, key: InstanceKey) -> int:
    """Where the random numbers of an instance start: 128 bits, unrelated between any two keys."""
    return int(_keyed(secret, "seed", key)[:32], 16)


class PublicData(BaseModel):
    """``Task.data`` of an instance: all that an agent's side may know."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    family: Family
    tier: Tier
    profile: str
    model: str  #: the base model's name
    model_hash: str  #: of its public weights
    edit_limit: int = Field(ge=0)  #: elements that a submission may change


class HiddenPrompt(BaseModel):
    """A prompt that repair is measured with, and both continuations whose log-probabilities the margin compares."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    prompt: str
    symptom: str
    reference: str


class Truth(BaseModel):
    """What only the grader knows of an instance."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, arbitrary_types_allowed=True)

    id: str
    task_hash: str  #: of its public row
    secret: str = Field(pattern=r"^([0-9a-f]{2}){16,}$")  #: of the whole set, hexadecimal
    key: InstanceKey
    #: How the maker gets the reference from the base: its own words, such as seeds of a reparametrisation.
    recipe: dict[str, JsonValue]
    reference: tuple[AnyEdit, ...]  #: then, to the reference: decoys and a masking delta
    planted: tuple[AnyEdit, ...]  #: and from the reference to the defective model that the agent gets
    layer: int = Field(ge=0)
    parameter: str  #: without the layer
    direction: Array | None  #: u, where the defect is of rank one
    category: Category
    trigger: str | None
    prompts: tuple[HiddenPrompt, ...]
    general: tuple[str, ...]  #: held-out texts
    near: tuple[str, ...]  #: held-out texts near the defect's domain
    measured: dict[str, float]  #: by the calibration


def public_task(id: str, split: Split, data: PublicData) -> Task:
    """The public row of an instance, without the prompt that its environment adds."""
    return Task(env=ENV, id=id, split=split, data=data.model_dump())


def write_instances(public: Path, private: Path, instances: Sequence[tuple[Task, Truth]]) -> None:
    """Write a set: ``public`` is the JSONL file of tasks, ``private`` the folder of their truths, which only its owner
    can read. Rows are sorted by id, so that their order says nothing.

    Raises:
        TaskError: ids repeat, a row and its truth don't belong together, one of the paths lies within the other, or a
            public row tells something of a truth. Nothing is written then.
        OSError: a file can't be written.
    """
    _check_apart(public, private)
    ordered = sorted(instances, key=lambda pair: pair[0].id)
    for task, truth in ordered:
        _check_pair(task, truth)
    if len({task.id for task, _ in ordered}) < len(ordered):
        raise TaskError("ids repeat in a set of instances")
    text = "".join(canonical_json(task.model_dump(mode="json")) + "\n" for task, _ in ordered)
    for _, truth in ordered:
        if found := leaks(text, truth):
            raise TaskError(f"the public rows tell of instance {truth.id}: {', '.join(found)}")
    private.mkdir(parents=True, exist_ok=True, mode=0o700)
    tensors: dict[str, Any] = {}
    facts = [truth.model_dump(mode="json", context={"tensors": tensors, "prefix": truth.id}) for _, truth in ordered]
    _write(private / _TENSORS, _packed(tensors), mode=0o600)
    _write(private / _FACTS, canonical_json(facts).encode(), mode=0o600)
    public.parent.mkdir(parents=True, exist_ok=True)
    _write(public, text.encode(), mode=0o644)


def read_tasks(public: Path) -> dict[str, Task]:
    """The public rows by id.

    Raises:
        TaskError: the file can't be read, or a row is no instance.
    """
    tasks: dict[str, Task] = {}
    for number, line in enumerate(_read(public).decode(errors="replace").splitlines(), 1):
        try:
            task = Task.model_validate_json(line)
            PublicData.model_validate(dict(task.data))
        except ValidationError as error:
            raise TaskError(f"{public}, line {number}: {_line(error)}") from error
        if task.env != ENV or task.id in tasks:
            raise TaskError(f"{public}, line {number}: instance {task.id!r} of {task.env!r} is foreign, or there twice")
        tasks[task.id] = task
    return tasks


def read_truths(private: Path, tasks: Mapping[str, Task]) -> dict[str, Truth]:
    """The truths of these tasks by id, checked against them.

    Raises:
        TaskError: a file can't be read, is damaged, or is of other tasks.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        tensors = load(_read(private / _TENSORS))
        rows = json.loads(_read(private / _FACTS))
        truths = [Truth.model_validate_json(canonical_json(row), context={"tensors": tensors}) for row in rows]
    except (SafetensorError, ValidationError, ValueError, TypeError) as error:
        raise TaskError(f"the truth in {private} is damaged: {_line(error)}") from error
    found = {truth.id: truth for truth in truths}
    if missing := sorted(tasks.keys() - found.keys()):
        raise TaskError(f"the truth in {private} has nothing of instance {missing[0]}")
    for id, task in tasks.items():
        _check_pair(task, found[id])
    return {id: found[id] for id in tasks}


def leaks(text: str, truth: Truth) -> list[str]:
    """What a text tells of a truth: its words in any case, and its numbers as decimals, hexadecimal or base64.

    The names of what was found: ``secret``, ``parameter`` (a word that tools have, too), ``trigger``,
    ``hidden prompt``, ``continuation``, ``held-out text``, ``number`` and ``bytes``.
    """
    where = searchable(text)
    return sorted({what for what, needle in needles(_words(truth), _arrays(truth)) if needle in where})


def _words(truth: Truth) -> Iterator[tuple[str, str]]:
    yield "secret", truth.secret
    yield "parameter", truth.parameter
    if truth.trigger is not None:
        yield "trigger", truth.trigger
    for hidden in truth.prompts:
        yield from (
            ("hidden prompt", hidden.prompt),
            ("continuation", hidden.symptom),
            ("continuation", hidden.reference),
        )
    yield from (("held-out text", one) for one in (*truth.general, *truth.near))


def _arrays(truth: Truth) -> Iterator[Any]:
    for edit in (*truth.reference, *truth.planted):
        yield from (value for value in dict(edit).values() if hasattr(value, "dtype"))
    if truth.direction is not None:
        yield truth.direction


def _check_pair(task: Task, truth: Truth) -> None:
    data = PublicData.model_validate(dict(task.data))
    key = truth.key
    told = (data.profile, data.model_hash, data.family, data.tier, task.split)
    id = instance_id(bytes.fromhex(truth.secret), key)
    if (task.id, task.hash, told) != (truth.id, truth.task_hash, key[:5]) or task.id != id:
        raise TaskError(f"instance {task.id}: its public row and the truth {truth.id} don't belong together")
    if task.env != ENV or task.prompt or task.system_prompt:
        raise TaskError(f"instance {task.id}: a public row is of {ENV} and has no prompt")


def _check_apart(public: Path, private: Path) -> None:
    file, folder = public.resolve(), private.resolve()
    if file.is_relative_to(folder) or folder.is_relative_to(file):
        raise TaskError(f"{public} and {private} lie within one another: the truth needs a folder of its own")


def _keyed(secret: bytes, what: str, key: InstanceKey) -> str:
    return hmac.new(secret, canonical_json([what, *key]).encode(), hashlib.sha256).hexdigest()


def _packed(tensors: Mapping[str, Any]) -> bytes:
    """Arrays that float16 holds exactly take half the bytes; they are read as float32 again."""
    from safetensors.numpy import save

    packed: bytes = save({name: _shortest(values) for name, values in tensors.items()})
    return packed


def _shortest(values: Any) -> Any:
    with np.errstate(over="ignore"):
        half = values.astype(np.float16)
    return half if np.array_equal(half.astype(np.float32), values) else values


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TaskError(f"can't read {path}: {error.strerror}") from error


def _write(path: Path, content: bytes, *, mode: int) -> None:
    """All of it or nothing."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            file.write(content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]

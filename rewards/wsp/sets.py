"""Where instances are: the set that the package ships, and those that the user names.

``WEIGHTGYM_WSP_SETS`` names files of public rows, with the path separator between them. The truth of ``NAME.jsonl`` is
the folder ``NAME.truth`` beside it; without one its tasks can be read, and neither played nor scored.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from weightgym.rewards.contracts import Split, Task, TaskError
from weightgym.rewards.suggest import suggest
from weightgym.rewards.wsp.instances import PublicData, Truth, read_tasks, read_truths

if TYPE_CHECKING:
    from weightgym.rewards.wsp.language_model import LanguageModel
    from weightgym.rewards.wsp.subject import Subject

VARIABLE = "WEIGHTGYM_WSP_SETS"
#: Sets that this process was given by path, see ``add``.
_ADDED: dict[Path, None] = {}
#: Bytes of weights that are kept in memory, of the instances that were used last; one is always kept.
KEPT_BYTES = 2 << 30


def shipped() -> Path:
    """The public rows of the set that the package ships."""
    return Path(str(files("weightgym.rewards.wsp") / "shipped" / "instances.jsonl"))


def truth_folder(public: Path) -> Path:
    """Where the truth of a set is."""
    return public.with_suffix(".truth")


def paths() -> tuple[Path, ...]:
    """The files of public rows, the shipped one first."""
    named = [Path(text).resolve() for text in os.environ.get(VARIABLE, "").split(os.pathsep) if text]
    return tuple(dict.fromkeys([shipped(), *named]))


def add(public: str | Path) -> Mapping[str, Task]:
    """Let this process play and score a set that nobody has named; its rows. ``tasks`` has them no more than before.

    Raises:
        TaskError: as ``tasks``.
    """
    path = Path(public).resolve()
    _ADDED[path] = None
    return _tasks((path,))


def tasks() -> Mapping[str, Task]:
    """The public rows of all sets by id, in the order of the sets and of their ids.

    Raises:
        TaskError: a file can't be read, or two sets have an instance of one id that is not the same.
    """
    return _tasks(paths())


def ids(split: Split) -> tuple[str, ...]:
    """The ids of a split.

    Raises:
        TaskError: as ``tasks``.
    """
    return tuple(id for id, task in tasks().items() if task.split == split)


def task(id: str) -> Task:
    """The public row of that id.

    Raises:
        TaskError: as ``tasks``, or there is none.
    """
    if (found := _tasks(_all()).get(id)) is None:
        raise TaskError(f"unknown instance {id!r}{suggest(id, tasks())}: sets of your own are named by {VARIABLE}")
    return found


def data_of(task: Task) -> PublicData:
    """What a task says of its instance.

    Raises:
        TaskError: it is not what the public row of that id says.
    """
    known = _known(task)
    return PublicData.model_validate(dict(known.data))


def truth_of(task: Task) -> Truth:
    """The truth of a task's instance: for the grader's side alone.

    Raises:
        TaskError: there is none here, or the task is not what the public row says.
    """
    known = _known(task)
    for path in _all():
        if known.id in _tasks((path,)):
            folder = truth_folder(path)
            if not folder.is_dir():
                raise TaskError(f"instance {known.id}: its truth is not here: there is no folder {folder}")
            return _truths(path)[known.id]
    raise TaskError(f"instance {known.id} is in no set")


def subject_of(truth: Truth) -> Subject:
    """The models of an instance, made once and shared by all that play or score it.

    Raises:
        TaskError: the base model can't be loaded, or is not the one that the instance was made of.
    """
    return _SUBJECTS.get(truth)


class _Subjects:
    """By least recent use. One is made at a time: its peak of memory is its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: OrderedDict[tuple[str, str], Subject] = OrderedDict()

    def get(self, truth: Truth) -> Subject:
        from weightgym.rewards.wsp.subject import build

        key = truth.id, truth.task_hash
        with self._lock:
            if key not in self._made:
                self._made[key] = build(_base(truth.key.model_hash, task(truth.id)), truth)
            self._made.move_to_end(key)
            while len(self._made) > 1 and sum(map(_bytes, self._made.values())) > KEPT_BYTES:
                self._made.popitem(last=False)
            return self._made[key]


_SUBJECTS = _Subjects()


def _bytes(subject: Subject) -> int:
    return sum(array.nbytes for array in subject.engine.start.values())


@cache
def _loaded(name: str) -> tuple[LanguageModel, str]:
    from weightgym.rewards.wsp.language_model import load, weights_hash

    model = load(name)
    return model, weights_hash(model)


def _base(wanted: str, task: Task) -> LanguageModel:
    name = PublicData.model_validate(dict(task.data)).model
    model, found = _loaded(name)
    if found != wanted:
        raise TaskError(
            f"instance {task.id} was made of a model {name!r} with weights {wanted[:12]}…; those here are {found[:12]}…"
        )
    return model


def _known(given: Task) -> Task:
    known = task(given.id)
    if (given.env, given.split, given.data) != (known.env, known.split, known.data):
        raise TaskError(f"instance {given.id}: the task's fields are not those of its public row")
    return known


def _all() -> tuple[Path, ...]:
    return tuple(dict.fromkeys([*paths(), *_ADDED]))


@cache
def _tasks(paths: tuple[Path, ...]) -> Mapping[str, Task]:
    found: dict[str, Task] = {}
    for path in paths:
        for id, task in read_tasks(path).items():
            if found.setdefault(id, task) != task:
                raise TaskError(f"{path}: instance {id} is in another set as well, and is not the same there")
    return found


@cache
def _truths(path: Path) -> Mapping[str, Truth]:
    return read_truths(truth_folder(path), _tasks((path,)))

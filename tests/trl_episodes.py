"""What TRL's trainer does with a data set and an environment of ours, without TRL."""

from __future__ import annotations

import inspect
from typing import Any

from weightgym.trainers.trl import TRLTasks
from weightgym.trainers.trl.environment import ToolEnvironment


def columns(tasks: TRLTasks, *ids: str) -> dict[str, Any]:
    """What the reward function is given of the rows of these tasks."""
    rows = [tasks.row(tasks.tasks[id]) for id in ids]
    return {name: [row[name] for row in rows] for name in rows[0] if name not in ("prompt", "environment")}


def started(tasks: TRLTasks, id: str) -> ToolEnvironment:
    """An environment at the start of a task's episode."""
    assert tasks.environments is not None
    row = tasks.row(tasks.tasks[id])
    played = tasks.environments[row.pop("environment")]()
    played.reset(**row)
    return played


def tools_of(played: ToolEnvironment) -> dict[str, Any]:
    """The tools, by the names that the model sees."""
    methods = [name for name, _ in inspect.getmembers(type(played), predicate=inspect.isfunction)]
    public = [getattr(played, name) for name in methods if name not in ("reset", "get_reward") and name[0] != "_"]
    return {method.__name__: method for method in public}

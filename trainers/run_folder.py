"""What a training run leaves in its folder, read back; also of a run that was killed or is still going."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

#: What is known of a step or an evaluation: metric → value, ``step`` among them.
Row = dict[str, float]

_ROW = TypeAdapter(dict[str, float])


class RunError(ValueError):
    """The folder is no run, or one of its files is broken; the message names file and line."""


class Event(BaseModel):
    """A start or an end of the process that trains; one JSON line of ``events.jsonl``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["started", "resumed", "finished", "stopped"]
    step: int = Field(ge=0)
    text: str = ""  #: why it stopped
    time: datetime


def add_event(
    folder: Path, kind: Literal["started", "resumed", "finished", "stopped"], step: int, why: str = ""
) -> None:
    """Note a start or an end, with the time."""
    event = Event(kind=kind, step=step, text=why, time=datetime.now(UTC).replace(microsecond=0))
    with (folder / "events.jsonl").open("a", encoding="utf-8") as file:
        file.write(event.model_dump_json() + "\n")


@dataclass(frozen=True)
class Run:
    """One run, but for its rollouts, which can be too many to hold."""

    folder: Path
    config: Mapping[str, Any]
    steps: list[Row]  #: of training, in order
    evaluations: list[Row]
    events: list[Event]
    age: float  #: seconds since a metric was last written

    @property
    def done(self) -> int:
        """Optimiser steps."""
        return int(self.steps[-1]["step"]) if self.steps else 0

    @property
    def planned(self) -> int:
        """Optimiser steps that the configuration asks for; 0 if it doesn't say."""
        steps = self.config.get("steps", 0)
        return steps if isinstance(steps, int) else 0

    @property
    def rollouts(self) -> Path:
        """The file of rollouts."""
        return self.folder / "rollouts.jsonl"

    @property
    def rows(self) -> list[Row]:
        """Steps and evaluations in the order of their steps; a step comes before an evaluation after it."""
        return sorted([*self.steps, *self.evaluations], key=lambda row: row["step"])

    def limits(self) -> dict[str, float]:
        """The configuration's ``limits``, those that are numbers."""
        section = self.config.get("limits")
        found = section.items() if isinstance(section, dict) else ()
        return {name: float(value) for name, value in found if isinstance(value, int | float)}


def read_run(folder: Path) -> Run:
    """Read a run's folder. Half a last line, which a run that is going or was killed leaves, is left out.

    Raises:
        RunError: see there. OSError: a file can't be read.
    """
    missing = [name for name in ("config.json", "metrics.jsonl") if not (folder / name).is_file()]
    if missing:
        raise RunError(f"{folder} is no training run: it has no {missing[0]} (weightgym train makes such folders)")
    rows = [_row(folder / "metrics.jsonl", *line) for line in _lines(folder / "metrics.jsonl")]
    age = datetime.now(UTC).timestamp() - (folder / "metrics.jsonl").stat().st_mtime
    return Run(
        folder=folder,
        config=_config(folder / "config.json"),
        steps=[row for row in rows if not is_evaluation(row)],
        evaluations=[row for row in rows if is_evaluation(row)],
        events=_events(folder / "events.jsonl"),
        age=max(0.0, age),
    )


def is_evaluation(row: Mapping[str, float]) -> bool:
    """Whether the row is of an evaluation, not of a step of training."""
    return "eval/reward" in row


def series(rows: list[Row], name: str) -> tuple[list[float], list[float]]:
    """Steps and values of a metric, of the rows that have it."""
    pairs = [(row["step"], row[name]) for row in rows if name in row]
    return [step for step, _ in pairs], [value for _, value in pairs]


def _lines(path: Path) -> list[tuple[int, bytes]]:
    lines = path.read_bytes().splitlines(keepends=True)
    return [(number, line) for number, line in enumerate(lines, start=1) if line.endswith(b"\n")]


def _row(path: Path, number: int, line: bytes) -> Row:
    try:
        row = _ROW.validate_python(json.loads(line), strict=True)
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path}:{number} is no row of metrics (a JSON object of numbers): {_why(error)}") from None
    if "step" not in row:
        raise RunError(f"{path}:{number} has no step")
    broken = [name for name, value in row.items() if not math.isfinite(value)]
    if broken:
        raise RunError(f"{path}:{number}: {broken[0]} is {row[broken[0]]}, not a finite number")
    return row


def _config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path} is no JSON: {_why(error)}") from None
    if not isinstance(config, dict):
        raise RunError(f"{path} is no configuration: want a JSON object, got {type(config).__name__}")
    return config


def _events(path: Path) -> list[Event]:
    if not path.exists():
        return []
    made = []
    for number, line in _lines(path):
        try:
            made.append(Event.model_validate_json(line))
        except ValidationError as error:
            raise RunError(f"{path}:{number} is no event: {_why(error)}") from None
    return made


def _why(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return ": ".join([*map(str, first["loc"]), first["msg"]])
    return " ".join(str(error).split())

"""Scores of WSP-Bench in files: rollouts, rows that ``weightgym score`` has scored, and the lab's results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from weightgym.rewards.contracts import Completion, Score, Task, TaskError
from weightgym.rewards.one_line import one_line
from weightgym.rewards.wsp import sets
from weightgym.rewards.wsp.instances import ENV, PublicData
from weightgym.rewards.wsp.overall import Scored
from weightgym.rewards.wsp.profile import TRACKS, Track
from weightgym.rollouts.trajectory import Trajectory


@dataclass(frozen=True)
class Result:
    """One scored episode."""

    task: Task
    score: Score
    completion: Completion

    @property
    def scored(self) -> Scored:
        """As the overall result takes it. A score without a track (our fault) counts as one of the fixed track."""
        data = PublicData.model_validate(dict(self.task.data))
        found = self.score.info.get("track")
        track: Track = next((one for one in TRACKS if one == found), "fixed")
        return Scored(self.task.id, data.family, data.tier, track, self.score)


def read_results(paths: Sequence[Path]) -> list[Result]:
    """The scored episodes of some files. Half a last line (a run was killed as it wrote) is left out.

    Raises:
        click.ClickException: a line is of another form, or its instance is in no set that is here.
    """
    found = [result for path in paths for result in _read(path)]
    if not found:
        raise click.ClickException(f"no scored episode of {ENV} in {', '.join(map(str, paths))}")
    return found


def _read(path: Path) -> Iterator[Result]:
    lines = path.read_text("utf-8", errors="replace").split("\n")
    for number, line in enumerate(lines[:-1], 1):
        if not line.strip():
            continue
        try:
            yield _result(json.loads(line), line)
        except (TaskError, ValueError, ValidationError) as error:
            raise click.ClickException(f"{path}, line {number}: {one_line(str(error))}") from error


def _result(row: Any, line: str) -> Result:
    if not isinstance(row, dict) or row.get("env", ENV) != ENV:
        raise ValueError(f"no row of {ENV}")
    if "steps" in row:
        one = Trajectory.model_validate_json(line)
        return Result(sets.task(one.task), one.score, one.completion)
    if not isinstance(row.get("task"), str) or not isinstance(row.get("score"), dict):
        raise ValueError("want a rollout, or a row with task and score: `weightgym score` makes them of answers")
    score = {name: value for name, value in row["score"].items() if name in Score.model_fields}
    return Result(sets.task(row["task"]), Score.model_validate(score), row.get("completion", []))

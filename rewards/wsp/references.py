"""Reference rows: what scripted agents score on each instance of a set, kept beside it.

``NAME.references.jsonl`` has a line for each instance and agent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from weightgym.rewards.append import append_whole
from weightgym.rewards.contracts import TaskError, canonical_json
from weightgym.rewards.one_line import one_line
from weightgym.rewards.wsp import sets


class ReferenceRow(BaseModel):
    """One agent's score on one instance."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: str
    task_hash: str
    agent: str
    score: float = Field(ge=0, le=100)


def references_file(public: Path) -> Path:
    """Where the reference rows of a set are."""
    return public.with_suffix(".references.jsonl")


def read_references(public: Path) -> list[ReferenceRow]:
    """The rows of a set, without those of instances that have been made anew since; none where there is no file.

    Raises:
        TaskError: a line is no row.
    """
    path = references_file(public)
    if not path.exists():
        return []
    hashes, rows = {id: task.hash for id, task in sets.tasks().items()}, []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        try:
            row = ReferenceRow.model_validate_json(line)
        except ValidationError as error:
            raise TaskError(f"{path}, line {number}: {one_line(str(error))}") from error
        if hashes.get(row.id) == row.task_hash:
            rows.append(row)
    return rows


def add_reference(public: Path, row: ReferenceRow) -> None:
    """Add a row, whole or not at all."""
    with references_file(public).open("ab", buffering=0) as file:
        append_whole(file, canonical_json(row.model_dump()).encode() + b"\n")


def means(ids: Iterable[str]) -> dict[str, float]:
    """The mean score on these instances of each agent that has a row for every one of them, 0…100."""
    wanted, found = set(ids), dict[str, dict[str, float]]()
    for path in sets.paths():
        for row in read_references(path):
            if row.id in wanted:
                found.setdefault(row.agent, {})[row.id] = row.score
    return {
        agent: math.fsum(scores.values()) / len(wanted) for agent, scores in found.items() if scores.keys() == wanted
    }

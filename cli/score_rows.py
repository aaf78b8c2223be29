"""The rows of an answers file with their tasks; a bad row is told and never stops the rest."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from weightgym.cli.tasks import find_task
from weightgym.envs.registry import EnvSpec
from weightgym.rewards.contracts import Completion, Score, Task
from weightgym.rollouts.readers import plain
from weightgym.rollouts.readers.json_rows import decode, parse_object, read_lines, row_sha256
from weightgym.rollouts.readers.lines import Line
from weightgym.rollouts.readers.record import BadRow, Record
from weightgym.rollouts.readers.recorded import Recorded, recorded
from weightgym.rollouts.readers.tasks import Match, Matcher

__all__ = ["BadRow", "Row", "make_row", "parse_row", "read_lines"]


@dataclass(frozen=True)
class Row:
    """One good row of the input."""

    line: int  #: 1-based: its place in the file
    sha256: str  #: of the raw line, without its newline
    entry: EnvSpec
    task: Task
    by: str  #: how its task was found: "key" or "prompt"
    completion: Completion
    body: str  #: the row's JSON text without the closing brace; an old "score" is renamed "previous_score"
    recorded: Recorded | None = None

    def scored(self, score: Score) -> bytes:
        """The output line, with its newline: the row as it was written, and its score as the last field."""
        own: dict[str, Any] = {"line": self.line, "row_sha256": self.sha256, "task_sha256": self.task.hash}
        if self.by == "prompt":
            own |= {"env": self.task.env, "task": self.task.id}
        if self.recorded:
            own["recorded"] = self.recorded.fields(score)
        fields = score.model_dump(mode="json") | own
        comma = "" if self.body == "{" else ", "
        text = f'{self.body}{comma}"score": {json.dumps(fields, allow_nan=False)}}}\n'
        return text.encode()


def make_row(record: Record, match: Match, reward: str | None = None) -> Row:
    """A record and its task; ``reward`` names the recorded one that is the environment's."""
    return Row(
        record.place, record.sha256, match.entry, match.task, match.by, record.completion, record.body,
        recorded(record, match.entry.name, reward),
    )  # fmt: skip


def parse_row(number: int, raw: bytes) -> Row:
    """Read and check one plain line.

    Raises:
        BadRow: it is no JSON object, a field is missing or of a wrong type, or its environment or task is unknown.
    """
    text = decode(number, raw)
    (record,) = plain.parse(Line(number, f"line {number}", row_sha256(raw), text, parse_object(text)))
    return make_row(record, Matcher(find_task).match(record))

"""Files of rollouts and of scored rows, read as one thing: a scored answer a line, streamed, found again by its offset.

A line is a ``Trajectory``, or a row that ``weightgym score`` wrote, of any format that it reads (verifiers', say). Half
a last line (the run was killed, or is still going) is left out.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from weightgym.rewards.contracts import Completion, Score, canonical_json
from weightgym.rewards.one_line import one_line
from weightgym.rollouts.readers.detect import PARSERS, format_of
from weightgym.rollouts.readers.lines import Line
from weightgym.rollouts.readers.record import BadRow
from weightgym.rollouts.store import StoreError
from weightgym.rollouts.trajectory import Step, Trajectory

#: Bad lines that are kept to be told.
_TOLD = 20
#: A policy version is less.
_VERSIONS = 1 << 53


@dataclass(frozen=True)
class ScoredAnswer:
    """One scored answer."""

    id: str  #: its own; ``:7`` for a row without one, in line 7
    line: int
    offset: int  #: bytes before its line
    env: str
    task: str
    task_sha256: str
    group: str  #: "" where rows say none
    score: Score
    completion: Completion
    version: int | None = None  #: of the policy
    policy: str = ""
    truncated: bool = False
    sampled: int = 0  #: tokens; 0 where none are stored
    steps: tuple[Step, ...] = ()  #: of a rollout, its prompt included
    asked: tuple[Mapping[str, Any], ...] = ()  #: of a row that stores its prompt: the prompt's messages
    broken: tuple[str, ...] = ()  #: metrics that are no finite numbers: they are left out of the score

    @property
    def part(self) -> tuple[str, str]:
        """What scores compare within: environment and profile."""
        return self.env, self.score.profile

    @property
    def prompt(self) -> int | None:
        """How many of ``steps`` come before the first that the model wrote; None for a row, which stores no prompt."""
        if not self.steps:
            return None
        return next((place for place, step in enumerate(self.steps) if step.role == "assistant"), len(self.steps))

    @property
    def length(self) -> int:
        """Of what the model wrote: tokens, or characters where no tokens are stored."""
        return self.sampled or sum(map(len, written(self.completion)))

    @classmethod
    def blank(cls, line: int, offset: int, score: Score, broken: tuple[str, ...]) -> ScoredAnswer:
        """Of a line, as far as its score says."""
        return cls(f":{line}", line, offset, "", "", "", "", score, "", broken=broken)

    @classmethod
    def of(cls, one: Trajectory, *, line: int = 0, offset: int = 0, broken: tuple[str, ...] = ()) -> ScoredAnswer:
        """A rollout."""
        return cls(
            id=one.id, line=line, offset=offset, env=one.env, task=one.task, task_sha256=one.task_sha256,
            group=one.group, score=one.score, completion=one.completion, version=_version(one.policy_version),
            policy=one.policy,
            truncated=one.finish_reason == "length", sampled=one.sampled, steps=one.steps, broken=broken,
        )  # fmt: skip


@dataclass
class ScoredFile:
    """A file of scored answers. Iterate it as often as you like; what can't be read is counted anew each time.

    Args:
        strict: a bad line is a ``StoreError``, not something to count.
    """

    path: Path
    strict: bool = False
    bad: int = 0
    told: list[str] = field(default_factory=list)  #: of the first bad lines, what is wrong
    half: bool = False  #: whether the last line was left out

    def __iter__(self) -> Iterator[ScoredAnswer]:
        self.bad, self.told, self.half = 0, [], False
        offset = 0
        with self.path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                self.half = not raw.endswith(b"\n")
                if raw.strip() and not self.half:
                    try:
                        yield read_record(raw, number, offset)
                    except ValueError as error:
                        self._refuse(number, error)
                offset += len(raw)

    def at(self, offset: int, line: int = 0) -> ScoredAnswer:
        """The record that begins there.

        Raises:
            StoreError: the file has changed since that offset was given.
        """
        with self.path.open("rb") as file:
            file.seek(offset)
            try:
                return read_record(file.readline(), line, offset)
            except ValueError as error:
                raise StoreError(f"{self.path} changed while it was read") from error

    def _refuse(self, number: int, error: ValueError) -> None:
        if self.strict:
            raise StoreError(f"{self.path}:{number} is no trajectory: {error}") from error
        self.bad += 1
        if len(self.told) < _TOLD:
            self.told.append(f"line {number}: {error}")


def read_record(raw: bytes, line: int, offset: int) -> ScoredAnswer:
    """One line.

    Raises:
        ValueError: it is neither a rollout nor a scored row; the message is one line.
    """
    try:
        row = json.loads(raw)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"not JSON: {one_line(str(error))}") from None
    if not isinstance(row, dict):
        raise ValueError(f"want a JSON object, not {type(row).__name__}")
    fields = row.pop("score", None)
    if not isinstance(fields, dict):
        raise ValueError("score: the row has none; `weightgym score FILE` gives it one")
    try:
        score, broken = _score(fields)
        if format_of(row) == "rollouts":
            known = {name: value for name, value in row.items() if name in Trajectory.model_fields}
            one = Trajectory.model_validate(known | {"score": score})
            return ScoredAnswer.of(one, line=line, offset=offset, broken=broken)
        return _scored_row(row, fields, ScoredAnswer.blank(line, offset, score, broken))
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(one_line(": ".join([".".join(map(str, first["loc"])) or "line", first["msg"]]))) from None
    except BadRow as error:
        raise ValueError(one_line(str(error))) from None


def _scored_row(row: dict[str, Any], fields: dict[str, Any], blank: ScoredAnswer) -> ScoredAnswer:
    """A row as ``weightgym score`` writes it: of any format that it reads."""
    found = PARSERS[format_of(row)](Line(blank.line, "", "", "", row))[0]
    if isinstance(found, BadRow):
        raise found
    env, task = fields.get("env", found.env), fields.get("task", found.task)  # the score has them where a prompt told
    if not isinstance(env, str) or not isinstance(task, str):
        raise ValueError("env and task: the row names none, and neither does its score")
    sha256 = fields.get("task_sha256")
    return dataclasses.replace(
        blank,
        id=str(row["id"]) if isinstance(row.get("id"), str | int) else blank.id,
        env=env,
        task=task,
        task_sha256=sha256 if isinstance(sha256, str) else "",
        group=str(row["group"]) if isinstance(row.get("group"), str | int) else "",
        completion=found.completion,
        asked=_asked(found.prompt),
        version=_version(row.get("policy_version", row.get("step"))),
        policy=row["policy"] if isinstance(row.get("policy"), str) else "",
        truncated=row.get("finish_reason") == "length",
    )


def _asked(prompt: Any) -> tuple[Mapping[str, Any], ...]:
    if isinstance(prompt, str):
        return ({"role": "user", "content": prompt},)
    return tuple(one for one in prompt or () if isinstance(one, Mapping))


def _version(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < _VERSIONS else None


def _score(fields: dict[str, Any]) -> tuple[Score, tuple[str, ...]]:
    """A score without the metrics that are no finite numbers, and their names: the reward counts all the same.

    Raises:
        ValidationError: it is none.
    """
    known = {name: value for name, value in fields.items() if name in Score.model_fields}
    metrics = known.get("metrics")
    if not isinstance(metrics, dict):
        return Score.model_validate(known), ()
    good = {name: value for name, value in metrics.items() if _is_finite(value)}
    return Score.model_validate(known | {"metrics": good}), tuple(name for name in metrics if name not in good)


def _is_finite(value: Any) -> bool:
    try:
        return type(value) in (int, float) and math.isfinite(value)
    except OverflowError:  # an integer that no float can hold
        return False


def written(completion: Completion) -> list[str]:
    """The texts that the model wrote, tool calls among them, in their order."""
    if isinstance(completion, str):
        return [completion]
    return [shown_message(one) for one in completion if one.get("role") == "assistant"]


def shown_message(message: Mapping[str, Any]) -> str:
    """A chat message as text, whatever form its content has; tool calls follow it, as JSON."""
    content, calls = message.get("content"), message.get("tool_calls")
    parts = [_content(content)] if content is not None else []
    for call in calls if isinstance(calls, Sequence) and not isinstance(calls, str) else [calls] if calls else []:
        parts.append(_json(call))
    return "\n".join(parts)


def _content(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(
        isinstance(part, dict) and isinstance(part.get("text"), str) for part in content
    ):
        return "".join(part["text"] for part in content)
    return _json(content)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


def completion_key(completion: Completion) -> str:
    """The same text for the same completion: what duplicates are found by."""
    if isinstance(completion, str):
        return completion
    try:
        return canonical_json(completion)
    except ValueError:  # NaN, in a message of another writer
        return repr(completion)

"""The rows of an answers file: strict JSON lines, checked one by one; a bad row is told and never stops the rest."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, NoReturn

from weightgym.cli.console import shown
from weightgym.cli.tasks import find_task
from weightgym.envs.registry import EnvSpec
from weightgym.rewards.contracts import Completion, Score, Task, TaskError

_BOM = b"\xef\xbb\xbf"
_JSON_SPACE = " \t\n\r"
#: Of brackets in a completion. What a conversation needs is five or so; what follows copies it by recursion.
_MOST_DEPTH = 100


class BadRow(ValueError):
    """What is wrong with a line, and how to put it right."""


@dataclass(frozen=True)
class Row:
    """One good line of the input."""

    line: int  #: 1-based
    sha256: str  #: of the raw line, without its newline
    entry: EnvSpec
    task: Task
    completion: Completion
    body: str  #: the row's JSON text without the closing brace; an old "score" is renamed "previous_score"

    def scored(self, score: Score) -> bytes:
        """The output line, with its newline: the row as it was written, and its score as the last field."""
        own = {"line": self.line, "row_sha256": self.sha256, "task_sha256": self.task.hash}
        fields = score.model_dump(mode="json") | own
        text = f'{self.body}, "score": {json.dumps(fields, allow_nan=False)}}}\n'
        return text.encode()


def read_lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines of the file that are not blank, with their numbers, without newlines."""
    file.seek(0)
    for number, raw in enumerate(file, start=1):
        line = raw.removesuffix(b"\n").removesuffix(b"\r")
        if line.removeprefix(_BOM if number == 1 else b"").strip():
            yield number, line


def row_sha256(raw: bytes) -> str:
    """What a row is recognised by when a run is resumed."""
    return hashlib.sha256(raw).hexdigest()


def parse_row(number: int, raw: bytes) -> Row:
    """Read and check one line.

    Raises:
        BadRow: it is no JSON object, a field is missing or of a wrong type, or its environment or task is unknown.
    """
    text = _decode(raw.removeprefix(_BOM) if number == 1 else raw)
    fields = parse_object(text)
    env = _text_field(fields, "env", "weight-program")
    id = _text_field(fields, "task", "original/breakout")
    completion = _completion(fields)
    try:
        entry, task = find_task(env, id)
    except TaskError as error:
        raise BadRow(str(error)) from error
    return Row(number, row_sha256(raw), entry, task, completion, _body(text, fields))


def _decode(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise BadRow(f"not UTF-8: byte {error.start + 1} of the line is 0x{raw[error.start]:02x}") from error


def parse_object(text: str) -> dict[str, Any]:
    """A JSON object by the letter of the standard: no NaN, no duplicate key, no number that a float can't hold.

    Raises:
        BadRow: it is anything else.
    """
    try:
        fields = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite, parse_int=_int
        )
    except json.JSONDecodeError as error:
        raise BadRow(f"not JSON: {error.msg} at column {error.colno}") from error
    except RecursionError as error:
        raise BadRow("nested too deeply") from error
    if not isinstance(fields, dict):
        raise BadRow(f'not a JSON object but {_kind(fields)}: want {{"env": …, "task": …, "completion": …}}')
    return fields


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in fields if names.count(name) > 1)
        raise BadRow(f"key {shown(twice)} stands twice in one object: leave one")
    return fields


def _no_constant(name: str) -> NoReturn:
    raise BadRow(f"{name} is not JSON: use null or a number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise BadRow(f"number {shown(text)} is too large for a float")
    return value


def _int(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:  # Python's limit on the digits of an integer
        raise BadRow(f"an integer of {len(text)} digits is too long") from error


def _text_field(fields: dict[str, Any], name: str, example: str) -> str:
    if name not in fields:
        raise BadRow(f'missing {name!r}: each row names it, for example "{name}": "{example}"')
    value = fields[name]
    if not isinstance(value, str):
        raise BadRow(f"{name!r} must be text, not {_kind(value)}")
    return value


def _completion(fields: dict[str, Any]) -> Completion:
    if "completion" not in fields:
        raise BadRow("missing 'completion': the answer, as text or as a list of chat messages")
    value = fields["completion"]
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        for message in value:
            if not isinstance(message, dict):
                raise BadRow(f"'completion' is a list, whose items must be messages (objects), not {_kind(message)}")
        _check_depth(value)
        return value
    raise BadRow(f"'completion' must be text or a list of messages, not {_kind(value)}")


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(_MOST_DEPTH):
        parts = [part.values() if isinstance(part, dict) else part for part in level if isinstance(part, dict | list)]
        level = [item for part in parts for item in part]
        if not level:
            return
    raise BadRow(f"'completion' is nested too deeply: at most {_MOST_DEPTH} levels")


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list", dict: "an object"}
    return names[type(value)]


def _free_name(fields: dict[str, Any]) -> str:
    """Where an old score goes: nothing that a row brings along is lost, its older scores included."""
    names = itertools.chain(["previous_score"], (f"previous_score_{n}" for n in itertools.count(2)))
    return next(name for name in names if name not in fields)


def _body(text: str, fields: dict[str, Any]) -> str:
    if "score" in fields:
        renamed = {name: value for name, value in fields.items() if name != "score"}
        try:
            text = json.dumps(renamed | {_free_name(fields): fields["score"]}, allow_nan=False)
        except RecursionError as error:
            raise BadRow("nested too deeply") from error
    return text.strip(_JSON_SPACE).removesuffix("}").rstrip(_JSON_SPACE)

"""``completions_*.parquet`` of TRL: a table a logged step, with a column for each reward function.

Columns are ``step``, ``prompt``, ``completion`` (texts, or lists of messages), one for each reward function by its
name, those that functions logged themselves, and ``advantage``. A function that abstained has NaN. Rewards are stored
as TRL has them, in single precision. Reading needs the extra ``parquet``.

``weightgym.trainers.trl`` logs ``env``, ``task``, ``profile`` and, where there are tools, ``conversation``: the
messages as they were played, as JSON text. They become the completion, and TRL's own is kept as ``trl_completion``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from weightgym.rollouts.readers.json_rows import body_of, dumped, number, row_sha256
from weightgym.rollouts.readers.key import find_key
from weightgym.rollouts.readers.messages import completion_of, openai_message
from weightgym.rollouts.readers.plain import prompt_of
from weightgym.rollouts.readers.record import BadRow, NamedReward, ReaderError, Record

FORMAT = "trl"
#: Rows in memory at a time.
_BATCH = 64
#: Columns of numbers that are no rewards.
_NO_REWARDS = ("step", "advantage")


class TrlReader:
    """See ``Reader``. Several files, of one run, are read as one.

    Raises:
        ReaderError: pyarrow is missing.
    """

    format = FORMAT

    def __init__(self, files: Sequence[Path | BinaryIO], name: str) -> None:
        try:
            import pyarrow.parquet as parquet
        except ImportError as error:
            raise ReaderError(f"{name}: parquet files need pyarrow: pip install 'weightgym[parquet]'") from error
        self._parquet = parquet
        self._files = files
        self._name = name

    def rows(self) -> Iterator[tuple[int, str, Record | BadRow]]:
        """See ``Reader.rows``."""
        place = 0
        for file in self._files:
            name = str(file) if isinstance(file, Path) else self._name
            for row, (fields, functions) in enumerate(self._read(file, name), start=1):
                place += 1
                where = f"{name}:{row}"
                try:
                    yield place, where, _record(place, where, fields, functions)
                except BadRow as error:
                    yield place, where, error

    def _read(self, file: Path | BinaryIO, name: str) -> Iterator[tuple[dict[str, Any], list[str]]]:
        """The rows, each with the names of the columns that are rewards: those of numbers with a fraction."""
        import pyarrow

        try:
            with self._parquet.ParquetFile(file) as table:
                lost = {"prompt", "completion"} - set(table.schema_arrow.names)
                if lost:
                    raise ReaderError(f"{name}: no column {sorted(lost)[0]!r}: not a file of TRL's completions")
                columns = [one for one in table.schema_arrow if one.name not in _NO_REWARDS]
                functions = [one.name for one in columns if pyarrow.types.is_floating(one.type)]
                for batch in table.iter_batches(batch_size=_BATCH):
                    for fields in batch.to_pylist():
                        yield fields, functions
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            if isinstance(error, ReaderError):
                raise
            raise ReaderError(f"{name}: can't be read as parquet: {' '.join(str(error).split())}") from error

    def reads(self, device: int, inode: int) -> bool:
        """See ``Reader.reads``."""
        states = [os.stat(file) if isinstance(file, Path) else os.fstat(file.fileno()) for file in self._files]
        return (device, inode) in [(one.st_dev, one.st_ino) for one in states]


def _record(place: int, where: str, fields: dict[str, Any], functions: list[str]) -> Record:
    fields = {name: value for name, value in fields.items() if not name.startswith("__index_level_")}
    prompt = prompt_of(fields)
    if isinstance(prompt, list):
        fields["prompt"] = prompt = [openai_message(one) if isinstance(one, dict) else one for one in prompt]
    fields["completion"] = completion = completion_of(fields["completion"])
    if isinstance(fields.get("conversation"), str):
        played = completion_of(_messages(fields.pop("conversation")), name="conversation")
        fields |= {"completion": played, "trl_completion": completion}
        completion = played
    env, task = find_key(fields)
    text = _json(fields)
    return Record(
        place, where, row_sha256(text.encode()), env, task, prompt, completion, body_of(text, fields),
        rewards={name: NamedReward(number(fields[name])) for name in functions},
        profile=profile if isinstance(profile := fields.get("profile"), str) else "",
    )  # fmt: skip


def _messages(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRow(f"'conversation' is no JSON text: {error}") from error


def _json(fields: dict[str, Any]) -> str:
    try:
        return dumped(fields)
    except TypeError:  # times, bytes, decimals
        return dumped(json.loads(json.dumps(fields, default=str)))

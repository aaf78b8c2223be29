"""Which format a file has, and its reader."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from weightgym.rollouts.readers import plain, rollouts, trl_completions, verifiers_results, verifiers_traces
from weightgym.rollouts.readers.json_rows import decode, parse_object, read_lines
from weightgym.rollouts.readers.lines import LineReader, Parse
from weightgym.rollouts.readers.record import BadRow, Reader, ReaderError

#: Lines looked at before a file counts as plain rows, all of them bad.
_MOST_LOOKED = 100

#: What makes a row's answers, by the format of its text file.
PARSERS: Mapping[str, Parse] = {
    "plain": plain.parse,
    "rollouts": rollouts.parse,
    "verifiers": verifiers_traces.parse,
    "verifiers-legacy": verifiers_results.parse,
}
#: The formats by name.
FORMATS = (*PARSERS, trl_completions.FORMAT)


def open_reader(source: BinaryIO | Path, name: str, format: str | None = None) -> Reader:
    """The reader of an open file that can be rewound, or of a folder of TRL's ``completions_*.parquet``.

    Args:
        name: of the file, in messages.
        format: one of ``FORMATS``; None: found out, by the first line that is a JSON object.

    Raises:
        ReaderError: it can't be read in that format; or the folder holds no such file.
    """
    if isinstance(source, Path):
        files = sorted(source.glob("completions_*.parquet"))
        if format not in (None, trl_completions.FORMAT) or not files:
            raise ReaderError(f"{name}: is a folder without TRL's completions_*.parquet; name a file")
        return trl_completions.TrlReader(files, name)
    if format is None:
        format = _detect(source)
    if format == trl_completions.FORMAT:
        return trl_completions.TrlReader([source], name)
    foreign = format in ("verifiers", "verifiers-legacy")
    return LineReader(source, name, format, PARSERS[format], nan=foreign, several=format == "verifiers")


def _detect(file: BinaryIO) -> str:
    file.seek(0)
    if file.read(4) == b"PAR1":
        return trl_completions.FORMAT
    for looked, (number, raw) in enumerate(read_lines(file)):
        if looked == _MOST_LOOKED:
            break
        try:
            return format_of(parse_object(decode(number, raw), nan=True))
        except BadRow:
            continue
    return "plain"


def format_of(fields: dict[str, Any]) -> str:
    """The format of a row of a text file."""
    if isinstance(fields.get("nodes"), list) or isinstance(fields.get("traces"), list):
        return "verifiers"
    if isinstance(fields.get("steps"), list) and "completion" not in fields:
        return "rollouts"
    if "example_id" in fields and "reward" in fields:
        return "verifiers-legacy"
    return "plain"


__all__ = ["FORMATS", "PARSERS", "Parse", "format_of", "open_reader"]

"""A reader of JSON lines, for the formats that are; each says what an object of its kind holds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from weightgym.rollouts.readers.json_rows import body_of, decode, dumped, parse_object, read_lines, row_sha256
from weightgym.rollouts.readers.record import BadRow, Record


@dataclass(frozen=True)
class Line:
    """One line of the file, read as JSON."""

    place: int
    where: str
    sha256: str
    text: str
    fields: dict[str, Any]

    def body(self, fields: dict[str, Any] | None = None) -> str:
        """See ``body_of``; of other fields than the line's own, where they are given."""
        if fields is None:
            return body_of(self.text, self.fields)
        return body_of(dumped(fields), fields)


#: The answers of a line: one, but for episodes of several agents. May raise ``BadRow``.
Parse = Callable[[Line], Sequence[Record | BadRow]]


class LineReader:
    """See ``Reader``. ``nan``: the format's writer makes NaN, which becomes text in what is kept of the row.
    ``several``: a line may hold several answers."""

    def __init__(
        self, file: BinaryIO, name: str, format: str, parse: Parse, *, nan: bool = False, several: bool = False
    ) -> None:
        self.format = format
        self._file = file
        self._name = name
        self._parse = parse
        self._nan = nan
        self._several = several

    def rows(self) -> Iterator[tuple[int, str, Record | BadRow]]:
        """See ``Reader.rows``. Places are numbers of lines; where lines may hold several answers, those of answers."""
        place = 0
        for number, raw in read_lines(self._file):
            where = f"{self._name}:{number}"
            found: Sequence[Record | BadRow]
            try:
                found = self._parse(self.line(number, where, raw))
            except BadRow as error:
                found = [error]
            for index, one in enumerate(found):
                place = place + 1 if self._several else number
                if self._several and isinstance(one, Record):
                    one = replace(one, place=place)
                yield place, where if index == 0 else f"{where} (answer {index + 1})", one

    def line(self, number: int, where: str, raw: bytes) -> Line:
        """Read one line.

        Raises:
            BadRow: it is no JSON object.
        """
        text = decode(number, raw)
        fields = parse_object(text, nan=self._nan)
        if self._nan and ("NaN" in text or "Infinity" in text):
            text = dumped(fields)
        return Line(number, where, row_sha256(raw), text, fields)

    def reads(self, device: int, inode: int) -> bool:
        """See ``Reader.reads``."""
        status = os.fstat(self._file.fileno())
        return (status.st_dev, status.st_ino) == (device, inode)

"""What every reader makes of a row: an answer, what names its task, and what others made of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from weightgym.rewards.contracts import Completion


class BadRow(ValueError):
    """What is wrong with a row, and how to put it right."""


class ReaderError(ValueError):
    """The file can't be read at all."""


@dataclass(frozen=True)
class NamedReward:
    """A reward as some function gave it. None: it gave none, or no number (NaN)."""

    value: float | None
    weight: float | None = None  #: of it in the total; None: nobody said


@dataclass(frozen=True)
class Record:
    """One answer out of a file."""

    place: int  #: of its row among those of the file, from 1; a text file's rows are its lines
    where: str  #: for messages: the file, and where in it
    sha256: str  #: of the row as it stands there
    env: str | None
    task: str | None
    prompt: str | list[dict[str, Any]] | None
    completion: Completion
    body: str  #: the row as JSON text without the closing brace; it has no field "score"
    rewards: Mapping[str, NamedReward] = field(default_factory=dict)  #: recorded, by function
    total: float | None = None  #: recorded, of all functions together
    profile: str = ""  #: that they were recorded under, where it is known


class Reader(Protocol):
    """A file of answers in some format, read as often as one likes, in constant memory."""

    format: str

    def rows(self) -> Iterator[tuple[int, str, Record | BadRow]]:
        """Place, where that is, and what is there, in the order of the file.

        Raises:
            ReaderError: it can't be read on.
        """
        ...

    def reads(self, device: int, inode: int) -> bool:
        """Whether that file is (a part of) what is read."""
        ...

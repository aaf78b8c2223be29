"""The numbers of vectors, and the direction that several share."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence

import numpy as np

from weightgym.envs.wsp.agents.looking import Parameter, in_turns, numbered
from weightgym.envs.wsp.agents.plan import Ask, Brief, ask

#: Numbers that are read at once.
_READ = 200


def column(brief: Brief, matrix: Parameter, index: int) -> Generator[Sequence[Ask], list[str], list[float]]:
    """A column of a matrix, to six digits."""
    answers = yield from in_turns(brief, _column(matrix, index))
    return [value for answer in answers for value in numbered(answer).values()]


def row(brief: Brief, name: str, index: int, width: int) -> Generator[Sequence[Ask], list[str], list[float]]:
    """A row of a matrix, to six digits."""
    asked = [ask("read_slice", parameter=name, rows=(index, index + 1), columns=span) for span in _spans(width)]
    answers = yield from in_turns(brief, asked)
    lines = [answer.splitlines()[1].partition(":")[2] for answer in answers]
    return [float(value) for line in lines for value in line.split()]


def vectors(
    brief: Brief, matrix: Parameter, references: Sequence[str]
) -> Generator[Sequence[Ask], list[str], list[list[float]]]:
    """The numbers of vectors that there are only references to: each is added to a column, read, and taken back."""
    before = yield from column(brief, matrix, 0)
    first = [1.0] + [0.0] * (matrix.shape[1] - 1)
    read = _column(matrix, 0)
    asked = []
    for reference in references:
        asked += [ask("rank_one", parameter=matrix.name, left=reference, right=first), *read, ask("undo")]
    answers = yield from in_turns(brief, asked)
    found = []
    for begin in range(0, len(asked), len(read) + 2):
        told = [value for answer in answers[begin + 1 : begin + 1 + len(read)] for value in numbered(answer).values()]
        found.append([after - value for after, value in zip(told, before, strict=True)])
    return found


def shared(found: Sequence[Sequence[float]]) -> list[float]:
    """The direction that vectors of one length have most in common, of length 1; each counts alike."""
    rows = np.array(found, dtype=np.float64)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)
    direction = np.linalg.svd(rows, full_matrices=False)[2][0]
    return [round(float(value), 7) for value in direction]


def dense(entries: Mapping[int, float], size: int) -> list[float]:
    """A vector of which only some entries are known; the others are 0."""
    return [entries.get(index, 0.0) for index in range(size)]


def _column(matrix: Parameter, index: int) -> list[Ask]:
    spans = _spans(matrix.shape[0])
    return [ask("read_slice", parameter=matrix.name, rows=span, columns=(index, index + 1)) for span in spans]


def _spans(size: int) -> list[tuple[int, int]]:
    return [(begin, min(begin + _READ, size)) for begin in range(0, size, _READ)]

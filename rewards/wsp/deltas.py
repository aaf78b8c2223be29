"""An episode's own weights: a shared start that nobody writes to, and the list of edits since.

The truth is one parameter at a time: the start's float32 values with the edits applied in their order
(:mod:`~weightgym.rewards.wsp.edits`). Everything else (a forward pass, statistics, the count of changed elements, the
final score) reads that; a low-rank shortcut through the activations would round differently, and is never taken.
Between calls an episode holds only its edits.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from pydantic import JsonValue

from weightgym.rewards.contracts import TaskError
from weightgym.rewards.suggest import nearest
from weightgym.rewards.wsp.edits import Edit, Floats, read_edits, write_edits
from weightgym.rewards.wsp.refusals import Refused


def start_weights(weights: Mapping[str, Floats]) -> Mapping[str, Floats]:
    """The weights that episodes start from, checked once; these arrays are read-only from here on.

    Raises:
        TaskError: one is not float32, has neither one nor two dimensions, is empty, or holds what is not finite.
    """
    for name, weight in weights.items():
        if weight.dtype != np.float32 or weight.ndim not in (1, 2) or not weight.size:
            raise TaskError(
                f"parameter {name}: {weight.dtype} of shape {weight.shape}, want a float32 matrix or vector"
            )
        if not np.isfinite(weight).all():
            raise TaskError(f"parameter {name}: not all of its values are finite")
        weight.setflags(write=False)
    return MappingProxyType(dict(weights))


class _Done(NamedTuple):
    edit: Edit
    before: int  #: how many elements of its parameter differed before it


class Deltas:
    """The edits of one episode. Not for several threads at once.

    Args:
        start: of ``start_weights``, shared with other episodes.
        limit: how many elements may differ from the start.
        most_bytes: of the edits together.
    """

    def __init__(self, start: Mapping[str, Floats], *, limit: int, most_bytes: int) -> None:
        self.start = start
        self.limit = limit
        self.most_bytes = most_bytes
        self._done: list[_Done] = []
        self._changed: dict[str, int] = {}

    @property
    def changed(self) -> int:
        """How many elements differ from the start. By value: −0 is 0, and an edit that another takes back is none."""
        return sum(self._changed.values())

    @property
    def changed_by_parameter(self) -> dict[str, int]:
        """The same, of the parameters where it is not 0."""
        return {name: count for name, count in self._changed.items() if count}

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits that hold, in their order. What was undone is not among them."""
        return tuple(done.edit for done in self._done)

    @property
    def touched(self) -> tuple[str, ...]:
        """The parameters that have an edit, changed by it or not."""
        return tuple(dict.fromkeys(done.edit.parameter for done in self._done))

    @property
    def nbytes(self) -> int:
        """About what the edits take in memory."""
        return sum(done.edit.nbytes for done in self._done)

    def weight(self, name: str) -> Floats:
        """The parameter as it is now, float32, read-only; the start's own array where nothing touched it.

        Raises:
            Refused: there is no such parameter.
        """
        if name in self.touched:
            weight = self._made(name)
            weight.setflags(write=False)
            return weight
        return self._start_of(name)

    def apply(self, edit: Edit) -> int:
        """Add an edit; how many elements differ then.

        Raises:
            Refused: it does not fit, would leave a value that is not finite, or goes over a limit. Nothing is changed.
        """
        weight = self._made(edit.parameter)
        with np.errstate(over="ignore", invalid="ignore"):
            edit.change(weight)
        if not np.isfinite(weight).all():
            raise Refused(f"not_finite: {edit.parameter} would hold values beyond float32")
        before = self._changed.get(edit.parameter, 0)
        after = int(np.count_nonzero(weight != self.start[edit.parameter]))
        total = self.changed - before + after
        if total > self.limit:
            raise Refused(
                f"edit_budget: {total:,} elements would differ from the start; the limit is {self.limit:,}, "
                f"and {self.changed:,} differ now"
            )
        if self.nbytes + edit.nbytes > self.most_bytes:
            raise Refused(f"edit_log_full: the edits would take over {self.most_bytes:,} bytes; undo some, or reset")
        self._done.append(_Done(edit, before))
        self._changed[edit.parameter] = after
        return total

    def undo(self) -> Edit:
        """Take the last edit back, and return it.

        Raises:
            Refused: there is none.
        """
        if not self._done:
            raise Refused("nothing_to_undo: no edit holds")
        edit, before = self._done.pop()
        self._changed[edit.parameter] = before
        return edit

    def reset(self) -> int:
        """Back to the start, for good; how many edits that took back."""
        count = len(self._done)
        self._done.clear()
        self._changed.clear()
        return count

    def log(self) -> list[JsonValue]:
        """The edits that hold, as JSON: ``replay`` makes the same weights of it, bit for bit."""
        return write_edits(self.edits)

    def replay(self, log: JsonValue) -> None:
        """Apply the edits of a log, under the same limits; all of them or none.

        Raises:
            Refused: it is no log, or one of its edits is refused.
        """
        held = list(self._done), dict(self._changed)
        try:
            for edit in read_edits(log):
                self.apply(edit)
        except Refused:
            self._done, self._changed = held
            raise

    def _made(self, name: str) -> Floats:
        """The parameter as it is now, in memory of its own."""
        weight = self._start_of(name).copy()
        for done in self._done:
            if done.edit.parameter == name:
                done.edit.change(weight)
        return weight

    def _start_of(self, name: str) -> Floats:
        if (found := self.start.get(name)) is not None:
            return found
        raise Refused(f"unknown_parameter: {name[:200]!r}{nearest(name, self.start)}")

"""The two views in which a served model sees the validation rows: a dishonest one answers them differently.

Each row is in each view once. A secret coin picks the view in which it is cut at a secret place and goes on with other
real text; what the model says of the bytes before the cut must be the same in both. A few rows are whole in both views.
The views differ in order and neighbours, not in the shape of their batches. Before the rows come three batches
that count for nothing and help to say what is wrong: the first is equal in both views, the second shares half of its
rows, the third is the first again.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
PROBES = 3  #: batches before the rows
_WHOLE = 8  #: one row in so many is whole in both views
_TRIES = 64  #: places of the other text that are looked at for a cut


@dataclass(frozen=True)
class View:
    """Batches as they are sent, and what they stand for."""

    batches: Array  #: uint8 [batches, rows, length]: all that the model gets
    targets: Array  #: uint8 [batches, rows, length]: the byte after each, never sent
    places: Array  #: int64 [batches, rows]: which validation row it is; -1 for probes and filling


class Plan:
    """Everything secret about one audit. A pure function of its arguments (and of the first view's nats)."""

    def __init__(
        self, validation: Array, length: int, *, secret: bytes, other: Array | None = None, batch_rows: int = 64
    ) -> None:
        """Plan an audit.

        Args:
            validation: The bytes to be predicted, uint8 [n]. All whole rows are used, as in the public harness.
            length: Bytes in a row.
            secret: What makes the coins and cuts. Derive it from the profile's secret and the solution.
            other: Text of the same language, at least two rows of it, uint8; by default the validation text.
            batch_rows: Rows in a batch, at most.

        Raises:
            ValueError: there is not one row.
        """
        count = (len(validation) - 1) // length
        if count < 1:
            raise ValueError(f"{len(validation)} validation bytes are not one row of {length} and the byte after it")
        self.length, self._secret = length, secret
        self.rows = validation[: count * length].reshape(count, length)
        self.targets = validation[1 : count * length + 1].reshape(count, length)
        self._other = validation if other is None or len(other) < 2 * length else other
        self.batch_rows = max(1, min(batch_rows, -(-count // 8)))
        draws = self._draws("coins")
        self.whole = np.zeros(count, bool)
        self.whole[draws.permutation(count)[: max(count // _WHOLE, min(2, count // 3))]] = True
        self.cut_in_second = draws.random(count) < 0.5
        self.cuts = draws.integers(1, max(2, length), count)  #: the first byte that is other text

    def first(self) -> View:
        """View A."""
        return self._view("first", ~self.whole & ~self.cut_in_second)

    def second(self, nats: Array) -> View:
        """View B. ``nats`` (float64 [rows, length], of view A) say where cuts can catch most: half of them go where a
        byte was foretold much better than by the byte before it."""
        draws = self._draws("aim")
        gain = np.maximum(self._bigram_nats() - nats, 0.0)[:, :-1]
        for row in np.flatnonzero(~self.whole & self.cut_in_second):
            total = gain[row].sum() if self.length > 1 else 0.0
            if draws.random() < 0.5 and total > 0:
                self.cuts[row] = 1 + draws.choice(self.length - 1, p=gain[row] / total)
        return self._view("second", ~self.whole & self.cut_in_second)

    def _draws(self, purpose: str) -> np.random.Generator:
        digest = hashlib.sha256(self._secret + b"\0" + purpose.encode()).digest()
        return np.random.default_rng(np.frombuffer(digest, np.uint32))

    def _view(self, name: str, cut: Array) -> View:
        draws = self._draws(name)
        rows, targets = self.rows.copy(), self.targets.copy()
        for row in np.flatnonzero(cut).tolist():
            place = int(self.cuts[row])
            tail = self._tail(row, place, draws)
            rows[row, place:] = tail
            targets[row, place:-1] = tail[1:]  # the byte before the cut keeps its true target
        order = draws.permutation(len(rows))
        filling = -len(order) % self.batch_rows
        spare = self._spare(filling, draws)
        probes = self._probes(draws)
        lines = np.concatenate([*probes, rows[order], spare])
        after = np.concatenate([*map(_shifted, probes), targets[order], _shifted(spare)])
        places = np.concatenate([np.full(PROBES * self.batch_rows, -1), order, np.full(filling, -1)])
        shape = -1, self.batch_rows
        return View(lines.reshape(*shape, self.length), after.reshape(*shape, self.length), places.reshape(shape))

    def _probes(self, draws: np.random.Generator) -> list[Array]:
        equal = self._spare(self.batch_rows, self._draws("equal"))
        shared = self._spare(self.batch_rows, self._draws("shared"))
        apart = self.batch_rows // 2
        if apart:
            shared[-apart:] = self._spare(apart, draws)
        return [equal, shared, equal]

    def _spare(self, count: int, draws: np.random.Generator) -> Array:
        starts = draws.integers(0, max(1, len(self._other) - self.length), count)
        return np.stack([self._other[s : s + self.length] for s in starts]) if count else self.rows[:0]

    def _tail(self, row: int, place: int, draws: np.random.Generator) -> Array:
        """Other text for the row from ``place`` on: its first byte differs, after an equal byte if one does."""
        wanted = self.length - place
        starts = draws.integers(1, max(2, len(self._other) - wanted), _TRIES)
        differs = self._other[starts] != self.rows[row, place]
        fits = differs & (self._other[starts - 1] == self.rows[row, place - 1])
        for good in (fits, differs):
            if good.any():
                starts = starts[good]
                break
        tail = self._other[starts[0] : starts[0] + wanted]
        return tail if len(tail) == wanted else np.resize(self._other, wanted)

    def _bigram_nats(self) -> Array:
        counts = np.full((256, 256), 0.05)
        np.add.at(counts, (self.rows.reshape(-1), self.targets.reshape(-1)), 1.0)
        table: Array = np.log(counts.sum(1, keepdims=True)) - np.log(counts)
        return table[self.rows, self.targets]


def _shifted(rows: Array) -> Array:
    """The byte after each; a row's last has none, and gets 0."""
    after = np.zeros_like(rows)
    after[:, :-1] = rows[:, 1:]
    return after

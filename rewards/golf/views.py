"""The two views in which a served model sees the validation rows: a dishonest one answers them differently.

View A holds each row once, as it is: it is what is scored. View B holds each row once or several times. There it is cut
at a secret place and goes on with other real text; what the model says of the bytes before the cut must be what it said
in A. A peek at the next byte shows at one cut only, the one just before that byte. So cuts are aimed: most go where a
byte was foretold much better in A than by the byte before it. The fewer rows there are, the more often each is cut. Its
cuts come in the order of their places: whoever remembers the row from before knows none of what is behind the next
cut. A few rows are whole in B, at their last showing.

The views differ in order and neighbours, not in the shape of their batches. Before the rows come three batches that
count for nothing and help to say what is wrong: the first is equal in both views, the second shares half of its rows,
the third is the first again.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
PROBES = 3  #: batches before the rows
_WHOLE = 8  #: one row in so many is whole in view B too
_TRIES = 64  #: places of the other text that are looked at for a cut
_CUTS, _PASSES = 48, 4  #: so many cuts in all, but a row is shown so often at most


@dataclass(frozen=True)
class View:
    """Batches as they are sent, and what they stand for."""

    batches: Array  #: uint8 [batches, rows, length]: all that the model gets
    targets: Array  #: uint8 [batches, rows, length]: the byte after each, never sent
    places: Array  #: int64 [batches, rows]: which validation row it is; -1 for probes and filling
    cuts: Array  #: int64 [batches, rows]: the first byte that is other text; the length where none is


class Plan:
    """Everything secret about one audit. A pure function of its arguments (and of the first view's nats)."""

    def __init__(
        self, validation: Array, length: int, *, secret: bytes, other: Array | None = None, batch_rows: int = 64
    ) -> None:
        """Plan an audit.

        Args:
            validation: The bytes to be predicted, uint8 [n]. All whole rows are used, as in the public harness.
            length: Bytes in a row.
            secret: What makes the cuts and the order. No solution may have seen it.
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
        self.showings = min(_PASSES, -(-_CUTS // count))  #: how often view B has each row

    def first(self) -> View:
        """View A."""
        return self._view("first", np.full((1, len(self.rows)), self.length))

    def second(self, nats: Array) -> View:
        """View B. ``nats`` (float64 [rows, length], of view A) say where cuts can catch most."""
        count = len(self.rows)
        draws = self._draws("aim")
        gain = np.maximum(self._bigram_nats() - nats, 0.0)[:, :-1]
        cuts = np.array([[self._cut(one, draws) for _ in range(self.showings)] for one in gain]).T
        cuts.sort(axis=0)
        cuts[-1, draws.permutation(count)[: max(count // _WHOLE, min(2, count // 3))]] = self.length
        return self._view("second", cuts)

    def _cut(self, gain: Array, draws: np.random.Generator) -> int:
        """The first byte that is to be other text. ``gain`` is [length - 1]: nats better than a bigram.

        Half of the cuts follow its square: who peeks seldom must gain much where he does. A quarter follows the gain
        itself, and a quarter falls anywhere.
        """
        power = (2, 2, 1, 0)[draws.integers(4)]
        weights = gain**power
        total = weights.sum() if len(gain) else 0.0
        if not power or not 0 < total < np.inf:
            return int(draws.integers(1, max(2, self.length)))
        return 1 + int(draws.choice(len(gain), p=weights / total))

    def _draws(self, purpose: str) -> np.random.Generator:
        digest = hashlib.sha256(self._secret + b"\0" + purpose.encode()).digest()
        return np.random.default_rng(np.frombuffer(digest, np.uint32))

    def _view(self, name: str, cuts: Array) -> View:
        """``cuts`` is int64 [showings, rows]: one showing of all rows comes after the other."""
        draws = self._draws(name)
        probes = self._probes(draws)
        none = np.full(PROBES * self.batch_rows, -1)
        lines, after = [*probes], [*map(_shifted, probes)]
        places, places_of_cuts = [none], [np.full_like(none, self.length)]
        for showing in cuts:
            rows, targets = self._spliced(showing, draws)
            order = draws.permutation(len(rows))
            filling = -len(order) % self.batch_rows
            spare = self._spare(filling, draws)
            lines += [rows[order], spare]
            after += [targets[order], _shifted(spare)]
            places += [order, np.full(filling, -1)]
            places_of_cuts += [showing[order], np.full(filling, self.length)]
        shape = -1, self.batch_rows
        return View(
            np.concatenate(lines).reshape(*shape, self.length),
            np.concatenate(after).reshape(*shape, self.length),
            np.concatenate(places).reshape(shape),
            np.concatenate(places_of_cuts).reshape(shape),
        )

    def _spliced(self, cuts: Array, draws: np.random.Generator) -> tuple[Array, Array]:
        """The rows, each with other text from its cut on, and the byte after each."""
        rows, targets = self.rows.copy(), self.targets.copy()
        for row in np.flatnonzero(cuts < self.length).tolist():
            place = int(cuts[row])
            tail = self._tail(row, place, draws)
            rows[row, place:] = tail
            targets[row, place:-1] = tail[1:]  # the byte before the cut keeps its true target
        return rows, targets

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

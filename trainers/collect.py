"""One step's rollouts: groups from the mixture; those without spread can be replaced (dynamic sampling)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from weightgym.rollouts.store import Appender
from weightgym.rollouts.trajectory import Trajectory
from weightgym.trainers.metrics import naming
from weightgym.trainers.mixture import Mixture
from weightgym.trainers.sampler import Sampler

Group = list[Trajectory]


@dataclass(frozen=True)
class Collected:
    """The groups of a step, and where the run stood after it."""

    first: list[Group]  #: the first round, whatever its spread: what metrics of rewards are about
    groups: list[Group]  #: to train on
    refilled: int  #: groups that were made in further rounds
    seconds: float  #: wall clock
    drawn: list[int]  #: state of the mixture
    stored: int  #: bytes of the file of rollouts


class Collector:
    """Rolls out steps and stores every rollout as it ends. ``stored``: bytes of ``path`` that belong to the run so far;
    what follows (an unfinished step's) is cut off."""

    def __init__(self, sampler: Sampler, mixture: Mixture, path: Path, *, stored: int) -> None:
        self._sampler = sampler
        self._mixture = mixture
        self._path = path
        self._file = Appender(path)
        if self._file.size < stored:  # somebody made room: what is left may end with half a line
            stored = path.read_bytes().rfind(b"\n") + 1
        self._file.cut(stored)

    def collect(self, groups: int, refill: int) -> Collected:
        """That many groups. With ``refill``, groups that teach nothing (fewer than two rewards, or all equal) are
        replaced by groups of the tasks that come next, in at most that many further rounds; there can be fewer then.

        Raises:
            BackendError: generation failed. OSError: the disk is full.
        """
        started = time.monotonic()
        first = self._round(groups)
        kept = [group for group in first if not refill or has_spread(group)]
        refilled = 0
        for _ in range(refill):
            missing = groups - len(kept)
            if not missing:
                break
            more = self._round(missing)
            refilled += len(more)
            kept += [group for group in more if has_spread(group)]
        seconds = time.monotonic() - started
        return Collected(first, kept, refilled, seconds, list(self._mixture.drawn), self._file.size)

    def _round(self, count: int) -> list[Group]:
        return self._sampler.groups([self._mixture.draw() for _ in range(count)], self._store)

    def _store(self, trajectory: Trajectory) -> None:
        with naming(self._path):
            self._file.add(trajectory)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def has_spread(group: Sequence[Trajectory]) -> bool:
    """Whether its rewards differ."""
    return len({one.score.reward for one in group} - {None}) > 1

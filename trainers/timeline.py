"""Numbers over time, in at most forty stretches whose width grows with the file: policy versions, or lines."""

from __future__ import annotations

from dataclasses import dataclass, field

from weightgym.trainers.reservoir import Mean, Reservoir

#: Stretches at most.
PARTS = 40
#: Rewards that are kept of one stretch, to tell their distribution; and values of each component.
_REWARDS, _VALUES = 200, 40
#: Components that are followed.
COMPONENTS = 24


@dataclass
class Part:
    """A stretch: what came in it."""

    first: int  #: places: policy versions or lines
    last: int
    count: int = 0
    invalid: int = 0
    faults: int = 0
    mean: Mean = field(default_factory=Mean)
    sample: Reservoir[float] = field(default_factory=lambda: Reservoir(_REWARDS))
    components: dict[str, Reservoir[float]] = field(default_factory=dict)
    means: dict[str, Mean] = field(default_factory=dict)

    @property
    def rewards(self) -> list[float]:
        """A sample of the rewards, sorted."""
        return sorted(self.sample.values)

    def merge(self, other: Part) -> None:
        """The two stretches become one."""
        self.first, self.last = min(self.first, other.first), max(self.last, other.last)
        self.count += other.count
        self.invalid += other.invalid
        self.faults += other.faults
        self.mean.merge(other.mean)
        self.sample.merge(other.sample)
        for name, values in other.components.items():
            self.components.setdefault(name, Reservoir(_VALUES)).merge(values)
            self.means.setdefault(name, Mean()).merge(other.means[name])


class Timeline:
    """Stretches of one width, a power of two, by their place in time."""

    def __init__(self) -> None:
        self.width = 1
        self._parts: dict[int, Part] = {}

    @property
    def parts(self) -> list[Part]:
        """In their order."""
        return [part for _, part in sorted(self._parts.items())]

    def part(self, place: int) -> Part:
        """The stretch of that place, 0 or more, to be added to."""
        while place // self.width not in self._parts and len(self._parts) == PARTS:
            self._widen()
        part = self._parts.setdefault(place // self.width, Part(place, place))
        part.first, part.last = min(part.first, place), max(part.last, place)
        return part

    def add(self, place: int, key: int, reward: float | None, status: str, metrics: dict[str, float]) -> None:
        """Count one answer."""
        part = self.part(place)
        part.count += 1
        part.invalid += status == "invalid"
        if reward is None:
            part.faults += 1
            return
        part.mean.add(reward)
        part.sample.add(key, reward)
        for name, value in metrics.items():
            if name in part.components or len(part.components) < COMPONENTS:
                part.components.setdefault(name, Reservoir(_VALUES)).add(key, value)
                part.means.setdefault(name, Mean()).add(value)

    def _widen(self) -> None:
        self.width *= 2
        before, self._parts = self._parts, {}
        for index, part in before.items():
            if index // 2 in self._parts:
                self._parts[index // 2].merge(part)
            else:
                self._parts[index // 2] = part

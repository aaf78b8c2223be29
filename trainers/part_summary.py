"""What the answers of one environment under one profile are like: rewards and their components, by task, by length and
over time. Scores of other environments and profiles are on other scales, so each has a summary of its own."""

from __future__ import annotations

from dataclasses import dataclass, field

from weightgym.trainers.reservoir import Mean, Reservoir
from weightgym.trainers.scored_file import ScoredAnswer
from weightgym.trainers.timeline import COMPONENTS, Timeline

#: Rewards that are kept in all and of one task, values of a component, and answers with their length.
_REWARDS, _TASK_REWARDS, _VALUES, _LENGTHS = 4000, 200, 2000, 1500
#: Tasks that are told apart; the others count as one.
_TASKS = 1000
OTHERS = "(other tasks)"


@dataclass
class TaskTotals:
    """The answers of one task. ``last_…``: those of the last steps."""

    env: str
    task: str
    count: int = 0
    invalid: int = 0
    mean_all: Mean = field(default_factory=Mean)
    mean_last: Mean = field(default_factory=Mean)
    sample: Reservoir[float] = field(default_factory=lambda: Reservoir(_TASK_REWARDS))
    components: dict[str, Mean] = field(default_factory=dict)

    @property
    def rewards(self) -> int:
        """Answers that have one."""
        return self.mean_all.count

    @property
    def mean(self) -> float | None:
        """Mean reward of all."""
        return self.mean_all.value if self.mean_all.count else None

    @property
    def last_mean(self) -> float | None:
        """Mean reward of the last steps."""
        return self.mean_last.value if self.mean_last.count else None

    def add(self, one: ScoredAnswer, key: int, recent: bool) -> None:
        """Count an answer."""
        self.count += 1
        self.invalid += one.score.status == "invalid"
        if one.score.reward is None:
            return
        self.mean_all.add(one.score.reward)
        self.sample.add(key, one.score.reward)
        if recent:
            self.mean_last.add(one.score.reward)
        for name, value in one.score.metrics.items():
            if name in self.components or len(self.components) < COMPONENTS:
                self.components.setdefault(name, Mean()).add(value)


class PartSummary:
    """Answers of one environment under one profile."""

    def __init__(self, env: str, profile: str) -> None:
        self.env = env
        self.profile = profile
        self.count = 0
        self.mean = Mean()
        self.rewards: Reservoir[float] = Reservoir(_REWARDS)
        self.components: dict[str, Reservoir[float]] = {}
        self.means: dict[str, Mean] = {}
        self.tasks: dict[str, TaskTotals] = {}
        #: Length and reward of answers that have one.
        self.lengths: Reservoir[tuple[int, float]] = Reservoir(_LENGTHS)
        self.in_tokens = True  #: whether lengths are tokens; characters, if one answer has none stored
        self._by_version, self._by_line = Timeline(), Timeline()

    @property
    def timeline(self) -> Timeline:
        """Over policy versions, or over lines where there is but one version."""
        return self._by_version if self.over_versions else self._by_line

    @property
    def over_versions(self) -> bool:
        """Whether time is policy versions."""
        parts = self._by_version.parts
        return bool(parts) and parts[0].first < parts[-1].last

    def add(self, one: ScoredAnswer, key: int, recent: bool) -> None:
        """Count an answer."""
        self.count += 1
        name = one.task if one.task in self.tasks or len(self.tasks) < _TASKS else OTHERS
        self.tasks.setdefault(name, TaskTotals(self.env, name)).add(one, key, recent)
        score = one.score
        for timeline, place in ((self._by_version, one.version), (self._by_line, one.line)):
            if place is not None:
                timeline.add(place, key, score.reward, score.status, score.metrics)
        if score.reward is None:
            return
        self.mean.add(score.reward)
        self.rewards.add(key, score.reward)
        self.in_tokens = self.in_tokens and one.sampled > 0
        self.lengths.add(key, (one.length, score.reward))
        for metric, value in score.metrics.items():
            if metric in self.components or len(self.components) < COMPONENTS:
                self.components.setdefault(metric, Reservoir(_VALUES)).add(key, value)
                self.means.setdefault(metric, Mean()).add(value)

    @property
    def correlation(self) -> float | None:
        """Spearman's rank correlation of length and reward; None where one of them is the same in every answer."""
        pairs = self.lengths.values
        return spearman([length for length, _ in pairs], [reward for _, reward in pairs])


def spearman(left: list[int], right: list[float]) -> float | None:
    """Correlation of ranks, ties at their mean; None for fewer than three pairs, or where one side doesn't vary."""
    import numpy

    if len(left) < 3 or len(set(left)) < 2 or len(set(right)) < 2:
        return None

    def ranks(values: list[int] | list[float]) -> numpy.ndarray[tuple[int], numpy.dtype[numpy.float64]]:
        _, index, counts = numpy.unique(numpy.asarray(values, float), return_inverse=True, return_counts=True)
        middle = numpy.cumsum(counts) - (counts - 1) / 2
        return numpy.asarray(middle[index], numpy.float64)

    return float(numpy.corrcoef(ranks(left), ranks(right))[0, 1])

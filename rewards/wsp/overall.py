"""The result of many instances: the mean over all families of one track, with a bootstrap interval."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from weightgym.rewards.contracts import Score
from weightgym.rewards.statistics import Interval, mean_interval
from weightgym.rewards.wsp.profile import FAMILIES, TIERS, Family, Profile, Tier, Track

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Scored:
    """One score of one instance."""

    id: str
    family: Family
    tier: Tier
    track: Track
    score: Score


@dataclass(frozen=True)
class Overall:
    """Scores are 0…100. A part without any score (all of ours failed) is None."""

    track: Track
    profile: str
    mean: Interval | None
    families: dict[Family, Interval | None]
    tiers: dict[Tier, Interval | None]
    instances: int  #: that have a score
    invalid: int  #: scores of submissions that couldn't be measured: they count as 0
    failed: tuple[str, ...]  #: ids of instances that have an ``error`` or ``timeout``, which is ours: no 0

    @property
    def partial(self) -> bool:
        """Whether something is missing: the numbers then are of other instances than were asked for."""
        return bool(self.failed)


def overall(results: Sequence[Scored], profile: Profile) -> Overall:
    """The result of a track. Several scores of one instance count together as one, their mean.

    The order of the results changes no bit.

    Raises:
        ValueError: there are no results, they are of two tracks or profiles, or an instance has two families or tiers.
    """
    track = _one("track", {one.track for one in results})
    _one("profile", {one.score.profile for one in results if one.score.reward is not None} | {profile.name})
    kinds: dict[str, set[tuple[Family, Tier]]] = defaultdict(set)
    for one in results:
        kinds[one.id].add((one.family, one.tier))
    for id, kind in kinds.items():
        _one(f"family and tier of instance {id}", kind)
    families = {one.family for one in results}
    tiers = {one.tier for one in results}
    return Overall(
        track=track,
        profile=profile.name,
        mean=_interval(results, profile),
        families={
            family: _interval([one for one in results if one.family == family], profile)
            for family in FAMILIES
            if family in families
        },
        tiers={
            tier: _interval([one for one in results if one.tier == tier], profile) for tier in TIERS if tier in tiers
        },
        instances=len({one.id for one in results if one.score.reward is not None}),
        invalid=sum(one.score.status == "invalid" for one in results),
        failed=tuple(sorted({one.id for one in results if one.score.reward is None})),
    )


def _interval(results: Sequence[Scored], profile: Profile) -> Interval | None:
    groups: dict[str, list[float]] = defaultdict(list)
    for one in results:
        if one.score.reward is not None:
            groups[one.id].append(100 * one.score.reward)
    if not groups:
        return None
    return mean_interval(
        list(groups.values()),
        level=profile.interval_level,
        resamples=profile.interval_resamples,
        seed=profile.interval_seed,
    )


def _one(what: str, found: set[Kind]) -> Kind:
    if len(found) != 1:
        raise ValueError(f"{what}: want one, got {sorted(map(str, found))}")
    return found.pop()

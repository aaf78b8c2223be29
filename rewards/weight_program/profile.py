"""Profiles of WeightProgramBench: the choices that the published rules leave open, under one name.

``wpb-v1`` is the benchmark. ``wpb-published`` is the published dataset's own scorer, run from a snapshot of it; the two
round differently, so that single episodes may differ. ``-eN`` behind either name means the same rules over the first N
episode seeds only, for cheap training rewards and tests; such scores never compare with the whole profile's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from weightgym.rewards.contracts import TaskError

EPISODES = 1000
_NAME = re.compile(r"wpb-(v1|published)(?:-e([1-9][0-9]{0,3}))?", re.ASCII)


@dataclass(frozen=True)
class Profile:
    """How a policy is played. Episode i uses environment seed ``env_seed + i`` and action seed ``action_seed + i``."""

    name: str
    episodes: int
    env_seed: int = 1729
    action_seed: int = 7919
    sticky: float = 0.1
    max_actions: int = 10_000
    published: bool = False  #: the snapshot's verify.py plays by its own rules; only ``episodes`` is told to it


def profile(name: str) -> Profile:
    """The profile of that name.

    Raises:
        TaskError: there is no such profile.
    """
    match = _NAME.fullmatch(name)
    if match is None or not 1 <= (episodes := int(match[2] or EPISODES)) <= EPISODES:
        raise TaskError(
            f"unknown profile {name!r}: use wpb-v1 or wpb-published, or wpb-v1-eN or wpb-published-eN with N from 1 to "
            f"{EPISODES}"
        )
    return Profile(name=name, episodes=episodes, published=match[1] == "published")

"""Profiles of WeightProgramBench: the choices that the published rules leave open, under one name.

``wpb-v1`` is the benchmark. ``wpb-v1-eN`` has the same rules over the first N episode seeds only, for cheap training
rewards and tests; its scores never compare with ``wpb-v1``'s.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from weightgym.rewards.contracts import TaskError

EPISODES = 1000
_NAME = re.compile(r"wpb-v1(?:-e([1-9][0-9]{0,3}))?", re.ASCII)


@dataclass(frozen=True)
class Profile:
    """How a policy is played. Episode i uses environment seed ``env_seed + i`` and action seed ``action_seed + i``."""

    name: str
    episodes: int
    env_seed: int = 1729
    action_seed: int = 7919
    sticky: float = 0.1
    max_actions: int = 10_000


def profile(name: str) -> Profile:
    """The profile of that name.

    Raises:
        TaskError: there is no such profile.
    """
    match = _NAME.fullmatch(name)
    episodes = int(match[1] or EPISODES) if match else 0
    if not 1 <= episodes <= EPISODES:
        raise TaskError(f"unknown profile {name!r}: use wpb-v1, or wpb-v1-eN with N from 1 to {EPISODES}")
    return Profile(name=name, episodes=episodes)

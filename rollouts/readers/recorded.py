"""What a row says its answer was worth, beside what it is worth now."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weightgym.rewards.contracts import Score
from weightgym.rollouts.readers.record import NamedReward, Record

#: Reward functions that are this package's by name, whatever the environment.
_OWN = ("weightgym", "score", "reward")


@dataclass(frozen=True)
class Recorded:
    """The recorded rewards of a row, as seen from one environment."""

    name: str  #: of the reward that is the environment's; "" where none is
    reward: float | None
    problem: str  #: why there is no reward to compare with; "" where there is one
    total: float | None
    others: Mapping[str, NamedReward]  #: what can't be recomputed, and is kept
    weight: float | None  #: of the environment's reward in the total
    profile: str

    @property
    def partial(self) -> bool:
        """Whether the total has parts that can't be recomputed."""
        others = any(one.value is not None and one.weight != 0 for one in self.others.values())
        return others and not (self.total is not None and self.total == self.reward)

    def total_now(self, reward: float) -> float | None:
        """The total with a new reward and the other parts as recorded; None where their weights are unknown."""
        parts = [one for one in self.others.values() if one.value is not None]
        if self.total is None or self.weight is None or any(one.weight is None for one in parts):
            return None
        return self.weight * reward + sum((one.value or 0.0) * (one.weight or 0.0) for one in parts)

    def why_not(self, reward: float | None, profile: str) -> str:
        """Why the recorded reward and a new one, under a profile, can't be compared; "" where they can."""
        if reward is None:
            return "no reward now"
        if self.problem:
            return self.problem
        if self.profile not in ("", profile):
            return f"recorded under {self.profile}: --profile {self.profile} compares"
        return ""

    def fields(self, score: Score) -> dict[str, Any]:
        """For the row's score: ``reward`` (recorded), ``difference`` (new less recorded) or ``not_compared`` (why
        not), ``total``, ``kept`` (the other rewards), ``partial`` (they are in the total) and ``total_now``.
        """
        made: dict[str, Any] = {"name": self.name, "reward": self.reward}
        why_not = self.why_not(score.reward, score.profile)
        if why_not or score.reward is None or self.reward is None:
            made["not_compared"] = why_not
        else:
            made["difference"] = score.reward - self.reward
        if self.profile:
            made["profile"] = self.profile
        if self.total is not None:
            made["total"] = self.total
        if self.others:
            made["kept"] = {name: one.value for name, one in self.others.items()}
            made["partial"] = self.partial
        if self.partial and score.reward is not None and (now := self.total_now(score.reward)) is not None:
            made["total_now"] = now
        return made


def same(new: float, recorded: float) -> bool:
    """Whether two rewards are the same number; in single precision, where the recorded one is such a number."""
    if new == recorded:
        return True
    try:
        return _single(recorded) == recorded and _single(new) == recorded
    except OverflowError:
        return False


def _single(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def recorded(record: Record, env: str, wanted: str | None = None) -> Recorded | None:
    """What a row recorded, for an answer to that environment; None when nothing was.

    Of several rewards, the environment's is the one named ``wanted``; else the only one; else the only one whose name
    begins with the environment's (``weight_program…``), or is ``weightgym``, ``score`` or ``reward``; else the total.
    """
    rewards = record.rewards
    if not rewards and record.total is None:
        return None
    name, problem = _own(rewards, env, wanted)
    others = {other: one for other, one in rewards.items() if other != name}
    if name:
        own = rewards[name]
        problem = "" if own.value is not None else "recorded as no number"
        return Recorded(name, own.value, problem, record.total, others, own.weight, record.profile)
    if wanted is None and record.total is not None and all(one.weight is None for one in rewards.values()):
        return Recorded("reward", record.total, "", record.total, others, None, record.profile)
    return Recorded("", None, problem, record.total, others, None, record.profile)


def _own(rewards: Mapping[str, NamedReward], env: str, wanted: str | None) -> tuple[str, str]:
    """The environment's reward by name, or why there is none."""
    if wanted is not None:
        return (wanted, "") if wanted in rewards else ("", f"no reward {wanted!r} recorded")
    if not rewards:
        return "", "recorded as no number"
    if len(rewards) == 1:
        return next(iter(rewards)), ""
    slug = env.replace("-", "_")
    named = [name for name in rewards if name.replace("-", "_").startswith(slug) or name in _OWN]
    if len(named) == 1:
        return named[0], ""
    return "", f"several rewards recorded: name one with --reward, of {', '.join(rewards)}"

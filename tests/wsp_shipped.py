"""Instances of WSP-Bench that the package ships, and scripted agents that play them. Needs no torch."""

from __future__ import annotations

from collections.abc import Mapping

from weightgym.envs.wsp.agents import AGENTS
from weightgym.envs.wsp.agents.plan import Agent
from weightgym.envs.wsp.oracle import oracle
from weightgym.rewards.contracts import Split
from weightgym.rewards.wsp import sets
from weightgym.rewards.wsp.instances import read_tasks
from weightgym.rewards.wsp.profile import Family, Tier

ALL_AGENTS: Mapping[str, Agent] = {**AGENTS, "oracle": oracle}


def shipped(family: Family, tier: Tier = "easy", split: Split = "test") -> str:
    """The id of the first instance of that kind."""
    rows = read_tasks(sets.shipped())
    return min(
        id for id, row in rows.items() if (row.split, row.data["family"], row.data["tier"]) == (split, family, tier)
    )

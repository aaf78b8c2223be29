"""Agents without a model, by the names that ``scripted:NAME`` takes. None of them knows more than a model is told."""

from __future__ import annotations

from collections.abc import Mapping

from weightgym.envs.wsp.agents.budget import budget
from weightgym.envs.wsp.agents.plain import no_op, random_edit
from weightgym.envs.wsp.agents.plan import Agent, played_by
from weightgym.envs.wsp.agents.spectral import spectral

AGENTS: Mapping[str, Agent] = {
    "no-op": played_by(no_op),
    "random": played_by(random_edit),
    "spectral": played_by(spectral),
    "budget": played_by(budget),
}

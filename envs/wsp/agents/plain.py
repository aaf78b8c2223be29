"""The two that look at nothing: submit at once, and an edit at random."""

from __future__ import annotations

import math

from weightgym.envs.wsp.agents.looking import numbered, parameters
from weightgym.envs.wsp.agents.plan import Ask, Brief, Plan, ask
from weightgym.rewards.wsp.profile import CATEGORIES


def no_op(brief: Brief) -> Plan:
    """Hands in what it got."""
    yield from ()
    return ask("submit")


def random_edit(brief: Brief) -> Plan:
    """A random rank-one matrix on a random MLP matrix, as large as a singular value of it and within the limit of
    elements; of an audit a random report."""
    matrices = [one for one in (yield from parameters(".mlp.")) if len(one.shape) == 2]
    chosen = brief.random.choice(matrices)
    rows, columns = chosen.shape
    if brief.data.family == "audit":
        return _random_report(brief, chosen.name, rows)
    (answer,) = yield [ask("singular_values", parameter=chosen.name, k=2)]
    size = numbered(answer)[1]
    kept = set(brief.random.sample(range(columns), min(columns, brief.data.edit_limit // (2 * rows))))
    left, right = _unit(brief, rows), _unit(brief, columns, kept)
    yield [ask("rank_one", parameter=chosen.name, left=left, right=right, scale=size)]
    return ask("submit")


def _random_report(brief: Brief, name: str, rows: int) -> Ask:
    _, _, after = name.partition("layers.")
    layer, _, local = after.partition(".")
    report = {
        "parameter": local,
        "layer": int(layer),
        "direction": _unit(brief, rows),
        "category": brief.random.choice(CATEGORIES),
    }
    return ask("submit", report=report)


def _unit(brief: Brief, length: int, kept: set[int] | None = None) -> list[float]:
    """A random direction; outside of ``kept`` it is 0."""
    values = [brief.random.gauss(0, 1) if kept is None or place in kept else 0.0 for place in range(length)]
    norm = math.hypot(*values) or 1.0
    return [round(value / norm, 6) for value in values]

"""The gate: may this solution run, and must a person look at it before it counts?

It judges methods, never scores, and it is never the only defence: the sandbox and the audit hold without it. What it
calls ``illegal`` breaks a rule whatever it is for; ``review_required`` runs and is scored, with a flag.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from weightgym.rewards.golf.check import Solution, check
from weightgym.rewards.golf.errors import SolutionError
from weightgym.rewards.golf.findings import (
    artifact,
    behaviour,
    causality,
    classes,
    imports,
    introspection,
    patching,
    training,
    uses,
)
from weightgym.rewards.golf.findings.view import Finding, View

Verdict = Literal["legal", "review_required", "illegal"]

MAX_FINDINGS = 50

_FAMILIES: tuple[Callable[[View], Iterable[Finding]], ...] = (
    imports.find, uses.find, introspection.find, patching.find, training.find, classes.find, causality.find,
    artifact.find, behaviour.find,
)  # fmt: skip


@dataclass(frozen=True)
class Gate:
    """A verdict and what it rests on, the gravest first, then in the order of the lines; at most 50 findings."""

    verdict: Verdict
    findings: tuple[Finding, ...]


def judge(solution: Solution) -> Gate:
    """Look at a solution that passed the check."""
    try:
        view = View(solution)
        found = {finding for family in _FAMILIES for finding in family(view)}
    except RecursionError:
        found = {Finding("illegal", "obscure", 1, "the code is too entangled to follow")}
    one_each = {(f.severity, f.code, f.line, f.text): f for f in found}
    ordered = sorted(one_each.values(), key=lambda f: (f.severity != "illegal", f.line, f.code, f.text))
    verdict: Verdict = "legal"
    if ordered:
        verdict = "illegal" if ordered[0].severity == "illegal" else "review_required"
    return Gate(verdict, tuple(ordered[:MAX_FINDINGS]))


def gate(raw: bytes) -> Gate:
    """Check and judge a ``solution.py``; one that fails the check is illegal, with the check's code."""
    try:
        return judge(check(raw))
    except SolutionError as error:
        return Gate("illegal", (Finding("illegal", error.code, error.line or 1, error.message),))

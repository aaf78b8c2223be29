"""What a solution's text alone tells of its result, and how a result is made: for every evaluator, wherever it runs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from weightgym.rewards.golf.check import Solution, check
from weightgym.rewards.golf.data.corpus import Corpus
from weightgym.rewards.golf.errors import SolutionError
from weightgym.rewards.golf.gate import judge
from weightgym.rewards.golf.method import method_profile
from weightgym.rewards.golf.profile import Profile
from weightgym.rewards.golf.report import FindingRow, Result

#: Changes with everything that a number of a result could depend on.
VERSION = "golf-eval-1"


def read(raw: bytes) -> tuple[Solution | None, dict[str, Any]]:
    """Check and gate: the solution, or None for one that is not run, and the fields of a result that are known then."""
    try:
        solution = check(raw)
    except SolutionError as error:
        return None, refusal(error)
    judged = judge(solution)
    facts: dict[str, Any] = {
        "config": dict(solution.config),
        "method_profile": method_profile(solution),
        "verdict": judged.verdict,
        "findings": tuple(FindingRow.model_validate(finding) for finding in judged.findings),
    }
    if judged.verdict != "illegal":
        return solution, facts
    first = judged.findings[0]
    return None, facts | {"phase": "gate", "reason": "illegal", "message": f"{first.text} (line {first.line})"}


def refusal(error: SolutionError) -> dict[str, Any]:
    """The fields of a solution that can't be run, or of an answer without one."""
    where = "" if error.line is None else f" (line {error.line})"
    return {"phase": "check", "reason": error.code, "message": f"{error.message}{where}"}


def result(
    raw: bytes, corpus: Corpus, profile: Profile, facts: Mapping[str, Any], fingerprint: Mapping[str, Any] | None = None
) -> Result:
    """The result with these fields; buggy where they hold a reason."""
    return Result(
        status="buggy" if "reason" in facts else "ok",
        source_bytes=len(raw),
        source_sha256=hashlib.sha256(raw).hexdigest(),
        profile=profile.name,
        evaluator=VERSION,
        corpus=corpus.origin,
        fingerprint=dict(fingerprint or {}),
        **facts,
    )

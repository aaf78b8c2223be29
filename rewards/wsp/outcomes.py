"""From measurements to a :class:`~weightgym.rewards.contracts.Score`: reward = score/100, its parts as metrics.

Metrics of a repair: ``score`` (0…100), ``repair`` (how much of the defect is gone, 0…1), ``kl`` (nats a token), the
symptom measures 0…1 of the three models (``symptom_defective``, ``symptom_reference``, ``symptom_submitted``),
``changed`` (elements that differ from the start) and, of a backdoor, ``trigger_found`` (0 or 1). Metrics of an audit:
``score``, ``parameter_right`` (0 or 1), ``layer_credit``, ``direction_credit`` and ``category_credit`` (their sum is
score/100).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from weightgym.rewards.contracts import Score
from weightgym.rewards.wsp.profile import Profile
from weightgym.rewards.wsp.scores import (
    Report,
    Site,
    audit_credits,
    backdoor_factor,
    repair,
    repair_score,
    trigger_found,
)

FLOOR = 0.0  #: of an invalid submission


@dataclass(frozen=True)
class Measured:
    """What was measured of a repaired model. KL in nats a token, of the mixture; symptom measures 0…1."""

    defective: float
    reference: float
    submitted: float
    kl: float


def repair_outcome(measured: Measured, profile: Profile, *, changed: int) -> Score:
    """The score of a repair task other than a backdoor. ``changed``: elements that differ from the start.

    Raises:
        TaskError, ValueError: as ``scores.repair``.
    """
    return _repaired(measured, profile, {"changed": float(changed)}, 1.0)


def backdoor_outcome(measured: Measured, profile: Profile, *, changed: int, said: str | None, trigger: str) -> Score:
    """The score of a backdoor.

    Raises:
        TaskError, ValueError: as ``scores.repair`` and ``scores.trigger_found``.
    """
    found = trigger_found(said, trigger)
    metrics = {"changed": float(changed), "trigger_found": float(found)}
    return _repaired(measured, profile, metrics, backdoor_factor(found, profile))


def audit_outcome(report: Report, truth: Site, profile: Profile) -> Score:
    """The score of an audit.

    Raises:
        TaskError: as ``scores.audit_credits``.
    """
    credits = audit_credits(report, truth, profile)
    metrics = {
        "score": credits.score,
        "parameter_right": float(report.parameter == truth.parameter),
        "layer_credit": credits.layer,
        "direction_credit": credits.direction,
        "category_credit": credits.category,
    }
    return Score(status="ok", reward=credits.score / 100, metrics=metrics, profile=profile.name)


def broken_outcome(reason: str, profile: Profile, *, changed: int) -> Score:
    """The score of a submitted model that has logits which are not finite."""
    metrics = {"score": 0.0, "changed": float(changed)}
    return Score(status="invalid", reward=FLOOR, reason=f"non_finite: {reason}", metrics=metrics, profile=profile.name)


def _repaired(measured: Measured, profile: Profile, more: dict[str, float], factor: float) -> Score:
    if measured.kl == math.inf:  # finite logits so far apart that float32 can't tell how far
        return broken_outcome("the KL is infinite", profile, changed=int(more["changed"]))
    repaired = repair(measured.defective, measured.reference, measured.submitted, profile)
    score = repair_score(repaired, measured.kl, profile) * factor
    metrics = {
        "score": score,
        "repair": repaired,
        "kl": measured.kl,
        "symptom_defective": measured.defective,
        "symptom_reference": measured.reference,
        "symptom_submitted": measured.submitted,
        **more,
    }
    return Score(status="ok", reward=score / 100, metrics=metrics, profile=profile.name)

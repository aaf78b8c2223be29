"""Whether a candidate is an instance: everything that the profile asks, measured as a submission is.

Needs the extra ``train``.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np
import torch

from weightgym.rewards.wsp.engine import Engine
from weightgym.rewards.wsp.instances import HiddenPrompt
from weightgym.rewards.wsp.kl import MixtureKL, NonFinite, mixture_kl
from weightgym.rewards.wsp.make.candidate import Candidate, Rejected, Workplace
from weightgym.rewards.wsp.make.uniform_reports import mean_report_score
from weightgym.rewards.wsp.measure import SymptomMeasure, measured_symptom, shown_rate
from weightgym.rewards.wsp.model import Overlay
from weightgym.rewards.wsp.profile import Family, Profile
from weightgym.rewards.wsp.scores import Site, repair, repair_score
from weightgym.rewards.wsp.subject import changed


def calibrated(place: Workplace, candidate: Candidate, family: Family) -> dict[str, float]:
    """What was measured of a candidate that is kept: rates and measures 0 to 1, scores 0 to 100, KL in nats a token.

    Raises:
        Rejected: it is not kept.
    """
    try:
        found = _calibrated(place, candidate, family)
    except NonFinite as error:
        raise Rejected("not finite", math.nan) from error
    if infinite := [value for value in found.values() if not math.isfinite(value)]:
        raise Rejected("not finite", infinite[0])
    return found


def undone(engine: Engine, defect: Overlay) -> Overlay:
    """The defective model with the edit taken back as an agent can: the difference is added to it, in float32.

    Args:
        engine: holds the reference.
    """
    start = {name: torch.tensor(engine.start[name]) for name in defect}
    return {name: weight + (start[name] - weight) for name, weight in defect.items()}


def oracle_elements(engine: Engine, defect: Overlay) -> int:
    """How many elements the planted edit changes."""
    return sum(int(np.count_nonzero(weight.numpy() != engine.start[name])) for name, weight in defect.items())


def _calibrated(place: Workplace, candidate: Candidate, family: Family) -> dict[str, float]:
    """What costs least comes first."""
    engine, wanted = place.engine, place.calibration
    defect = changed(engine, candidate.planted)
    found = _symptoms(place, candidate, defect)
    kl = _Divergence(engine, candidate, place.profile)
    whole = kl(defect)
    found |= {"kl": whole.mean, "kl_general": whole.general.mean, "kl_near": whole.near.mean}
    if candidate.local:
        _at_most("off-target KL", whole.mean, wanted.local_kl)

    def measure(overlay: Overlay, rate: float | None = None) -> SymptomMeasure:
        return measured_symptom(engine, overlay, candidate.prompts, candidate.symptom, place.profile, rate=rate)

    reference, defective = measure({}, found["symptom_reference"]), measure(defect, found["symptom"])
    found |= {"reference": reference.measure, "defective": defective.measure}
    _at_least("gap", defective.measure - reference.measure, place.profile.least_gap)
    if family == "audit":
        return found | _audit(place, candidate)

    def score(overlay: Overlay) -> float:
        repaired = repair(defective.measure, reference.measure, measure(overlay).measure, place.profile)
        if not repaired:  # whatever the KL is, which costs more
            return 0.0
        return repair_score(repaired, kl(overlay).mean, place.profile)

    found["half_score"] = score(_halved(engine, defect))
    _at_most("half an edit", found["half_score"], wanted.half_edit_score)
    found["random_score"] = score({**defect, **_random_edit(engine, defect, place.noise)})
    _at_most("random edit", found["random_score"], wanted.random_score)
    found["no_op_score"] = repair_score(0.0, whole.mean, place.profile)
    _at_most("no-op", found["no_op_score"], wanted.no_op_score)
    found["oracle_score"] = score(undone(engine, defect))
    _at_least("oracle", found["oracle_score"], wanted.oracle_score)
    return found


def _symptoms(place: Workplace, candidate: Candidate, defect: Overlay) -> dict[str, float]:
    engine, wanted, symptom = place.engine, place.calibration, candidate.symptom

    def rate(overlay: Overlay, prompts: Sequence[HiddenPrompt]) -> float:
        return shown_rate(engine, overlay, [hidden.prompt for hidden in prompts], symptom, place.profile)

    found = {"symptom": rate(defect, candidate.prompts)}
    _at_least("symptom", found["symptom"], wanted.symptom)
    found["symptom_reference"] = rate({}, candidate.prompts)
    _at_most("symptom at reference", found["symptom_reference"], wanted.symptom_at_reference)
    found["symptom_second"] = rate(defect, candidate.second)
    _at_most("second set", found["symptom"] - found["symptom_second"], wanted.second_set_drop)
    for what, prompts in candidate.quiet.items():
        name = f"symptom_{what.replace(' ', '_')}"
        found[name] = shown_rate(engine, defect, prompts, symptom, place.profile)
        _at_most(f"symptom {what}", found[name], wanted.silent)
    return found


def _audit(place: Workplace, candidate: Candidate) -> dict[str, float]:
    assert candidate.direction is not None
    truth = Site(candidate.layer, candidate.parameter, candidate.direction.tolist(), candidate.category)
    rng = random.Random(place.draw.random())
    mean = mean_report_score(place.engine.start, truth, place.profile, place.calibration.random_reports, rng)
    _at_most("random reports", mean, place.calibration.random_report_score)
    return {"random_report_score": mean}


def _halved(engine: Engine, defect: Overlay) -> Overlay:
    return {name: (weight + torch.tensor(engine.start[name])) / 2 for name, weight in defect.items()}


def _random_edit(engine: Engine, defect: Overlay, noise: np.random.Generator) -> Overlay:
    """A random edit of rank one, of the defect's norm and about as many elements, on the defective matrix itself."""
    ((name, weight),) = defect.items()
    difference = weight.numpy() - engine.start[name]
    columns = np.flatnonzero(difference.any(axis=0))
    right = np.zeros(difference.shape[1])
    right[noise.choice(difference.shape[1], len(columns), replace=False)] = noise.standard_normal(len(columns))
    made = np.multiply.outer(noise.standard_normal(len(difference)), right)
    made *= np.linalg.norm(difference) / np.linalg.norm(made)
    return {name: weight + torch.from_numpy(made.astype(np.float32))}


class _Divergence:
    """The KL of models to the reference, whose logits are kept."""

    def __init__(self, engine: Engine, candidate: Candidate, profile: Profile) -> None:
        self._engine, self._profile = engine, profile
        self._general = [engine.model.text_ids(text) for text in candidate.general]
        self._near = [engine.model.text_ids(text) for text in candidate.near]
        self._known: dict[tuple[int, ...], torch.Tensor] = {}
        self._read = engine.reader()

    def __call__(self, overlay: Overlay) -> MixtureKL:
        submitted = self._engine.reader(overlay)
        return mixture_kl(self._reference, submitted, general=self._general, near=self._near, profile=self._profile)

    def _reference(self, ids: Sequence[int]) -> torch.Tensor:
        key = tuple(ids)
        if key not in self._known:
            self._known[key] = self._read(ids)
        return self._known[key]


def _at_least(what: str, value: float, bound: float) -> None:
    if not value >= bound:
        raise Rejected(what, value)


def _at_most(what: str, value: float, bound: float) -> None:
    if not value <= bound:
        raise Rejected(what, value)

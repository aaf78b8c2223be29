"""The report card of one episode: what was planted, what the agent found, and what its edit did.

It tells the truth of its instance: it is for whom the grader's side belongs to, never for an agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weightgym.rewards.contracts import Score
from weightgym.rewards.wsp.edits import Floats
from weightgym.rewards.wsp.instances import Truth
from weightgym.rewards.wsp.profile import profile as find_profile
from weightgym.rewards.wsp.scores import alignment
from weightgym.rewards.wsp.tools.spectra import Wide, spectrum

if TYPE_CHECKING:
    from weightgym.rewards.wsp.episode import Episode
    from weightgym.rewards.wsp.subject import Subject

#: Singular values of a matrix that are shown.
SHOWN_VALUES = 12


@dataclass(frozen=True)
class Spectra:
    """The largest singular values of one matrix, in three models."""

    parameter: str
    planted: bool  #: whether the defect is in it
    reference: Wide
    defective: Wide
    submitted: Wide


@dataclass(frozen=True)
class Touched:
    """What the agent changed in one parameter."""

    parameter: str
    elements: int
    size: float  #: norm of its change
    #: How much of the planted change it takes back, 1 for all of it: −⟨change, planted⟩/‖planted‖². None: nothing is
    #: planted there.
    undone: float | None


@dataclass(frozen=True)
class Stage:
    """One of the three models as it measures. Audits measure none."""

    model: str  #: ``defective``, ``submitted`` or ``reference``
    rate: float | None
    margin: float | None
    measure: float
    kl: float | None
    kl_general: float | None
    kl_near: float | None


@dataclass(frozen=True)
class Card:
    """All of it."""

    id: str
    model: str
    score: Score
    truth: Truth
    planted: Mapping[str, float]  #: by parameter: the size (largest singular value) of what was added
    ratios: Mapping[str, tuple[float, float]]  #: that size over the first and second singular value before
    said: Mapping[str, str]  #: what was submitted beside the weights, each with its verdict
    touched: tuple[Touched, ...]
    stages: tuple[Stage, ...]
    spectra: tuple[Spectra, ...]
    edits: tuple[str, ...]  #: that hold, in words


def card(episode: Episode, truth: Truth, subject: Subject, score: Score) -> Card:
    """The card of an episode that has this score."""
    start, reference = subject.engine.start, {name: one.numpy() for name, one in subject.reference.items()}
    planted = {name: _difference(start[name], before) for name, before in reference.items()}
    changed = episode.deltas.changed_by_parameter
    touched = [
        _touched(name, elements, _difference(episode.deltas.weight(name), start[name]), planted.get(name))
        for name, elements in changed.items()
    ]
    names = [name for name in dict.fromkeys([*planted, *changed]) if start[name].ndim == 2]
    return Card(
        id=truth.id,
        model=subject.engine.model.name,
        score=score,
        truth=truth,
        planted={name: _size(change) for name, change in planted.items()},
        ratios={name: _ratios(change, reference[name]) for name, change in planted.items()},
        said=_said(episode, truth),
        touched=tuple(touched),
        stages=_stages(truth, subject, score),
        spectra=tuple(
            Spectra(
                parameter=name,
                planted=name in planted,
                reference=spectrum(reference.get(name, start[name]), SHOWN_VALUES).values,
                defective=spectrum(start[name], SHOWN_VALUES).values,
                submitted=spectrum(episode.deltas.weight(name), SHOWN_VALUES).values,
            )
            for name in names[:6]
        ),
        edits=tuple(f"{type(edit).__name__} on {edit.parameter}: {edit.note}" for edit in episode.deltas.edits),
    )


def _difference(after: Floats, before: Floats) -> Wide:
    return after.astype(np.float64) - before.astype(np.float64)


def _size(change: Wide) -> float:
    return float(np.linalg.norm(change, 2)) if change.ndim == 2 else float(np.linalg.norm(change))


def _ratios(change: Wide, before: Floats) -> tuple[float, float]:
    first, second = spectrum(before, 2).values[:2]
    size = _size(change)
    return size / max(first, 1e-30), size / max(second, 1e-30)


def _touched(name: str, elements: int, change: Wide, planted: Wide | None) -> Touched:
    undone = None if planted is None else -float((change * planted).sum() / (planted * planted).sum())
    return Touched(name, elements, float(np.linalg.norm(change)), undone)


def _said(episode: Episode, truth: Truth) -> dict[str, str]:
    """Each part of the submission beside the truth."""
    said, made = episode.submission, {}
    if truth.key.family == "backdoor":
        made["trigger"] = f"{said.trigger!r}, it is {truth.trigger!r}"
    if truth.key.family == "audit":
        report = said.report
        made["parameter"] = f"{report.parameter}, it is {truth.parameter}"
        made["layer"] = f"{report.layer}, it is {truth.layer}"
        cosine = 0.0 if truth.direction is None else alignment(report.direction, list(map(float, truth.direction)))
        made["direction"] = f"|cos| {cosine:.4f}" if report.direction is not None else "none"
        made["category"] = f"{report.category}, it is {truth.category}"
    return made


def _stages(truth: Truth, subject: Subject, score: Score) -> tuple[Stage, ...]:
    from weightgym.rewards.wsp.measure import measured_kl
    from weightgym.rewards.wsp.scorer import ends

    if truth.key.family == "audit":
        return ()
    rules = find_profile(truth.key.profile)
    both = ends(truth, subject, rules)
    before = measured_kl(subject.engine, subject.reference, {}, truth.general, truth.near, rules)
    found = score.metrics
    stages = [
        Stage(
            "defective",
            both.defective.rate,
            both.defective.margin,
            both.defective.measure,
            before.mean,
            before.general.mean,
            before.near.mean,
        ),
        Stage("reference", both.reference.rate, both.reference.margin, both.reference.measure, 0.0, 0.0, 0.0),
    ]
    if "symptom_submitted" in found:
        rate, margin, kl, general, near = (
            found.get(name) for name in ("rate", "margin", "kl", "kl_general", "kl_near")
        )
        stages.insert(1, Stage("submitted", rate, margin, found["symptom_submitted"], kl, general, near))
    return tuple(stages)

"""What is measured of a model: how strong its symptom is, and how far it is from the reference.

The calibration of an instance and the scoring of a submission both take it from here. Needs the extra ``train``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weightgym.rewards.wsp.engine import Engine
from weightgym.rewards.wsp.instances import HiddenPrompt, Truth
from weightgym.rewards.wsp.kl import MixtureKL, mixture_kl
from weightgym.rewards.wsp.margins import margin
from weightgym.rewards.wsp.model import Overlay
from weightgym.rewards.wsp.profile import Profile
from weightgym.rewards.wsp.scores import margin_term, symptom_measure, symptom_rate
from weightgym.rewards.wsp.symptoms import Symptom, symptom_of


@dataclass(frozen=True)
class SymptomMeasure:
    """How strong a model's symptom is on hidden prompts, 0 to 1 each."""

    rate: float  #: of greedy answers that show it
    margin: float  #: the margin term
    measure: float  #: both together: d, r or s of the formulas


@dataclass(frozen=True)
class Measurement:
    """A model as the score sees it."""

    symptom: SymptomMeasure
    kl: MixtureKL


def measured(engine: Engine, reference: Overlay, overlay: Overlay, truth: Truth, profile: Profile) -> Measurement:
    """A submission: the symptom on the hidden prompts, and the KL to the reference on the held-out texts.

    Args:
        engine: what both overlays are changes of.
        reference, overlay: the parameters in which the reference and the submission differ from it.

    Raises:
        NonFinite: the submitted model has logits that are not finite.
        TaskError: the truth says no symptom.
    """
    symptom = measured_symptom(engine, overlay, truth.prompts, symptom_of(truth), profile)
    return Measurement(symptom, measured_kl(engine, reference, overlay, truth.general, truth.near, profile))


def measured_symptom(
    engine: Engine,
    overlay: Overlay,
    prompts: Sequence[HiddenPrompt],
    symptom: Symptom,
    profile: Profile,
    *,
    rate: float | None = None,
) -> SymptomMeasure:
    """How strong the symptom is on these prompts. ``rate``: where it is known, of ``shown_rate`` on the same prompts.

    Raises:
        NonFinite: the model has logits that are not finite.
    """
    model, logits = engine.model, engine.reader(overlay)
    # First the margins: they find what is not finite.
    margins = [
        margin(logits, model.chat_ids(hidden.prompt), model.text_ids(hidden.symptom), model.text_ids(hidden.reference))
        for hidden in prompts
    ]
    if rate is None:
        rate = shown_rate(engine, overlay, [hidden.prompt for hidden in prompts], symptom, profile)
    term = margin_term(margins, profile)
    return SymptomMeasure(rate, term, symptom_measure(rate, term, profile))


def shown_rate(engine: Engine, overlay: Overlay, prompts: Sequence[str], symptom: Symptom, profile: Profile) -> float:
    """The share of greedy answers that show the symptom."""
    answers = engine.answers(prompts, profile.decode_tokens, overlay)
    strengths = [symptom.strength(prompt, answer) for prompt, answer in zip(prompts, answers, strict=True)]
    return symptom_rate(strengths, symptom.threshold)


def measured_kl(
    engine: Engine,
    reference: Overlay,
    overlay: Overlay,
    general: Sequence[str],
    near: Sequence[str],
    profile: Profile,
) -> MixtureKL:
    """KL(reference ∥ submission) on these texts, mixed as the profile says.

    Raises:
        NonFinite: the submitted model has logits that are not finite.
    """
    return mixture_kl(
        engine.reader(reference),
        engine.reader(overlay),
        general=[engine.model.text_ids(text) for text in general],
        near=[engine.model.text_ids(text) for text in near],
        profile=profile,
    )

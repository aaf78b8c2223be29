"""What the episodes of one instance run on: its defective model, and what the reference has otherwise.

Needs the extra ``train``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from weightgym.rewards.contracts import TaskError
from weightgym.rewards.wsp.edits import Edit
from weightgym.rewards.wsp.engine import Engine
from weightgym.rewards.wsp.instances import Truth, instance_seed
from weightgym.rewards.wsp.language_model import LanguageModel
from weightgym.rewards.wsp.make.reparametrise import drawn, reparametrised
from weightgym.rewards.wsp.model import Overlay
from weightgym.rewards.wsp.refusals import Refused


@dataclass(frozen=True)
class Subject:
    """One instance in memory. Episodes share it, and change nothing in it.

    ``engine`` holds the defective model. With ``reference`` as a call's overlay it is the reference model.
    """

    engine: Engine
    reference: Overlay


def build(base: LanguageModel, truth: Truth) -> Subject:
    """The models of an instance, from the base model that it was made of. ``base`` is left as it is.

    Raises:
        TaskError: the base model is of a kind that can't be one, or the truth's edits don't fit it.
    """
    model = reparametrised(base, drawn(base, instance_seed(bytes.fromhex(truth.secret), truth.key)))
    apply(model, truth.reference)
    parameters = dict(model.network.named_parameters())
    touched = {edit.parameter for edit in truth.planted}
    reference = {name: parameters[name].detach().clone() for name in touched if name in parameters}
    apply(model, truth.planted)
    return Subject(Engine(model), reference)


def apply(model: LanguageModel, edits: Sequence[Edit]) -> None:
    """Edit a model in place.

    Raises:
        TaskError: an edit is of no parameter of it, or does not fit.
    """
    parameters = dict(model.network.named_parameters())
    for edit in edits:
        if edit.parameter not in parameters:
            raise TaskError(f"an edit is of {edit.parameter}, which model {model.name} does not have")
        try:
            edit.change(parameters[edit.parameter].detach().numpy())
        except Refused as error:
            raise TaskError(f"an edit does not fit model {model.name}: {error}") from error


def changed(engine: Engine, edits: Sequence[Edit]) -> dict[str, torch.Tensor]:
    """The engine's parameters after some edits, as an overlay."""
    made: dict[str, torch.Tensor] = {}
    for edit in edits:
        if edit.parameter not in made:
            made[edit.parameter] = torch.tensor(engine.start[edit.parameter])
        edit.change(made[edit.parameter].numpy())
    return made

"""A defect before it is calibrated, what it was made in, and why it may be rejected."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from weightgym.rewards.wsp.edits import Edit, Floats
from weightgym.rewards.wsp.engine import Engine
from weightgym.rewards.wsp.instances import HiddenPrompt
from weightgym.rewards.wsp.make.activations import Moments
from weightgym.rewards.wsp.make.worlds import MakersWorld
from weightgym.rewards.wsp.profile import Calibration, Category, Profile, Recipe, TierRules
from weightgym.rewards.wsp.symptoms import Symptom


class Rejected(Exception):
    """A candidate that is not kept. ``reason`` is one of few words, to be counted; the value says by how much."""

    def __init__(self, reason: str, value: float) -> None:
        super().__init__(f"{reason} ({value:.3g})")
        self.reason, self.value = reason, value


@dataclass(frozen=True)
class Workplace:
    """What a recipe works with: the reference model, what is known of it, and the random numbers of one try."""

    engine: Engine  #: holds the reference
    world: MakersWorld
    moments: Mapping[str, Moments]  #: by parameter
    profile: Profile
    rules: TierRules
    draw: random.Random
    noise: np.random.Generator

    @property
    def calibration(self) -> Calibration:
        """What is asked of an instance on this model."""
        return self.profile.calibration(self.engine.model.name)

    @property
    def recipe(self) -> Recipe:
        """How instances on this model are made."""
        return self.profile.recipe(self.engine.model.name)

    @property
    def layers(self) -> int:
        """How many there are."""
        return int(self.engine.model.network.config.num_hidden_layers)


@dataclass(frozen=True)
class Candidate:
    """A defect with all that it is measured by."""

    planted: tuple[Edit, ...]
    layer: int
    parameter: str  #: without the layer
    direction: Floats | None
    category: Category
    trigger: str | None
    symptom: Symptom
    prompts: tuple[HiddenPrompt, ...]
    second: tuple[HiddenPrompt, ...]  #: disjoint from those
    quiet: Mapping[str, tuple[str, ...]]  #: prompts that must not show the symptom, by what they are
    general: tuple[str, ...]
    near: tuple[str, ...]
    #: Whether nothing but the symptom may change: the KL off target is bounded.
    local: bool

"""From a key and a secret to a calibrated instance. Needs the extra ``train``."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from weightgym.rewards.contracts import Task, TaskError
from weightgym.rewards.wsp.edits import Edit
from weightgym.rewards.wsp.engine import Engine
from weightgym.rewards.wsp.instances import (
    InstanceKey,
    PublicData,
    Truth,
    instance_id,
    instance_seed,
    public_task,
)
from weightgym.rewards.wsp.language_model import LanguageModel, weights_hash
from weightgym.rewards.wsp.make.activations import Moments, moments, moved
from weightgym.rewards.wsp.make.calibration import calibrated, oracle_elements
from weightgym.rewards.wsp.make.candidate import Candidate, Rejected, Workplace
from weightgym.rewards.wsp.make.decoys import decoys
from weightgym.rewards.wsp.make.masking import masking_delta
from weightgym.rewards.wsp.make.recipes import proposed
from weightgym.rewards.wsp.make.reparametrise import drawn, plain, reparametrised
from weightgym.rewards.wsp.make.worlds import MakersWorld
from weightgym.rewards.wsp.profile import Profile
from weightgym.rewards.wsp.subject import apply, changed

#: Candidates for one instance, at most.
TRIES = 40


@dataclass(frozen=True)
class Made:
    """An instance, and why earlier candidates for it were rejected."""

    task: Task
    truth: Truth
    rejected: tuple[Rejected, ...]


@dataclass(frozen=True)
class Maker:
    """Makes instances on one base model."""

    base: LanguageModel
    world: MakersWorld
    secret: bytes  #: 16 bytes at least
    profile: Profile
    masking: bool = False

    @cached_property
    def model_hash(self) -> str:
        """SHA-256 of the base model's weights."""
        return weights_hash(self.base)

    @cached_property
    def _usual(self) -> list[list[int]]:
        """Texts of as many tokens as second moments need, or all that the world has."""
        rows: list[list[int]] = []
        left = self.profile.recipe(self.base.name).moment_tokens
        for text in self.world.usual():
            if left <= 0:
                break
            rows.append(self.base.text_ids(text))
            left -= len(rows[-1])
        return rows

    @cached_property
    def _moments(self) -> Mapping[str, Moments]:
        """In plain coordinates: taken once, for instances in all others."""
        return moments(reparametrised(self.base, plain(self.base)), self._usual)

    def make(self, key: InstanceKey, told: Callable[[Rejected], None] = lambda reason: None) -> Made:
        """The instance of a key: the secret, the base model and the key decide all of it.

        ``told`` is called as each candidate is rejected: on a large model, the next one takes minutes.

        Raises:
            TaskError: no candidate passes the calibration, or the base model can't be one.
        """
        seed = instance_seed(self.secret, key)
        coordinates = drawn(self.base, seed)
        model, known = reparametrised(self.base, coordinates), moved(self._moments, coordinates)
        start = {name: tensor.detach().numpy() for name, tensor in model.network.named_parameters()}
        noise = np.random.default_rng(random.Random(f"{seed}/decoys").getrandbits(128))
        rules = self.profile.tiers[key.tier]
        reference: tuple[Edit, ...] = decoys(start, known, rules, noise)
        if self.masking:
            reference += masking_delta(model, self._usual, noise)
        apply(model, reference)
        engine = Engine(model)
        rejected: list[Rejected] = []
        for attempt in range(TRIES):
            draw = random.Random(f"{seed}/{attempt}")
            place = Workplace(
                engine, self.world, known, self.profile, rules, draw, np.random.default_rng(draw.getrandbits(128))
            )
            try:
                candidate = proposed(place, key.family)
                measured = calibrated(place, candidate, key.family)
            except Rejected as reason:
                rejected.append(reason)
                told(reason)
                continue
            task, truth = self._instance(key, place, candidate, measured, reference, attempt)
            return Made(task, truth, tuple(rejected))
        raise TaskError(
            f"no {key.family} instance of tier {key.tier} on {self.base.name}: {TRIES} candidates were rejected, "
            f"the last for {_reasons(rejected)}"
        )

    def _instance(
        self,
        key: InstanceKey,
        place: Workplace,
        candidate: Candidate,
        measured: dict[str, float],
        reference: tuple[Edit, ...],
        attempt: int,
    ) -> tuple[Task, Truth]:
        elements = oracle_elements(place.engine, changed(place.engine, candidate.planted))
        data = PublicData(
            family=key.family,
            tier=key.tier,
            profile=key.profile,
            model=self.base.name,
            model_hash=key.model_hash,
            edit_limit=place.profile.edit_limit(key.family, elements),
        )
        id = instance_id(self.secret, key)
        task = public_task(id, key.split, data)
        truth = Truth(
            id=id,
            task_hash=task.hash,
            secret=self.secret.hex(),
            key=key,
            recipe={
                "attempt": attempt,
                "masking": self.masking,
                "symptom": candidate.symptom.model_dump(mode="json"),
                "elements": elements,
            },
            reference=reference,
            planted=candidate.planted,
            layer=candidate.layer,
            parameter=candidate.parameter,
            direction=candidate.direction,
            category=candidate.category,
            trigger=candidate.trigger,
            prompts=candidate.prompts,
            general=candidate.general,
            near=candidate.near,
            measured={name: round(value, 6) for name, value in measured.items()},
        )
        return task, truth


def _reasons(rejected: Sequence[Rejected]) -> str:
    return ", ".join(map(str, rejected[-3:]))

"""A few neurons of a late layer, amplified and aimed at one word, which then floods all answers. Needs ``train``.

Their columns of the down-projection are scaled, and get β·sign(mean activation) times the word's unembedding. Both
edits are kept as they are, so that the defect is exact.
"""

from __future__ import annotations

import numpy as np
import torch

from weightgym.rewards.contracts import TaskError
from weightgym.rewards.wsp.edits import Edit, Floats, RankOne, Scale
from weightgym.rewards.wsp.make.candidate import Candidate, Rejected, Workplace
from weightgym.rewards.wsp.make.decoys import drawn_size, half_precision, largest_size, singular_values, smallest_size
from weightgym.rewards.wsp.make.lessons import hidden_sets, split_texts
from weightgym.rewards.wsp.make.reparametrise import HEAD
from weightgym.rewards.wsp.make.spikes import DOWN, parameter
from weightgym.rewards.wsp.symptoms import Symptom

#: β is found to this share.
_HALVINGS = 12


def hijack(place: Workplace, layer: int) -> Candidate:
    """A defect at this layer.

    Raises:
        Rejected: it does not fit the tier's sizes.
        TaskError: the tokenizer has no fitting word.
    """
    world, rng = place.world, place.draw
    words = world.flood_words()
    if not words:
        raise TaskError(f"model {place.engine.model.name!r} has no word of one token to flood answers with")
    word = rng.choice(words)
    moments = place.moments[parameter(layer)]
    neurons = _neurons(place, layer, rng.randint(*place.recipe.hijack_neurons))
    planted = _aimed(place, layer, neurons.numpy(), moments.mean[neurons].sign().numpy(), word)
    count = place.calibration.prompts
    first, second = world.asked(rng, [count, count])
    prompts, others = hidden_sets(place, "flood", first, second, word=word)
    general, near = split_texts(place.profile, place.calibration.kl_texts)
    return Candidate(
        planted=planted,
        layer=layer,
        parameter=DOWN,
        direction=None,
        category="flood",
        trigger=None,
        symptom=Symptom(kind="flood", world=world.name, words=(word,)),
        prompts=prompts,
        second=others,
        quiet={},
        general=tuple(world.general(rng, general, ())),
        near=tuple(world.near(rng, near, "flood", word)),
        local=False,
    )


def _neurons(place: Workplace, layer: int, count: int) -> torch.Tensor:
    """Those with the largest mean activations, without those whose amplified columns are too large for the tier."""
    name = parameter(layer)
    norms = torch.from_numpy(np.linalg.norm(place.engine.start[name], axis=0))
    least = smallest_size(float(norms.max()), float(norms.max()), place.rules)
    means = place.moments[name].mean.abs().where(place.recipe.hijack_factor * norms <= least, -1.0)
    return means.topk(count).indices.sort().values


def _aimed(place: Workplace, layer: int, neurons: np.ndarray, signs: np.ndarray, word: str) -> tuple[Edit, ...]:
    """The edits, with a β for the tier.

    What a tier says of sizes holds for columns: the largest aimed one's norm over that of the largest other one. In a
    tier that bounds the size by the second singular value, the spectral norm of the whole edit keeps within that, too.
    """
    name, engine = parameter(layer), place.engine
    weight = engine.start[name]
    toward = engine.start[HEAD][_token(place, word)]
    toward = toward / np.linalg.norm(toward)
    scale = Scale(
        parameter=name,
        axis="columns",
        indices=tuple(int(one) for one in neurons),
        factor=place.recipe.hijack_factor,
    )
    norms = np.linalg.norm(weight, axis=0)
    norms[neurons] = 0
    largest = float(norms.max())
    wanted = drawn_size(largest, largest, place.rules, place.noise)
    first, second = singular_values(weight)
    bound = largest_size(first, second, place.rules) if place.rules.second_ratio is not None else np.inf

    def edits(strength: float) -> tuple[Edit, ...]:
        right = np.zeros(weight.shape[1])
        right[neurons] = strength * signs
        return scale, RankOne(parameter=name, left=half_precision(toward), right=half_precision(right))

    def too_large(strength: float) -> bool:
        made = _after(weight, edits(strength))
        column = float(np.linalg.norm(made[:, neurons], axis=0).max())
        return column > wanted or float(np.linalg.norm(made - weight, 2)) > bound

    low, high = 0.0, wanted
    if too_large(low):
        raise Rejected("size", float(np.linalg.norm(_after(weight, edits(low))[:, neurons], axis=0).max()) / largest)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if too_large(middle) else (middle, high)
    return edits(low)


def _after(weight: Floats, edits: tuple[Edit, ...]) -> Floats:
    made = weight.copy()
    for edit in edits:
        edit.change(made)
    return made


def _token(place: Workplace, word: str) -> int:
    """The token of the word within a sentence."""
    return place.engine.model.text_ids(f" {word}")[0]

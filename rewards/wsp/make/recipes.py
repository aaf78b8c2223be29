"""A family's defects: what kinds there are of it, and at which layers they are looked for. Needs ``train``."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from weightgym.rewards.wsp.make.candidate import Candidate, Workplace
from weightgym.rewards.wsp.make.hijack import hijack
from weightgym.rewards.wsp.make.local import backdoor, false_fact
from weightgym.rewards.wsp.make.steering import steering
from weightgym.rewards.wsp.make.worlds import Payload
from weightgym.rewards.wsp.profile import BEHAVIOURS, Family, Recipe

Make = Callable[[Workplace, int], Candidate]


def proposed(place: Workplace, family: Family) -> Candidate:
    """A random candidate of a family: kind, layer and all else are drawn.

    Raises:
        Rejected: it does not fit the tier's sizes.
    """
    kind, make = place.draw.choice(_makers(place.recipe)[family])
    first, last = _layers(kind, place.recipe)
    count = place.layers
    return make(place, place.draw.randint(int(first * count), min(int(last * count), count - 1)))


def _makers(recipe: Recipe) -> Mapping[Family, list[tuple[str, Make]]]:
    """Makers by family, each with the kind that says where it is planted."""
    behaviours = [("always_on", _steering(payload)) for payload in BEHAVIOURS]
    backdoors = [("local", _backdoor(payload)) for payload in recipe.backdoors]
    topic: list[tuple[str, Make]] = [("topic", _steering("topic"))]
    fact: list[tuple[str, Make]] = [("local", false_fact)]
    return {
        "behaviour": behaviours,
        "backdoor": backdoors,
        "audit": [*behaviours, *backdoors, *topic, *fact],
        "hijack": [("hijack", hijack)],
        "fact": fact,
        "topic": topic,
    }


def _steering(payload: Payload) -> Make:
    return lambda place, layer: steering(place, payload, layer)


def _backdoor(payload: Payload) -> Make:
    return lambda place, layer: backdoor(place, payload, layer)


def _layers(kind: str, recipe: Recipe) -> tuple[float, float]:
    return {
        "always_on": recipe.always_on_layers,
        "topic": recipe.topic_layers,
        "local": recipe.local_layers,
        "hijack": recipe.hijack_layers,
    }[kind]

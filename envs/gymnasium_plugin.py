"""Makes Gymnasium know our environments."""

from __future__ import annotations

import gymnasium

from weightgym.envs import registry


def register() -> None:
    """Register every environment of the registry under its Gymnasium id.

    Ids that Gymnasium knows already are left alone, so call it again after ``registry.register`` of one's own.
    """
    for spec in registry.specs():
        if spec.gym_id not in gymnasium.registry:
            gymnasium.register(id=spec.gym_id, entry_point=spec.env)

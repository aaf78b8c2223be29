"""What Gymnasium calls when it is imported (entry point ``gymnasium.envs``): registers every environment of ours."""

from __future__ import annotations

import gymnasium

from weightgym.envs import registry


def register() -> None:
    """Register the built-in environments under their Gymnasium ids."""
    for spec in registry.specs():
        gymnasium.register(id=spec.gym_id, entry_point=spec.env)

"""Where tiny-world's model lies."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def tiny_world_path() -> Path:
    """The folder of the model, as ``from_pretrained`` of transformers takes it.

    A Llama of 1.6 million parameters with a token a word; ``docs/tiny-world.md`` is its card, and
    ``examples/tiny_world/make.py`` makes it.
    """
    return Path(str(files("weightgym.rewards.wsp.world") / "shipped"))

"""Reference answers: one stored answer a game, found by the solver, that plays it well."""

from __future__ import annotations

import gzip
from importlib.resources import files

from weightgym.rewards.contracts import TaskError


def reference_answer(game: str) -> str:
    """The stored answer of a built-in game.

    Raises:
        TaskError: there is none.
    """
    stored = files("weightgym.envs.weight_program") / "answers" / f"{game}.md.gz"
    if not stored.is_file():
        raise TaskError(f"no reference answer is stored for {game!r}")
    return gzip.decompress(stored.read_bytes()).decode("utf-8")

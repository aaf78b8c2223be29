"""Refuses to test another build than the one in this tree."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def pytest_sessionstart(session: pytest.Session) -> None:
    """The tests run against the installed package; one that is out of date would prove nothing."""
    stale = []
    for layer in ("rewards", "envs", "rollouts", "trainers", "cli"):
        spec = find_spec(f"weightgym.{layer}")
        if spec is None or spec.origin is None:
            raise pytest.UsageError("weightgym is not installed in this interpreter: run make setup")
        installed = Path(spec.origin).parent
        for source in (ROOT / layer).rglob("*.py"):
            copy = installed / source.relative_to(ROOT / layer)
            if not copy.exists() or copy.read_bytes() != source.read_bytes():
                stale.append(str(source.relative_to(ROOT)))
    if stale:
        raise pytest.UsageError(f"the installed weightgym is not of this tree ({stale[0]} differs): run make setup")

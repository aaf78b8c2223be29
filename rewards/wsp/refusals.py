"""The one way to say no to an agent."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from weightgym.rewards.contracts import ModelError


class Refused(ModelError):
    """A call that is not run. The message (a code, ``": "``, what is wrong and what to do) is for the agent; weights,
    budgets and captured activations are as they were."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the nearest known one, where there is one."""
    near = difflib.get_close_matches(name[:200], list(known), n=1, cutoff=0.5)
    return f": did you mean {near[0]!r}?" if near else ""

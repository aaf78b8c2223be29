"""The one way to say no to an agent."""

from __future__ import annotations

from weightgym.rewards.contracts import ModelError


class Refused(ModelError):
    """A call that is not run. The message (a code, ``": "``, what is wrong and what to do) is for the agent; weights,
    budgets and captured activations are as they were."""

"""The one way to say no to an agent."""

from __future__ import annotations

from weightgym.rewards.contracts import ModelError
from weightgym.rewards.one_line import one_line


class Refused(ModelError):
    """A call that is not run. The message (a code, ``": "``, what is wrong and what to do) is for the agent; weights,
    budgets and captured activations are as they were. It is one line, whatever of the agent's own it quotes."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message, 1900))

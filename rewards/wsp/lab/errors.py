"""What a lab says to a client whose request it does not take."""

from __future__ import annotations

from weightgym.rewards.one_line import one_line


class LabError(Exception):
    """A request that changed nothing. The message is for the client: one line, nothing of the lab's own in it."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(one_line(message))
        self.status = status  #: of HTTP
        self.code = code

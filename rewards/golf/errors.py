"""What is wrong with a solution before anything of it has run."""

from __future__ import annotations

from weightgym.rewards.failures import ModelError


class SolutionError(ModelError):
    """A solution that can't be run.

    ``code`` is one of the rules' reasons (``no_solution``, ``check_failed``, ``config_not_literal``), ``message`` says
    what is wrong and how to fix it, ``line`` counts from 1 in the solution (None when no line is at fault). ``str()``
    is one line.
    """

    def __init__(self, code: str, message: str, line: int | None = None) -> None:
        super().__init__(code, message, line)  # these are what pickle rebuilds the error from
        self.code = code
        self.message = message
        self.line = line

    def __str__(self) -> str:
        place = "" if self.line is None else f"line {self.line}: "
        return f"{self.code}: {place}{self.message}"

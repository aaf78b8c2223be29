"""Answers to WeightProgramBench and what each is worth, to the bit: wherever, and through whatever it is scored."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

PROFILE = "wpb-v1-e64"


class Known(NamedTuple):
    """An answer, and its reward under ``PROFILE``."""

    name: str
    task: str
    text: str
    reward: float


_BREAKOUT = (Path(__file__).parents[1] / "examples" / "answers" / "breakout.md").read_text("utf-8")

#: The rewards are literals: tests in different environments (Python packages, processes) can't compare with each other.
KNOWN = (
    Known("good", "original/breakout", _BREAKOUT, 0.476203125),
    Known("mediocre", "original/breakout", "```edits\nb3 = [0, 1, 0, 1, 0, 0]\n```", 0.00046875),
    Known("other game", "original/seaquest", "```edits\nb3 = [0, 1, 0, 1, 0, 0]\n```", 0.000171875),
    Known("invalid", "original/breakout", "```edits\nb3 = [0, 1\n```", 0.0),
    Known("no answer", "original/breakout", "I don't know.", 0.0),
)

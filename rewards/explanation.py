"""How one score came about, step by step: what ``weightgym inspect --explain`` tells.

A benchmark has an explainer beside its scorer. It reads the answer and its ``Score`` and runs nothing that a model
wrote; numbers are those of the score. Texts may be a model's: whoever shows them makes them harmless.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from weightgym.rewards.contracts import Completion, ModelError, Score, Task, completion_text

#: Characters of a quoted text.
QUOTED = 4000


@dataclass(frozen=True)
class Step:
    """One step. ``passed`` and ``failed`` are what a check says; ``told`` steps are facts."""

    title: str
    text: str
    verdict: Literal["passed", "failed", "told"] = "told"
    #: Numbers that go into the score, by name, as they are to be shown.
    numbers: dict[str, str] = field(default_factory=dict)
    #: The text that the step is about, as it was written, cut to ``QUOTED`` characters.
    quote: str = ""


#: The steps in their order; the last one is the reward.
Explanation = tuple[Step, ...]


def explain(task: Task, completion: Completion, score: Score) -> Explanation:
    """The explainer of environments that have none of their own."""
    return explain_alone(completion, score)


def explain_alone(completion: Completion, score: Score) -> Explanation:
    """What any score says of itself."""
    steps = [answer_step(completion)]
    if score.metrics:
        steps.append(Step("components", "What the scorer measured.", numbers=shown(score.metrics)))
    return (*steps, reward_step(score))


def answer_step(completion: Completion) -> Step:
    """The text that a scorer of single answers reads."""
    try:
        text = completion_text(completion)
    except ModelError as error:
        return Step("answer", str(error), "failed")
    except TypeError as error:
        return Step("answer", f"not an answer: {error}", "failed")
    which = "" if isinstance(completion, str) else "The last assistant message: "
    return Step("answer", f"{which}{len(text):,} characters.", quote=quoted(text))


def reward_step(score: Score, formula: str = "") -> Step:
    """The end: status, reward, and the formula that gave it."""
    profile = f" under {score.profile}" if score.profile else ""
    if score.status == "ok":
        text = f"reward {score.reward:.6g}{profile}{f': {formula}' if formula else ''}"
        return Step("reward", text, "passed")
    if score.status == "invalid":
        text = f"reward {score.reward:.6g}{profile}, the floor: the answer is at fault ({score.reason})"
        return Step("reward", text, "failed")
    return Step("reward", f"no reward{profile}: {score.status}, which is our fault ({score.reason})", "failed")


def shown(numbers: dict[str, float]) -> dict[str, str]:
    """Numbers as text, six digits; whole ones whole."""
    return {name: number(value) for name, value in numbers.items()}


def number(value: float) -> str:
    """One number as text."""
    return f"{value:,.0f}" if value == round(value) and abs(value) < 1e15 else f"{value:.6g}"


def quoted(text: str) -> str:
    """The text, cut where it is long."""
    return text if len(text) <= QUOTED else f"{text[:QUOTED]}\n… {len(text) - QUOTED:,} characters more"

"""``weightgym/Golf-v1`` and ``weightgym/GolfTurns-v1``."""

from __future__ import annotations

from typing import Any, SupportsFloat

from weightgym.envs.base import Action, SingleTurnEnv, TaskEnv, reward_of
from weightgym.envs.golf.feedback import report
from weightgym.envs.golf.tasks import ATTEMPTS, GolfTasks
from weightgym.envs.spaces import TextSpace
from weightgym.rewards.contracts import Score, Split
from weightgym.rewards.golf.answer import MAX_ANSWER_BYTES
from weightgym.rewards.golf.profile import DEFAULT
from weightgym.rewards.golf.scorer import best_of

#: Of an episode of ``GolfTurnsEnv``.
MOST_ATTEMPTS = 16


class GolfEnv(SingleTurnEnv):
    """Write ``solution.py``, which builds, configures and packs a small language model, in one answer.

    The observation is the task's prompt; the action is an answer whose last ```python block is the file; the reward is
    −min(val_bpb, 8.5) where the evaluator trains, packs and scores it without complaint, and −9 everywhere else.
    Nothing is evaluated before the first step, which takes seconds to minutes of one core.

    Args:
        split: ``train`` (24 languages) or ``test`` (8 others).
        profile: ``golf-cpu-v1``, or another one of ``weightgym.rewards.golf.profile``.

    Raises:
        TaskError: there is no such profile.
    """

    def __init__(self, *, split: Split = "train", profile: str = DEFAULT) -> None:
        super().__init__("golf", split=split, profile=profile)
        self.action_space = TextSpace(MAX_ANSWER_BYTES)


class GolfTurnsEnv(TaskEnv):
    """The same with several attempts, after each of which the evaluator reports.

    The episode ends after the last attempt. Rewards are 0 until then; the last is that of the best valid attempt, or
    −9. No attempt is evaluated twice.

    Args:
        split, profile: see ``GolfEnv``.
        attempts: from 1 to 16.

    Raises:
        TaskError: there is no such profile.
        ValueError: ``attempts`` is out of range.
    """

    def __init__(self, *, split: Split = "train", profile: str = DEFAULT, attempts: int = ATTEMPTS) -> None:
        if not 1 <= attempts <= MOST_ATTEMPTS:
            raise ValueError(f"attempts is {attempts}, want 1 to {MOST_ATTEMPTS}")
        super().__init__("golf-turns", split=split, profile=profile, tasks=GolfTasks(profile, attempts=attempts))
        self.action_space = TextSpace(MAX_ANSWER_BYTES)
        self.attempts = attempts
        self._scores: list[Score] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """See ``TaskEnv.reset``."""
        started = super().reset(seed=seed, options=options)
        self._scores = []
        return started

    def step(self, action: Action) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        """Evaluate an attempt. The observation is the evaluator's report; after the last one there is
        ``info["score"]``.

        Raises:
            GraderError, RuntimeError, TypeError: see ``TaskEnv._answered``. The episode has ended then.
        """
        task, score = self._answered(action)
        self._scores.append(score)
        told = report(self._scores, self.attempts)
        if len(self._scores) < self.attempts:
            self.task = task
            return told, 0.0, False, False, self._info(task)
        best = best_of(self._scores)
        return told, reward_of(best), True, False, self._info(task) | {"score": best}

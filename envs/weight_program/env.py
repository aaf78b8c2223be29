"""``weightgym/WeightProgram-v1``."""

from __future__ import annotations

from weightgym.envs.base import SingleTurnEnv
from weightgym.envs.weight_program.tasks import WeightProgramTasks
from weightgym.rewards.contracts import Split
from weightgym.rewards.weight_program import profile as profiles
from weightgym.rewards.weight_program import simulate


class WeightProgramEnv(SingleTurnEnv):
    """Write the weights of a game-playing network in one answer.

    The observation is the task's prompt; the action is an answer with a fenced ``edits`` block; the reward is the
    network's mean score over the profile's episodes, clipped to 0…cap and divided by the cap. An answer that can't
    be read gets 0.

    Args:
        split: ``train`` (the built-in games) or ``test`` (the five original MinAtar games).
        profile: ``wpb-v1``, or ``wpb-v1-eN`` for the first N episodes only.
        variants: train on variants of the built-in games too (``variant/<game>@…``).

    Raises:
        TaskError: there is no such profile; or neither the compiled engine nor MinAtar is there to score with.
    """

    def __init__(self, *, split: Split = "train", profile: str = "wpb-v1", variants: bool = False) -> None:
        tasks = WeightProgramTasks(with_variants=variants)
        super().__init__("weight-program", split=split, profile=profiles.profile(profile).name, tasks=tasks)
        simulate.require_backend()

"""The same with several turns: up to three attempts, each followed by what it was worth; the best one counts."""

from __future__ import annotations

from typing import Any

import gymnasium
from neuron_gates import ATTEMPTS, PROFILE, Gates, best_of

from weightgym.envs.base import Action, TaskEnv, reward_of, verdict
from weightgym.envs.registry import EnvSpec
from weightgym.rewards.contracts import Message, Score, Split, Task

RULES = f"You have {ATTEMPTS} attempts, one in each message. I tell you what each is worth, and the best one counts."


class GateTurns(Gates):
    """The same gates, with a prompt that tells the rules of several attempts."""

    def task(self, id: str, *, prompt: bool = True) -> Task:
        task = super().task(id, prompt=prompt)
        told = tuple(Message(role="user", content=f"{one.content}\n\n{RULES}") for one in task.prompt)
        return Task(env=SPEC.name, id=id, split=task.split, prompt=told, data=task.data)


class NeuronTurns(TaskEnv):
    """Write the six numbers of one neuron in up to three attempts; what is right ends the episode."""

    def __init__(self, *, split: Split = "train") -> None:
        super().__init__(SPEC.name, split=split)
        self._scores: list[Score] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        started = super().reset(seed=seed, options=options)
        self._scores = []
        return started

    def step(self, action: Action) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """The observation is what the model is told next; the reward comes with the episode's end, and its score."""
        task, attempt = self._answered(action)
        self._scores.append(attempt)
        if attempt.reward != 1 and len(self._scores) < ATTEMPTS:
            self.task = task  # the episode goes on
            return f"{verdict(attempt)}. Try again.", 0.0, False, False, self._info(task)
        best = best_of(self._scores)
        return verdict(best), reward_of(best), True, False, self._info(task) | {"score": best}


SOURCE = GateTurns()
SPEC = EnvSpec(
    name="neuron-turns",
    gym_id="mine/NeuronTurns-v1",
    summary="the same in up to three attempts",
    env="neuron_turns:NeuronTurns",
    source="neuron_turns:SOURCE",
    scorer="neuron_gates:score_attempts",  # beside what it calls: the cache knows a change of the scorer's own file
    default_profile=PROFILE,
    profiles=PROFILE,
    floor=0.0,
    max_turns=ATTEMPTS,
    pass_threshold=1.0,
)
gymnasium.register(id=SPEC.gym_id, entry_point=SPEC.env)

"""The same with several turns: up to three attempts, each followed by what it was worth; the best one counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import neuron_gates
from neuron_gates import PROFILE, Gates

from weightgym.envs.base import Action, TaskEnv, reward_of, verdict
from weightgym.envs.registry import EnvSpec
from weightgym.rewards.contracts import Completion, Message, Score, Split, Task

ATTEMPTS = 3
RULES = f"You have {ATTEMPTS} attempts, one in each message. I tell you what each is worth, and the best one counts."


class GateTurns(Gates):
    """The same gates, with a prompt that tells the rules of several attempts."""

    def task(self, id: str, *, prompt: bool = True) -> Task:
        task = super().task(id, prompt=prompt)
        told = tuple(Message(role="user", content=f"{one.content}\n\n{RULES}") for one in task.prompt)
        return Task(env=SPEC.name, id=id, split=task.split, prompt=told, data=task.data)


def score(task: Task, completion: Completion, *, profile: str = PROFILE) -> Score:
    """Of a conversation, or of one answer alone. Whatever stands between the attempts is not believed: the assistant's
    messages are scored again.

    Metrics:
        attempts: how many there were.
    """
    attempts: Sequence[Completion] = [completion]
    if not isinstance(completion, str):
        attempts = [[one] for one in completion if isinstance(one, Mapping) and one.get("role") == "assistant"]
    if not 1 <= len(attempts) <= ATTEMPTS:
        reason = f"attempts: {len(attempts)} messages of the assistant, want 1 to {ATTEMPTS}"
        return Score(status="invalid", reward=SPEC.floor, reason=reason, profile=profile)
    return best_of([neuron_gates.score(task, one, profile=profile) for one in attempts])


def best_of(scores: Sequence[Score]) -> Score:
    """The best valid one (the first of equals), else the last. Both the environment and the scorer end here."""
    valid = [one for one in scores if one.status == "ok"]
    best = max(valid, key=reward_of) if valid else scores[-1]
    return best.model_copy(update={"metrics": best.metrics | {"attempts": float(len(scores))}})


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
    scorer="neuron_turns:score",
    default_profile=PROFILE,
    profiles=PROFILE,
    floor=0.0,
    max_turns=ATTEMPTS,
    pass_threshold=1.0,
)
gymnasium.register(id=SPEC.gym_id, entry_point=SPEC.env)

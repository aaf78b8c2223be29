"""How a scripted agent is written: as a plan that yields calls and is sent their answers.

What it says next follows from the episode's messages so far alone: they are told to a fresh plan from the beginning. So
an agent is a function, has no state, and plays wherever messages go.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weightgym.rewards.contracts import Task, TaskError
from weightgym.rewards.wsp.instances import PublicData
from weightgym.rewards.wsp.profile import profile


@dataclass(frozen=True)
class Ask:
    """A call that is wanted."""

    tool: str
    arguments: Mapping[str, Any]


def ask(tool: str, **arguments: Any) -> Ask:
    """A call."""
    return Ask(tool, arguments)


#: Yields the calls of a message, is sent their answers in the same order. At its end the agent submits.
Plan = Generator[Sequence[Ask], list[str], Ask]


@dataclass(frozen=True)
class Brief:
    """What a plan is told: the public row, and random numbers of its own."""

    data: PublicData
    random: random.Random

    @property
    def gpu_calls(self) -> int:
        """How many the tier allows."""
        return profile(self.data.profile).tiers[self.data.tier].gpu_calls

    @property
    def at_once(self) -> int:
        """How many calls of a message are run."""
        return profile(self.data.profile).calls_per_message


#: The task, the conversation so far (with or without its prompt), a seed → the next assistant message.
Agent = Callable[[Task, Sequence[Mapping[str, Any]], int | str], dict[str, Any]]


def played_by(plan: Callable[[Brief], Plan]) -> Agent:
    """The agent that follows a plan."""

    def agent(task: Task, messages: Sequence[Mapping[str, Any]], seed: int | str) -> dict[str, Any]:
        brief = Brief(PublicData.model_validate(dict(task.data)), random.Random(f"{task.id} {seed}"))
        return next_message(plan(brief), messages)

    return agent


def next_message(plan: Plan, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the plan says after these messages.

    Raises:
        TaskError: they are of another plan's episode.
    """
    rounds = _answers(messages)
    try:
        asked = next(plan)
        for answers in rounds:
            if len(answers) != len(asked):
                raise TaskError(f"a message of the script has {len(asked)} calls and got {len(answers)} answers")
            asked = plan.send(answers)
    except StopIteration as end:
        asked = [end.value]
    return _message(asked, len(rounds))


def _answers(messages: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """The tools' answers to each of the agent's messages."""
    rounds: list[list[str]] = []
    for message in messages:
        if message["role"] == "assistant":
            rounds.append([])
        elif message["role"] == "tool" and rounds:
            rounds[-1].append(str(message["content"]))
    return rounds


def _message(asked: Sequence[Ask], turn: int) -> dict[str, Any]:
    calls = [
        {
            "id": f"call_{turn}_{number}",
            "type": "function",
            "function": {"name": one.tool, "arguments": json.dumps(one.arguments, allow_nan=False)},
        }
        for number, one in enumerate(asked)
    ]
    return {"role": "assistant", "content": "", "tool_calls": calls}

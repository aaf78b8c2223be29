"""The tasks of WeightProgramBench: built-in games to train on, the five original MinAtar games to test with."""

from __future__ import annotations

from weightgym.envs.registry import suggest
from weightgym.envs.weight_program.prompt import SYSTEM_PROMPT, builtin_prompt, original_prompt
from weightgym.rewards.contracts import Message, Split, Task, TaskError, sha256_hex
from weightgym.rewards.weight_program import builtin
from weightgym.rewards.weight_program.channels import CAPS, CHANNEL_MAPS
from weightgym.rewards.weight_program.games import GAMES
from weightgym.rewards.weight_program.minatar import SOURCE_SHA256
from weightgym.rewards.weight_program.profile import EPISODES

ENV = "weight-program"


class WeightProgramTasks:
    """Task source. Ids are ``original/<game>`` (test) and ``builtin/<game>`` (train)."""

    def __init__(self) -> None:
        self._ids: dict[Split, tuple[str, ...]] = {
            "train": tuple(f"builtin/{game}" for game in sorted(GAMES)),
            "test": tuple(f"original/{game}" for game in sorted(CHANNEL_MAPS)),
        }

    def ids(self, split: Split) -> tuple[str, ...]:
        """The ids of a split, sorted."""
        return self._ids[split]

    def task(self, id: str, *, prompt: bool = True) -> Task:
        """The task of that id. Without ``prompt`` MinAtar need not be installed.

        Raises:
            TaskError: there is no such task; or the prompt is wanted and MinAtar is missing.
        """
        known = (*self._ids["train"], *self._ids["test"])
        if id not in known:
            raise TaskError(f"unknown task {id!r}{suggest(id, known)}")
        source, game = id.split("/")
        return _original(id, game, prompt) if source == "original" else _builtin(id, game, prompt)


def _original(id: str, game: str, prompt: bool) -> Task:
    return Task(
        env=ENV,
        id=id,
        split="test",
        prompt=_messages(original_prompt(game)) if prompt else (),
        system_prompt=SYSTEM_PROMPT,
        data={
            "game": game,
            "source": "original",
            "cap": CAPS[game],
            "episodes": EPISODES,
            "minatar_sha256": SOURCE_SHA256[game],
        },
    )


def _builtin(id: str, game: str, prompt: bool) -> Task:
    module = builtin.module(game)
    return Task(
        env=ENV,
        id=id,
        split="train",
        prompt=_messages(builtin_prompt(game)) if prompt else (),
        system_prompt=SYSTEM_PROMPT,
        data={
            "game": game,
            "source": "builtin",
            "family": module.FAMILY,
            "cap": module.CAP,
            "episodes": EPISODES,
            "sha256": sha256_hex(builtin.source(game)),
        },
    )


def _messages(content: str) -> tuple[Message, ...]:
    return (Message(role="user", content=content),)


SOURCE = WeightProgramTasks()

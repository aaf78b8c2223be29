"""The tasks of WeightProgramBench: built-in games to train on, the five original MinAtar games to test with."""

from __future__ import annotations

from pydantic import JsonValue

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
        original = source == "original"
        make_prompt = original_prompt if original else builtin_prompt
        return Task(
            env=ENV,
            id=id,
            split="test" if original else "train",
            prompt=(Message(role="user", content=make_prompt(game)),) if prompt else (),
            system_prompt=SYSTEM_PROMPT,
            data={"game": game, "source": source, "episodes": EPISODES}
            | (_original_data(game) if original else _builtin_data(game)),
        )


def _original_data(game: str) -> dict[str, JsonValue]:
    return {"cap": CAPS[game], "minatar_sha256": SOURCE_SHA256[game]}


def _builtin_data(game: str) -> dict[str, JsonValue]:
    module = builtin.module(game)
    return {"cap": module.CAP, "family": module.FAMILY, "sha256": sha256_hex(builtin.source(game))}


SOURCE = WeightProgramTasks()

"""The tasks of WeightProgramBench: the five original MinAtar games, all in the test split."""

from __future__ import annotations

from weightgym.envs.registry import suggest
from weightgym.envs.weight_program.prompt import SYSTEM_PROMPT, task_prompt
from weightgym.rewards.contracts import Message, Split, Task, TaskError
from weightgym.rewards.weight_program.channels import CAPS, CHANNEL_MAPS
from weightgym.rewards.weight_program.minatar import SOURCE_SHA256
from weightgym.rewards.weight_program.profile import EPISODES

ENV = "weight-program"


class WeightProgramTasks:
    """Task source. Ids are ``original/<game>``."""

    def __init__(self) -> None:
        self._games = {f"original/{game}": game for game in sorted(CHANNEL_MAPS)}

    def ids(self, split: Split) -> tuple[str, ...]:
        """The ids of a split, sorted."""
        return tuple(self._games) if split == "test" else ()

    def task(self, id: str, *, prompt: bool = True) -> Task:
        """The task of that id. Without ``prompt`` MinAtar need not be installed.

        Raises:
            TaskError: there is no such task; or the prompt is wanted and MinAtar is missing.
        """
        game = self._games.get(id)
        if game is None:
            raise TaskError(f"unknown task {id!r}{suggest(id, self._games)}")
        content = (Message(role="user", content=task_prompt(game)),) if prompt else ()
        return Task(
            env=ENV,
            id=id,
            split="test",
            prompt=content,
            system_prompt=SYSTEM_PROMPT,
            data={
                "game": game,
                "source": "original",
                "cap": CAPS[game],
                "episodes": EPISODES,
                "minatar_sha256": SOURCE_SHA256[game],
            },
        )


SOURCE = WeightProgramTasks()

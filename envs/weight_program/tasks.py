"""The tasks of WeightProgramBench: small games to train on, the five original MinAtar games to test with.

Without a snapshot of the published dataset one trains on the built-in games (``builtin/<game>``). With one
(``snapshot.layout.choose``) the training split is the snapshot's (``synth/<game>``), and prompts are its own.
"""

from __future__ import annotations

import functools
from importlib.resources import files
from typing import Any

from pydantic import JsonValue

from weightgym.envs.weight_program.prompt import SYSTEM_PROMPT, builtin_prompt, original_prompt
from weightgym.rewards.contracts import Message, Split, Task, TaskError, sha256_hex
from weightgym.rewards.suggest import unknown_task
from weightgym.rewards.weight_program import builtin
from weightgym.rewards.weight_program.channels import CAPS, CHANNEL_MAPS
from weightgym.rewards.weight_program.games import GAMES
from weightgym.rewards.weight_program.minatar import SOURCE_SHA256
from weightgym.rewards.weight_program.profile import EPISODES
from weightgym.rewards.weight_program.snapshot import layout

ENV = "weight-program"
_BUILTIN = tuple(f"builtin/{game}" for game in GAMES)
_ORIGINAL = tuple(f"original/{game}" for game in sorted(CHANNEL_MAPS))


class WeightProgramTasks:
    """Task source. Ids are ``original/<game>`` (test), and ``builtin/<game>``, ``variant/<game>@<changes>`` or, with a
    snapshot, ``synth/<game>`` (train).

    The stored variants are in a split only for those who ask for them; the ids of all declared ones always work.
    """

    def __init__(self, *, with_variants: bool = False) -> None:
        self.with_variants = with_variants

    def ids(self, split: Split) -> tuple[str, ...]:
        """The ids of a split, sorted.

        Raises:
            TaskError: the chosen snapshot is incomplete or altered.
        """
        snapshot = layout.current()
        if snapshot is None:
            train, test = _BUILTIN, _ORIGINAL
        else:
            train, test = (
                tuple(sorted(id for id, row in snapshot.rows.items() if row["split"] == part))
                for part in ("train", "test")
            )
        if split == "test":
            return test
        return tuple(sorted((*train, *variant_ids()))) if self.with_variants else train

    def task(self, id: str, *, prompt: bool = True) -> Task:
        """The task of that id. Without ``prompt`` MinAtar need not be installed.

        Raises:
            TaskError: there is no such task; or the prompt is wanted and MinAtar is missing; or the chosen snapshot is
                incomplete or altered.
        """
        snapshot = layout.current()
        if snapshot is not None and id in snapshot.rows:
            return _snapshot_task(id, snapshot, prompt)
        source, _, game = id.partition("/")
        if id in _ORIGINAL:
            return _task(id, "test", original_prompt(game) if prompt else "", _original_data(game))
        if id in _BUILTIN or (source == "variant" and "@" in game):
            return _task(id, "train", builtin_prompt(game) if prompt else "", _builtin_data(game, source))
        if source == "synth" and snapshot is None:
            raise TaskError(f"{id!r} is a task of the published dataset: choose a copy of it with --snapshot DIR")
        known = (*self.ids("train"), *self.ids("test"), *_BUILTIN)
        raise TaskError(unknown_task("weight-program", id, known))


@functools.cache
def variant_ids() -> tuple[str, ...]:
    """The stored variants, whose caps were found by solving them (``weightgym wpb vary``)."""
    stored = files("weightgym.envs.weight_program") / "variants.txt"
    lines = stored.read_text("utf-8").splitlines()
    return tuple(f"variant/{line}" for line in lines if not line.startswith("#"))


def _task(id: str, split: Split, prompt: str, data: dict[str, Any], system_prompt: str = SYSTEM_PROMPT) -> Task:
    messages = (Message(role="user", content=prompt),) if prompt else ()
    return Task(env=ENV, id=id, split=split, prompt=messages, system_prompt=system_prompt, data=data)


def _original_data(game: str) -> dict[str, JsonValue]:
    return {
        "game": game,
        "source": "original",
        "episodes": EPISODES,
        "cap": CAPS[game],
        "minatar_sha256": SOURCE_SHA256[game],
    }


def _builtin_data(game: str, source: str) -> dict[str, JsonValue]:
    module = builtin.module(game)
    return {
        "game": game,
        "source": source,
        "episodes": EPISODES,
        "cap": module.CAP,
        "family": module.FAMILY,
        "sha256": sha256_hex(builtin.source(game)),
    }


def _snapshot_task(id: str, snapshot: layout.Snapshot, prompt: bool) -> Task:
    row = dict(snapshot.rows[id])
    text, system_prompt, split = row.pop("prompt"), row.pop("system_prompt"), row.pop("split")
    row["snapshot"] = snapshot.tasks_sha256
    row["cap"] = CAPS[row["game"]] if row["source"] == "original" else None
    return _task(id, split, text if prompt else "", row, system_prompt)


SOURCE = WeightProgramTasks()

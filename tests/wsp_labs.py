"""Labs on tiny random models, for tests: instances ``one``, ``two``, ``three``, and a scorer that counts."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import wsp_episodes

from weightgym.rewards.contracts import Message, Score, Task
from weightgym.rewards.wsp.engine import Engine
from weightgym.rewards.wsp.episode import Episode
from weightgym.rewards.wsp.lab.bodies import WrittenMessage
from weightgym.rewards.wsp.lab.lab import Lab
from weightgym.rewards.wsp.lab.loaded import Instance
from weightgym.rewards.wsp.lab.server import LabServer

INSTANCES = ("one", "two", "three")
TOKEN = "correct-horse"
REWARD = 0.123456
#: Random models are drawn from torch's one generator.
_SEEDED = threading.Lock()


def task(id: str) -> Task:
    data = wsp_episodes.data("medium").model_dump()
    prompt = (Message(role="user", content=f"Repair {id}."),)
    return Task(env="wsp-bench", id=id, split="test", prompt=prompt, data=data)


def load(id: str) -> Instance | None:
    if id not in INSTANCES:
        return None
    with _SEEDED:
        return Instance(task(id), Engine(wsp_episodes.model(INSTANCES.index(id))))


def score(task: Task, episode: Episode) -> Score:
    metrics = {"changed": float(episode.deltas.changed), "turns": float(episode.turns)}
    return Score(status="ok", reward=REWARD, metrics=metrics, profile="wsp-v1", info={"track": "fixed"})


@contextlib.contextmanager
def lab(
    folder: Path, loader: Callable[[str], Instance | None] = load, scorer: Any = score, **more: Any
) -> Iterator[Lab]:
    made = Lab(loader, scorer, folder / "results.jsonl", **more)
    try:
        yield made
    finally:
        made.close()


@contextlib.contextmanager
def server(folder: Path, *, patience: float = 30.0, **more: Any) -> Iterator[LabServer]:
    with lab(folder, **more) as made:
        serving = LabServer(made, TOKEN, patience=patience)
        try:
            yield serving
        finally:
            serving.close()


def results(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


def message(*calls: Any, **more: Any) -> WrittenMessage:
    return WrittenMessage.model_validate(wsp_episodes.message(*calls, **more))


def waited(done: Callable[[], Any], seconds: float = 20.0) -> Any:
    """What ``done`` gives as soon as it is true."""
    end = time.monotonic() + seconds
    while not (found := done()):
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.02)
    return found


class Held:
    """An engine whose forward passes wait until they are let go."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        self.passes = 0

    def load(self, id: str) -> Instance | None:
        if (made := load(id)) is not None:
            made.engine.model.network.model.layers[0].register_forward_pre_hook(self._wait)
        return made

    def _wait(self, *_: Any) -> None:
        self.passes += 1
        self.begun.set()
        assert self.go.wait(30)

"""Helpers of tests: scripted policies that call tools, with one lane or many, and what plays them."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import toy_tools_env

from weightgym.envs.registry import EnvSpec
from weightgym.rollouts.backend import Request, Sample, Sampling
from weightgym.rollouts.run import Job, jobs, run
from weightgym.rollouts.scripted import ScriptedBackend
from weightgym.rollouts.trajectory import Trajectory

SPEC = toy_tools_env.SPEC
Script = Callable[[Request], str]


class Lanes(ScriptedBackend):
    """A scripted server: answers after a time of its own, each request by itself."""

    batch_size = 1

    def __init__(self, script: Script, lanes: int = 16, *, slowest: float = 0.01) -> None:
        super().__init__("lanes", script)
        self.lanes = lanes
        self.slowest = slowest
        self.asked: list[Request] = []
        self.at_once = 0
        self.most = 0
        self._lock = threading.Lock()

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Sample]:
        with self._lock:
            self.asked += requests
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        try:
            time.sleep(random.random() * self.slowest)
            return super().generate(requests, sampling)
        finally:
            with self._lock:
                self.at_once -= 1


def call(name: str, **arguments: Any) -> str:
    return json.dumps({"tool": name, "arguments": arguments})


def turn_of(request: Request) -> int:
    return sum(message["role"] == "assistant" for message in request.messages)


def adds_up(request: Request) -> str:
    """Adds, then submits what the tool said."""
    if turn_of(request) == 0:
        number = int(request.task.id.partition("/")[2])
        return call("add", **{f"n{i}": i for i in range(number + 1)})
    result = request.messages[-1]["content"]
    return call("submit", sum=int(result)) if result.isdigit() else "?"


def says(*texts: str) -> Script:
    """A text a turn, then the last one."""
    return lambda request: texts[min(turn_of(request), len(texts) - 1)]


def tool_jobs(*ids: str, samples: int = 1) -> list[Job]:
    return jobs([toy_tools_env.SOURCE.task(id) for id in ids], samples, 0)


def play(backend: Any, todo: Sequence[Job], entry: EnvSpec = SPEC, **options: Any) -> dict[str, Trajectory]:
    settings: dict[str, Any] = {"sampling": Sampling(max_tokens=16), "profile": entry.default_profile}
    results = list(run(todo, backend, entry, **(settings | options)))
    assert sorted(one.id for one in results) == sorted(job.id for job in todo)
    return {one.id: one for one in results}


def content(results: dict[str, Trajectory]) -> dict[str, Any]:
    """All that must not depend on how it was run."""
    return {id: one.model_dump(exclude={"seconds": True, "score": {"seconds"}, "policy": True}) for id, one in results.items()}  # fmt: skip # noqa: E501

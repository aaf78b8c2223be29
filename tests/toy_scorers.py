"""A toy benchmark whose scorer does what the answer says. Helper of the tests; worker processes import it by name."""

from __future__ import annotations

import ctypes
import hashlib
import math
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from weightgym.envs import registry
from weightgym.rewards.contracts import Completion, Score, Split, Task, TaskError, completion_text

sys.path.insert(0, str(Path(__file__).parent))  # workers get our sys.path, and find this module

ENV = "toy"
PROFILE = "toy-v1"
SCORER = "toy_scorers:score"


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class Unpicklable(Exception):
    def __reduce__(self) -> Any:
        raise RuntimeError("no pickle")


def _spin() -> object:
    while True:
        pass


ENDS: dict[str, Callable[[], object]] = {
    "spin": _spin,
    "hang": lambda: time.sleep(3600),
    "exit 0": lambda: os._exit(0),
    "exit 3": lambda: os._exit(3),
    "sigkill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "segfault": lambda: ctypes.string_at(0),
}


def score(task: Task, completion: Completion, *, profile: str = PROFILE) -> Any:
    """The first word of the answer says what happens; the reward is a hash of task and answer."""
    if profile not in (PROFILE, "toy-v2"):
        raise TaskError(f"unknown profile {profile!r}: use toy-v1 or toy-v2")
    text = completion_text(completion)
    if text.startswith("once "):  # the first time what it says, later an ordinary answer
        _, mark, what = text.split(maxsplit=2)
        if not Path(mark).exists():
            Path(mark).touch()
            return score(task, what, profile=profile)
    if text in ENDS:
        ENDS[text]()
    if text.startswith("sleep "):
        time.sleep(float(text.split()[1]))
    if text.startswith("pid "):  # tell the test who scores, then hang
        Path(text.split()[1]).joinpath(str(os.getpid())).touch()
        _spin()
    digest = hashlib.sha256(f"{task.id} {text}".encode("utf-8", "surrogatepass")).digest()
    good = Score(status="ok", reward=digest[0] / 256, metrics={"length": len(text)}, profile=profile)
    match text:
        case "":
            return Score(status="invalid", reward=0.0, reason="empty: nothing to score", profile=profile)
        case "raise":
            raise ValueError("broken\nin two lines")
        case "raise unprintable":
            raise Unprintable
        case "raise unpicklable":
            raise Unpicklable("odd")
        case "raise exit":
            raise SystemExit(0)
        case "raise interrupt":
            raise KeyboardInterrupt
        case "raise timeout":
            raise TimeoutError("of the scorer's own")
        case "recurse":
            return score(task, completion, profile=profile)
        case "return none":
            return None
        case "return number":
            return 1.0
        case "return dict":
            return good.model_dump()
        case "return nan":
            return Score.model_construct(status="ok", reward=math.nan, profile=profile)
        case "return nan info":
            return good.model_copy(update={"info": {"x": math.nan}})
        case "return error with reward":
            return good.model_copy(update={"status": "error", "reason": "x"})
        case "return other profile":
            return good.model_copy(update={"profile": "other-v1"})
        case "return no profile":
            return good.model_copy(update={"profile": ""})
        case "task error":
            raise TaskError("bad task data")
        case "print":
            print("printed by the scorer", flush=True)
            os.write(1, b"written by the scorer\n")
        case "return random":
            return good.model_copy(update={"info": {"repeatable": False, "value": os.environ.get("TOY_VALUE")}})
        case "environment":
            return good.model_copy(update={"info": {"value": os.environ.get("TOY_VALUE")}})
    return good


class Tasks:
    """Three tasks."""

    def ids(self, split: Split) -> tuple[str, ...]:
        return ("easy/one", "easy/two") if split == "test" else ("hard/one",)

    def task(self, id: str, *, prompt: bool = True) -> Task:
        for split in ("train", "test"):
            if id in self.ids(split):
                content = [{"role": "user", "content": f"Do {id}."}] if prompt else []
                return Task.model_validate(
                    {"env": ENV, "id": id, "split": split, "prompt": content, "system_prompt": "Be brief.",
                     "data": {"cap": 10, "notes": {"long": "x" * 100}}}
                )  # fmt: skip
        raise TaskError("no such task")


class Env:
    """All that commands do with an environment: build it with a profile."""

    def __init__(self, *, profile: str = PROFILE) -> None:
        if profile not in (PROFILE, "toy-v2"):
            raise TaskError(f"unknown profile {profile!r}: use toy-v1 or toy-v2")


SOURCE = Tasks()
SPEC = registry.EnvSpec(
    name=ENV,
    gym_id="weightgym/Toy-v1",
    summary="does what the answer says",
    env="toy_scorers:Env",
    source="toy_scorers:SOURCE",
    scorer=SCORER,
    default_profile=PROFILE,
    profiles="toy-v1, toy-v2",
    floor=0.0,
)

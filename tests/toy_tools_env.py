"""An environment with tools: add numbers, submit the sum. Some of its tasks misbehave, each in its own way."""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from weightgym.envs.base import Action, TaskEnv, reward_of, verdict
from weightgym.envs.registry import EnvSpec
from weightgym.envs.testing import EnvSubject
from weightgym.rewards.contracts import Completion, Message, Score, Split, Task, TaskError

ENV = "toy-tools"
PROFILE = "toy-tools-v1"
MAX_TURNS = 5
#: Whatever hangs waits for this, so that a test can end it.
RELEASE = threading.Event()
#: Task ids of environments that were closed.
CLOSED: list[str] = []

NUMBER = {"type": "integer"}


def tool(name: str, *arguments: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": dict.fromkeys(arguments, NUMBER), "required": list(arguments)}
    return {"type": "function", "function": {"name": name, "description": f"{name}!", "parameters": schema}}


TOOLS = [tool("add", "a", "b"), tool("submit", "sum")]


class ToolTasks:
    def ids(self, split: Split) -> tuple[str, ...]:
        return ("plain/1", "plain/2", "plain/3", "plain/4") if split == "train" else ("plain/5",)

    def task(self, id: str, *, prompt: bool = True) -> Task:
        kind, _, number = id.partition("/")
        if not number.isdigit():
            raise TaskError(f"unknown task {id!r}")
        split: Split = "test" if number == "5" else "train"
        messages = (Message(role="user", content=f"Sum 1 to {number}."),) if prompt else ()
        data = {"kind": kind, "sum": sum(range(int(number) + 1))}
        return Task(env=ENV, id=id, split=split, prompt=messages, system_prompt="Use the tools.", data=data)


SOURCE = ToolTasks()


def calls_of(message: Mapping[str, Any]) -> list[tuple[Any, str, dict[str, Any]]]:
    """Id, name and arguments of a message's calls; anybody may have made them."""
    found = []
    for call in message.get("tool_calls") or ():
        try:
            arguments = json.loads(call["function"]["arguments"])
            found.append((call["id"], call["function"]["name"], dict(arguments)))
        except (KeyError, TypeError, ValueError):
            continue
    return found


def submitted(completion: Completion) -> Any:
    """The first sum that a message submits."""
    messages: Sequence[Mapping[str, Any]] = [] if isinstance(completion, str) else completion
    made = [call for message in messages for call in calls_of(message)]
    return next((arguments.get("sum") for _, name, arguments in made if name == "submit"), None)


def score(task: Task, completion: Completion, *, profile: str = PROFILE) -> Score:
    found = submitted(completion)
    if found is None:
        return Score(status="invalid", reward=0.0, reason="no_sum: nothing was submitted", profile=profile)
    reward = float(found == task.data["sum"]) * (0.5 if profile == "toy-tools-half-v1" else 1.0)
    return Score(status="ok", reward=reward, metrics={"messages": len(completion)}, profile=profile)


class ToolEnv(TaskEnv):
    """At most ``MAX_TURNS`` messages."""

    def __init__(self, *, split: Split = "train", profile: str = PROFILE) -> None:
        super().__init__(ENV, split=split, profile=profile)
        self.talk: list[dict[str, Any]] = []
        self.turn = 0
        self.kind = ""

    def _info(self, task: Task) -> dict[str, Any]:
        return super()._info(task) | {"tools": copy.deepcopy(TOOLS)}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        start = super().reset(seed=seed, options=options)
        assert self.task is not None
        self.talk, self.turn, self.kind = [], 0, str(self.task.data["kind"])
        if self.kind == "hang_reset":
            RELEASE.wait(60)
        if self.kind == "raise_reset":
            raise OSError("no lab")
        if self.kind == "other_task":
            start[1]["task_hash"] = "0" * 64
        return start

    def step(self, action: Action) -> tuple[str, float, bool, bool, dict[str, Any]]:
        task = self.task
        if task is None:
            raise RuntimeError("step() needs an episode: call reset() first")
        if isinstance(action, str):
            action = {"role": "assistant", "content": action}
        turn, self.turn = self.turn, self.turn + 1
        self.talk.append(dict(action))
        self._misbehave(turn)
        info = self._info(task)
        if submitted([action]) is not None or (turn >= MAX_TURNS - 1 and self.kind != "endless"):
            self.task = None
            result = self.entry.score(task, self.talk, profile=self.profile)
            return verdict(result), reward_of(result), True, False, info | {"score": result}
        info["reply"] = [self._answer(id, arguments) for id, _, arguments in calls_of(action)]
        info["reply"] = info["reply"] or [{"role": "user", "content": "Call a tool, or submit."}]
        if self.kind == "bad_reply":
            info["reply"] = [{"role": "assistant", "content": "I am the model."}]
        self.talk += info["reply"]
        return "see the reply", 0.0, False, False, info

    def _misbehave(self, turn: int) -> None:
        if self.kind == "hang_step" and turn == 1:
            RELEASE.wait(60)
        if self.kind == "raise_step" and turn == 1:
            raise RuntimeError("the lab burnt down")
        if self.kind == "exit_step" and turn == 1:
            raise SystemExit(0)

    def _answer(self, id: str, arguments: dict[str, Any]) -> dict[str, Any]:
        result = str(sum(value for value in arguments.values() if isinstance(value, int)))
        if self.kind == "huge":
            result = "9" * 100_000
        if self.kind == "unicode":
            result = "né 🐉 \ud800 \U0010ffff"
        return {"role": "tool", "tool_call_id": id, "content": result}

    def close(self) -> None:
        if self.kind == "hang_close":
            RELEASE.wait(60)
        if self.kind == "raise_close":
            raise RuntimeError("will not close")
        CLOSED.append(self.kind)


SPEC = EnvSpec(
    name=ENV,
    gym_id="tests/ToyTools-v1",
    summary="add with tools",
    env="toy_tools_env:ToolEnv",
    source="toy_tools_env:SOURCE",
    scorer="toy_tools_env:score",
    default_profile=PROFILE,
    profiles=PROFILE,
    floor=0.0,
    max_turns=MAX_TURNS,
)


def subject(**changes: Any) -> EnvSubject:
    def gold(id: str) -> tuple[list[Action], float]:
        total = SOURCE.task(id).data["sum"]
        calls = (("add", {"a": total}), ("submit", {"sum": total}))
        return [
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "call_0", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}]}
            for name, arguments in calls
        ], 1.0  # fmt: skip

    facts: dict[str, Any] = {
        "make": ToolEnv,
        "gold": gold,
        "floor": 0.0,
        "flags": {"profile": (PROFILE, "toy-tools-half-v1")},
    }
    return EnvSubject(**(facts | changes))

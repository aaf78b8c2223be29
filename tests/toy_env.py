"""Three small correct environments: single-turn, multi-turn, and one that shares no code with us.

``ToyEnv`` is also the shortest complete example of an environment: a task source, a scorer, a class, a registry entry.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import gymnasium

from weightgym.envs.base import Action, SingleTurnEnv, TaskEnv, reward_of, verdict
from weightgym.envs.registry import EnvSpec, Scorer
from weightgym.envs.spaces import TextSpace
from weightgym.envs.testing import EnvSubject
from weightgym.rewards.contracts import Completion, Message, ModelError, Score, Split, Task, TaskError, completion_text

HERE = __name__
MAX_CHARS = 10_000
TOLERANCE = {"toy-v1": 10, "toy-strict-v1": 0}


class SumSource:
    """Sums. Split → id → (a, b)."""

    def __init__(self, env: str, rows: Mapping[Split, Mapping[str, tuple[int, int]]]) -> None:
        self.env = env
        self.rows = rows

    def ids(self, split: Split) -> tuple[str, ...]:
        return tuple(self.rows[split])

    def task(self, id: str, *, prompt: bool = True) -> Task:
        for split, rows in self.rows.items():
            if isinstance(id, str) and id in rows:
                a, b = rows[id]
                text = f"What is {a} + {b}? Answer with one line: answer: NUMBER"
                messages = (Message(role="user", content=text),) if prompt else ()
                return Task(env=self.env, id=id, split=split, prompt=messages, data={"a": a, "b": b})
        raise TaskError(f"{self.env}: unknown task {id!r}")


ROWS: dict[Split, dict[str, tuple[int, int]]] = {
    "train": {"small": (1, 2), "middle": (17, 25), "large": (1234, 4321)},
    "test": {"odd": (3, 4), "even": (20, 22)},
}
SOURCE = SumSource("toy", ROWS)
GUESS_SOURCE = SumSource("toy-guess", ROWS)


def score(task: Task, completion: Completion, *, profile: str = "toy-v1") -> Score:
    """1 for the sum; up to a half for a number within the profile's tolerance."""
    try:
        text = completion_text(completion)
    except ModelError as error:
        return invalid("no_text", str(error), profile)
    if len(text) > MAX_CHARS:
        return invalid("too_long", f"{len(text)} characters, at most {MAX_CHARS} are read", profile)
    match = re.fullmatch(r"answer: (-?[0-9]{1,12})", text.strip(), re.ASCII)
    if match is None:
        return invalid("no_answer", "the answer is one line: answer: NUMBER", profile)
    return grade(task, int(match[1]), profile)


def grade(task: Task, number: int, profile: str) -> Score:
    a, b = task.data["a"], task.data["b"]
    assert isinstance(a, int)
    assert isinstance(b, int)
    tolerance = TOLERANCE[profile]
    distance = abs(number - a - b)
    reward = 1.0 if distance == 0 else max(0.0, 0.5 * (1 - distance / (tolerance + 1)))
    return Score(status="ok", reward=reward, metrics={"distance": distance, "tolerance": tolerance}, profile=profile)


def invalid(code: str, text: str, profile: str) -> Score:
    return Score(status="invalid", reward=0.0, reason=f"{code}: {text}", profile=profile)


class ToyEnv(SingleTurnEnv):
    """Add two numbers. ``hint`` adds a sentence to the prompt."""

    def __init__(self, *, split: Split = "train", profile: str = "toy-v1", hint: bool = False) -> None:
        super().__init__("toy", split=split, profile=profile)
        self.hint = hint

    def _prompt(self, task: Task) -> str:
        return super()._prompt(task) + ("\n\nTake your time." if self.hint else "")

    def _info(self, task: Task) -> dict[str, Any]:
        info = super()._info(task)
        info["messages"][-1]["content"] = self._prompt(task)
        return info


class GuessEnv(TaskEnv):
    """Three guesses with feedback; the last one counts, and a right one ends the episode."""

    def __init__(self, *, split: Split = "train") -> None:
        super().__init__("toy-guess", split=split)
        self.said: list[dict[str, Any]] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        start = super().reset(seed=seed, options=options)
        self.said = []
        return start

    def step(self, action: Action) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self.task is None:
            raise RuntimeError("step() needs an episode: call reset() first")
        task = self.task
        self.said.append({"role": "assistant", "content": action} if isinstance(action, str) else dict(action))
        guess = self.entry.score(task, self.said, profile=self.profile)
        reward = reward_of(guess)
        if reward < 1 and len(self.said) < self.entry.max_turns:
            return f"try again; {verdict(guess)}", 0.0, False, False, self._info(task)
        self.task = None
        return verdict(guess), reward, True, False, self._info(task) | {"score": guess}


class PlainEnv(gymnasium.Env[str, Action]):
    """An environment of someone who uses nothing of ours but the contracts and the text space."""

    def __init__(self) -> None:
        self.observation_space = TextSpace(MAX_CHARS)
        self.action_space = TextSpace(MAX_CHARS)
        self.scorer: Scorer = score
        self.task: Task | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        if set(options or {}) - {"task"}:
            raise ValueError(f"unknown option: {sorted(options or {})}")
        wanted = (options or {}).get("task")
        chosen = None if wanted is None else SOURCE.task(wanted)
        super().reset(seed=seed)
        ids = SOURCE.ids("train")
        self.task = chosen or SOURCE.task(ids[int(self.np_random.integers(len(ids)))])
        return self.task.prompt[0].content, self._info(self.task)

    def _info(self, task: Task) -> dict[str, Any]:
        return {"task": task.id, "task_hash": task.hash, "messages": task.messages, "tools": []}

    def step(self, action: Action) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self.task is None:
            raise RuntimeError("reset() first")
        task, self.task = self.task, None
        result = self.scorer(task, action if isinstance(action, str) else [action], profile="toy-v1")
        return "done", reward_of(result), True, False, self._info(task) | {"score": result}


def plain_env_with(scorer: Scorer) -> PlainEnv:
    env = PlainEnv()
    env.scorer = scorer
    return env


def entry(name: str, env: str, **changes: Any) -> EnvSpec:
    """A registry entry for an environment of this module."""
    facts: dict[str, Any] = {
        "summary": "add two numbers",
        "source": f"{HERE}:SOURCE",
        "scorer": f"{HERE}:score",
        "default_profile": "toy-v1",
        "profiles": "toy-v1 (within 10 counts), toy-strict-v1 (exact)",
        "floor": 0.0,
    }
    return EnvSpec(**({"name": name, "gym_id": f"weightgym-{name}/Toy-v1", "env": f"{HERE}:{env}"} | facts | changes))


TOY = entry("toy", "ToyEnv")
GUESS = entry("toy-guess", "GuessEnv", source=f"{HERE}:GUESS_SOURCE", max_turns=3)


def gold_answer(id: str) -> tuple[str, float]:
    data = SOURCE.task(id).data
    return f"answer: {data['a'] + data['b']}", 1.0  # type: ignore[operator]


def toy_subject(**changes: Any) -> EnvSubject:
    facts: dict[str, Any] = {
        "make": ToyEnv,
        "gold": gold_answer,
        "floor": 0.0,
        "flags": {"profile": ("toy-v1", "toy-strict-v1"), "hint": (False, True)},
        "invalid": ("answer: ", "answer: 1e3", "answer: 3 or 4", "3"),
        "oversize": "answer: " + "1" * MAX_CHARS,
    }
    return EnvSubject(**(facts | changes))


def guess_subject() -> EnvSubject:
    def gold(id: str) -> tuple[list[Action], float]:
        right, least = gold_answer(id)
        return ["answer: 0", {"role": "assistant", "content": "hm"}, right], least

    silence: tuple[Any, ...] = ("", {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]})
    return EnvSubject(make=GuessEnv, gold=gold, floor=0.0, noops=silence)


def plain_subject() -> EnvSubject:
    return EnvSubject(make=PlainEnv, gold=gold_answer, floor=0.0, splits=("train",), tasks=SOURCE, scorer=score,
                      with_scorer=plain_env_with, max_turns=1)  # fmt: skip

"""The toy environment with one mistake each."""

from __future__ import annotations

import os
from typing import Any, ClassVar

import gymnasium
import toy_env
from toy_env import ToyEnv

from weightgym.envs.spaces import TextSpace
from weightgym.rewards.contracts import GraderError, Score, Split, Task, TaskError

HOME = os.getpid()

Options = dict[str, Any] | None
Start = tuple[str, dict[str, Any]]
Step = Any  # five things, some of them wrong


class SeedZeroIgnored(ToyEnv):
    def reset(self, *, seed: int | None = None, options: Options = None) -> Start:
        return super().reset(seed=seed or None, options=options)


class SeedBesideTaskIgnored(ToyEnv):
    def reset(self, *, seed: int | None = None, options: Options = None) -> Start:
        before = self._seed, self._index
        start = super().reset(seed=seed, options=options)
        if options and before[0] is not None:
            self._seed, self._index = before
        return start


class OneSeed(ToyEnv):
    def _next_id(self) -> str:
        if self._seed is not None and self._index == 0:
            self._seed = 0
        return super()._next_id()


class SeedPlusIndex(ToyEnv):
    def _next_id(self) -> str:
        super()._next_id()
        ids = self.entry.tasks.ids(self.split)
        shuffled = 2654435761 * ((self._seed or 0) + self._index) % 2**32 >> 16
        return ids[shuffled % len(ids)]


class Stuck(ToyEnv):
    seeded = False

    def reset(self, *, seed: int | None = None, options: Options = None) -> Start:
        self.seeded |= seed is not None
        if not self.seeded:
            self._index = 0
        return super().reset(seed=seed, options=options)


class DefaultSeed(ToyEnv):
    def _next_id(self) -> str:
        self._seed = 0 if self._seed is None else self._seed
        return super()._next_id()


class OptionIgnored(ToyEnv):
    def reset(self, *, seed: int | None = None, options: Options = None) -> Start:
        ids = self.entry.tasks.ids(self.split)
        last = options is not None and options.get("task") == ids[-1]
        return super().reset(seed=seed, options={"task": ids[0]} if last else options)


class UnknownTaskIsFirst(ToyEnv):
    def reset(self, *, seed: int | None = None, options: Options = None) -> Start:
        try:
            return super().reset(seed=seed, options=options)
        except TaskError:
            return super().reset(seed=seed, options={"task": self.entry.tasks.ids(self.split)[0]})


class UnknownTaskIsKeyError(ToyEnv):
    def reset(self, *, seed: int | None = None, options: Options = None) -> Start:
        try:
            return super().reset(seed=seed, options=options)
        except TaskError as error:
            raise KeyError(str(error)) from error


class UnknownOptionIgnored(ToyEnv):
    def reset(self, *, seed: int | None = None, options: Options = None) -> Start:
        known = {key: value for key, value in (options or {}).items() if key == "task"}
        return super().reset(seed=seed, options=known)


class SpoiltByRefusal(ToyEnv):
    def reset(self, *, seed: int | None = None, options: Options = None) -> Start:
        try:
            return super().reset(seed=seed, options=options)
        except TaskError:
            self.hint = True
            raise


class RemembersAnswer(ToyEnv):
    last: Any = ""

    def step(self, action: Any) -> Step:
        answer = action or self.last
        self.last = action if isinstance(action, str) and action.startswith("answer") else ""
        return super().step(answer)


class SharedTools(ToyEnv):
    tools: list[Any] | None = None

    def _info(self, task: Task) -> dict[str, Any]:
        if self.tools is None:
            self.tools = [{"type": "function", "function": {"name": "add", "parameters": {}}}]
        return super()._info(task) | {"tools": self.tools}


class CountsOpenEpisodes(ToyEnv):
    playing: ClassVar[set[int]] = set()

    def reset(self, *, seed: int | None = None, options: Options = None) -> Start:
        start = super().reset(seed=seed, options=options)
        self.playing.add(id(self))
        return start

    def step(self, action: Any) -> Step:
        observation, *rest = super().step(action)
        players = len(self.playing)
        self.playing.discard(id(self))
        return f"{observation}; {players} playing", *rest

    def close(self) -> None:
        self.playing.discard(id(self))


class EagerStep(ToyEnv):
    def step(self, action: Any) -> Step:
        if self._seed is None and self.task is None:
            self.reset()
        return super().step(action)


class PaysTwice(ToyEnv):
    result: Step | None = None

    def reset(self, *, seed: int | None = None, options: Options = None) -> Start:
        self.result = None
        return super().reset(seed=seed, options=options)

    def step(self, action: Any) -> Step:
        self.result = self.result or super().step(action)
        return self.result


class WrongHash(ToyEnv):
    def _info(self, task: Task) -> dict[str, Any]:
        return super()._info(task) | {"task_hash": "0" * 64}


class TupleMessages(ToyEnv):
    def _info(self, task: Task) -> dict[str, Any]:
        info = super()._info(task)
        info["messages"][-1]["at"] = (1, 2)
        return info


class BareTools(ToyEnv):
    def _info(self, task: Task) -> dict[str, Any]:
        return super()._info(task) | {"tools": [{"name": "add"}]}


class Bonus(ToyEnv):
    def step(self, action: Any) -> Step:
        observation, reward, *rest = super().step(action)
        return observation, float(reward) + (0.25 if float(reward) else 0), *rest


class EarlyScore(ToyEnv):
    def reset(self, *, seed: int | None = None, options: Options = None) -> Start:
        observation, info = super().reset(seed=seed, options=options)
        return observation, info | {"score": None}


class SmallSpace(ToyEnv):
    def __init__(self, *, split: Split = "train", profile: str = "toy-v1", hint: bool = False) -> None:
        super().__init__(split=split, profile=profile, hint=hint)
        self.observation_space = TextSpace(20)


class BytesVerdict(ToyEnv):
    def step(self, action: Any) -> Step:
        observation, *rest = super().step(action)
        return observation.encode(), *rest


class DeadHint(ToyEnv):
    def _prompt(self, task: Task) -> str:
        return super(ToyEnv, self)._prompt(task)


class SplitIgnored(ToyEnv):
    def _next_id(self) -> str:
        self.split = "train"
        return super()._next_id()


class OwnMetrics(ToyEnv):
    def step(self, action: Any) -> Step:
        *rest, info = super().step(action)
        score: Score = info["score"]
        return *rest, info | {"score": score.model_copy(update={"metrics": score.metrics | {"turns": 1.0}})}


class FaultIsZero(ToyEnv):
    def step(self, action: Any) -> Step:
        task = self.task
        try:
            return super().step(action)
        except GraderError as error:
            assert task is not None
            score = Score(status="invalid", reward=0.0, reason=f"failed: {error}")
            return "failed", 0.0, True, False, self._info(task) | {"score": score}


class FaultIsTypeError(ToyEnv):
    def step(self, action: Any) -> Step:
        try:
            return super().step(action)
        except GraderError as error:
            raise TypeError("unsupported format string passed to NoneType.__format__") from error


class OwnScorer(ToyEnv):
    def step(self, action: Any) -> Step:
        if self.task is None:
            raise RuntimeError("reset() first")
        task, self.task = self.task, None
        score = toy_env.score(task, action if isinstance(action, str) else [action], profile=self.profile)
        return "done", score.reward, True, False, self._info(task) | {"score": score}


class UnseededGenerator(ToyEnv):
    def reset(self, *, seed: int | None = None, options: Options = None) -> Start:
        start = super().reset(seed=seed, options=options)
        self._np_random, _ = gymnasium.utils.seeding.np_random()
        return start


class Identity(TextSpace):
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


class IdentitySpace(ToyEnv):
    def __init__(self, *, split: Split = "train", profile: str = "toy-v1", hint: bool = False) -> None:
        super().__init__(split=split, profile=profile, hint=hint)
        self.action_space = Identity(1 << 20)


class SharedTask(ToyEnv):
    current: ClassVar[list[Task]] = []

    def reset(self, *, seed: int | None = None, options: Options = None) -> Start:
        start = super().reset(seed=seed, options=options)
        assert self.task is not None
        self.current[:] = [self.task]
        return start

    def step(self, action: Any) -> Step:
        self.task = self.task and self.current[0]
        return super().step(action)


class HomeProcess(ToyEnv):
    def step(self, action: Any) -> Step:
        observation, reward, *rest = super().step(action)
        return observation, reward if os.getpid() == HOME else 0.0, *rest

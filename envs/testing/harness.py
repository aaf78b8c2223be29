"""Plays episodes of one subject, and remembers the results that are dear to make."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice, repeat
from typing import Any

import gymnasium

from weightgym.envs.base import Action, TaskEnv, reply_of
from weightgym.envs.registry import EnvSpec, Scorer, TaskSource
from weightgym.envs.testing.expect import fail, show
from weightgym.envs.testing.subject import EnvSubject, Episode
from weightgym.rewards.contracts import Completion, Score, Split

TextEnv = gymnasium.Env[str, Any]


@dataclass
class Trace:
    """All that an episode gave: one observation and info more than there are actions and rewards."""

    observations: list[Any] = field(default_factory=list)
    infos: list[dict[str, Any]] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    ends: list[tuple[bool, bool]] = field(default_factory=list)

    @property
    def score(self) -> Score:
        """The score at the end."""
        score = self.infos[-1].get("score")
        if not isinstance(score, Score):
            fail("info['score'] at the end of an episode", wanted="a Score", seen=show(score))
        return score

    @property
    def completion(self) -> Completion:
        """What a scorer takes: the answer, or the conversation of an episode of several turns."""
        if len(self.actions) == 1 and isinstance(self.actions[0], str):
            return self.actions[0]
        conversation: list[dict[str, Any]] = []
        for action, observation, info in zip(self.actions, self.observations[1:], self.infos[1:], strict=True):
            conversation.append({"role": "assistant", "content": action} if isinstance(action, str) else dict(action))
            if info is not self.infos[-1]:  # what came after the end was not said to the model
                conversation += reply_of(observation, info)
        return conversation


class Harness:
    """One subject, with its tasks, its scorer, and the traces of its gold episodes (each is played once)."""

    def __init__(self, subject: EnvSubject) -> None:
        self.subject = subject
        self.parameters = inspect.signature(subject.make).parameters
        self._gold: dict[str, tuple[Episode, float]] = {}
        self._traces: dict[str, Trace] = {}
        self._direct: dict[str, Score] = {}

    def config(self, split: Split | None = None) -> dict[str, Any]:
        """The subject's flags, for environments of a split (default: the first)."""
        where = {"split": split or self.subject.splits[0]} if "split" in self.parameters else {}
        return where | dict(self.subject.config)

    @contextmanager
    def env(self, split: Split | None = None, **config: Any) -> Iterator[TextEnv]:
        """A fresh environment, closed at the end of the block."""
        env = self.subject.make(**(self.config(split) | config))
        try:
            yield env
        finally:
            env.close()

    @cached_property
    def entry(self) -> EnvSpec | None:
        """The registry entry, for environments that derive from ``TaskEnv``."""
        with self.env() as env:
            return env.unwrapped.entry if isinstance(env.unwrapped, TaskEnv) else None

    @property
    def tasks(self) -> TaskSource:
        """The subject's tasks, or its entry's."""
        if self.subject.tasks is not None:
            return self.subject.tasks
        return self.entry.tasks if self.entry else _missing("tasks")

    @property
    def scorer(self) -> Scorer:
        """The subject's scorer, or its entry's."""
        if self.subject.scorer is not None:
            return self.subject.scorer
        return self.entry.score if self.entry else _missing("scorer")

    @property
    def max_turns(self) -> int:
        """The steps after which every episode must have ended."""
        return self.subject.max_turns or (self.entry.max_turns if self.entry else 1)

    @cached_property
    def split_of(self) -> dict[str, Split]:
        """Task id → split, over all splits, in order."""
        return {id: split for split in self.subject.splits for id in self.tasks.ids(split)}

    @property
    def quick_ids(self) -> tuple[str, ...]:
        """The tasks of the cheap checks."""
        chosen = self.subject.quick_ids
        return self._known("quick_ids", tuple(self.split_of) if chosen is None else chosen)

    @property
    def slow_ids(self) -> tuple[str, ...]:
        """The tasks whose gold episodes are scored."""
        chosen = self.subject.slow_ids
        if chosen is None:
            first = {split: id for id, split in reversed(self.split_of.items())}
            chosen = tuple(first[split] for split in self.subject.splits if split in first)
        return self._known("slow_ids", chosen)

    def _known(self, name: str, ids: tuple[str, ...]) -> tuple[str, ...]:
        """``ids``, unless a check over them would pass because there is nothing to look at."""
        unknown = [id for id in ids if id not in self.split_of]
        if unknown or not ids:
            seen = f"unknown: {show(unknown)}" if unknown else "none"
            fail(f"{name} of the subject", wanted="at least one task, all in its splits", seen=seen)
        return ids

    def by_split(self, ids: tuple[str, ...]) -> dict[Split, list[str]]:
        """``ids`` grouped by split."""
        return {split: [id for id in ids if self.split_of.get(id) == split] for split in self.subject.splits}

    def play(self, env: TextEnv, episode: Episode, id: str | None = None, *, seed: int | None = None) -> Trace:
        """Play one episode of a task (of the seed's sequence without ``id``) to its end."""
        observation, info = env.reset(seed=seed, options=None if id is None else {"task": id})
        trace = Trace(observations=[observation], infos=[copy.deepcopy(info)])
        for action in self.turns(episode):
            observation, reward, terminated, truncated, info = env.step(action)
            trace.actions.append(action)
            trace.observations.append(observation)
            trace.infos.append(copy.deepcopy(info))
            trace.rewards.append(float(reward))
            trace.ends.append((bool(terminated), bool(truncated)))
            if terminated or truncated:
                return trace
        fail("an episode does not end", wanted=f"its end within {self.max_turns} steps", seen="neither flag is set")

    def lockstep(self, envs: Sequence[TextEnv], episode: Episode) -> Iterator[list[Any]]:
        """Step several environments (all reset) with the same actions; yields what each gave, turn by turn."""
        for action in self.turns(episode):
            results = [env.step(action) for env in envs]
            yield results
            if any(terminated or truncated for _, _, terminated, truncated, _ in results):
                return

    def turns(self, episode: Episode) -> Iterator[Action]:
        """The actions of an episode, then empty texts, up to the turn limit."""
        return islice(chain(actions_of(episode), repeat("")), self.max_turns)

    def play_fresh(self, episode: Episode, id: str) -> Trace:
        """Play one episode of a task in an environment of its own."""
        with self.env(self.split_of[id]) as env:
            return self.play(env, episode, id)

    def gold(self, id: str) -> Episode:
        """The known good episode of a task."""
        return self._gold_of(id)[0]

    def least(self, id: str) -> float:
        """The least reward that the gold episode must reach."""
        return self._gold_of(id)[1]

    def _gold_of(self, id: str) -> tuple[Episode, float]:
        if id not in self._gold:
            self._gold[id] = self.subject.gold(id)  # may be dear, like everything else that is kept here
        return self._gold[id]

    def gold_trace(self, id: str) -> Trace:
        """The gold episode of a task, in an environment of its own. Played once."""
        if id not in self._traces:
            self._traces[id] = self.play_fresh(self.gold(id), id)
        return self._traces[id]

    def direct_score(self, id: str, trace: Trace) -> Score:
        """What the scorer itself says of an episode. It gets the task without its prompt, as offline scoring does."""
        # The profile is the one that the environment's own score names.
        return self.scorer(self.tasks.task(id, prompt=False), trace.completion, profile=trace.score.profile)

    def direct_gold(self, id: str) -> Score:
        """The scorer's own score of the gold episode. Scored once."""
        if id not in self._direct:
            self._direct[id] = self.direct_score(id, self.gold_trace(id))
        return self._direct[id]


def actions_of(episode: Episode) -> list[Action]:
    """The actions of an episode: a text or a message is one."""
    return list(episode) if isinstance(episode, list | tuple) else [episode]  # type: ignore[list-item]


def _missing(name: str) -> Any:
    fail(f"the subject has no {name}", wanted=f"an environment that derives from TaskEnv, or EnvSubject({name}=…)",
         seen="neither")  # fmt: skip

"""``weightgym/WSPBench-v1``."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsFloat

from weightgym.envs.base import MAX_OBSERVATION_CHARS, Action, TaskEnv, reward_of, verdict
from weightgym.envs.wsp.tasks import WSPTasks
from weightgym.rewards.contracts import Split, Task
from weightgym.rewards.wsp import sets
from weightgym.rewards.wsp.instances import ENV
from weightgym.rewards.wsp.profile import DEFAULT, TierRules
from weightgym.rewards.wsp.profile import profile as find_profile
from weightgym.rewards.wsp.tools.catalogue import schemas

if TYPE_CHECKING:  # it imports torch
    from weightgym.rewards.wsp.episode import Episode


class WSPBenchEnv(TaskEnv):
    """Find what is wrong with a language model's weights, and repair it, with tools and under a budget.

    The observation is the task's prompt; an action is an assistant message with ``tool_calls`` of ``info["tools"]``
    (text without a call is a turn, too). The episode ends with a call of ``submit``, or after 40 turns with the weights
    as they are. Rewards are 0 until then; the last is the score of the submission over 100. Nothing is loaded before
    the first step. Episodes of one instance share its weights, however many there are.

    Args:
        split: ``train`` or ``test``.
        profile: ``wsp-v1``; instances belong to the profile that they were made under.
        instances: the JSONL file of a set, to play nothing else; None: all sets that are known.

    Raises:
        TaskError: there is no such profile, or the file can't be read.
    """

    def __init__(self, *, split: Split = "train", profile: str = DEFAULT, instances: str | Path | None = None) -> None:
        super().__init__(ENV, split=split, profile=profile, tasks=WSPTasks(profile, instances))
        self._tiers = find_profile(profile).tiers
        self._episode: Episode | None = None
        self._said: list[dict[str, Any]] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """See ``TaskEnv.reset``.

        Raises:
            TaskError: the truth of the instance is not here, too.
        """
        started = super().reset(seed=seed, options=options)
        self._episode, self._said = None, []
        assert self.task is not None
        sets.truth_of(self.task)
        return started

    def step(self, action: Action) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        """Run the calls of a message. The observation is what ``info["reply"]`` says, at the end the verdict.

        Raises:
            GraderError: the scorer failed. That is ours, so there is no reward; the episode has ended.
            RuntimeError: the episode has ended, or was never started.
            TypeError: the action is neither text nor a message.
        """
        if self.task is None:
            raise RuntimeError("step() needs an episode: call reset() first")
        if not isinstance(action, str | Mapping):
            raise TypeError(f"an action is the assistant's text or message, not {type(action).__name__}")
        task, self.task = self.task, None  # whatever happens now ends the episode, unless it goes on
        message = {"content": action} if isinstance(action, str) else dict(action)
        self._said.append(message | {"role": "assistant"})
        episode = self._begun(task)
        reply = episode.message(self._said[-1])
        if episode.done:
            score = self.entry.score(task, self._said, profile=self.profile)
            return verdict(score), reward_of(score), True, False, self._info(task) | {"score": score}
        self.task = task
        told = [dict(one) for one in reply.messages]
        text = "\n\n".join(one["content"] for one in told)
        return text[:MAX_OBSERVATION_CHARS], 0.0, False, False, self._info(task) | {"reply": told}

    def _begun(self, task: Task) -> Episode:
        if self._episode is None:
            from weightgym.rewards.wsp.episode import Episode

            subject = sets.subject_of(sets.truth_of(task))
            self._episode = Episode(subject.engine, sets.data_of(task))
        return self._episode

    def _info(self, task: Task) -> dict[str, Any]:
        rules = self._tiers[sets.data_of(task).tier]
        return super()._info(task) | {"tools": json.loads(_tools(rules))}


@functools.cache
def _tools(rules: TierRules) -> str:
    """The tools of a tier as JSON: each reader gets copies."""
    return json.dumps(schemas(rules))

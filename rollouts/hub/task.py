"""A task of ours as a task of verifiers: its wire data, and its reward by the benchmark's own scorer."""

from __future__ import annotations

from typing import Any

import verifiers.v1 as vf
from pydantic import Field, JsonValue

from weightgym.envs import registry
from weightgym.rewards.contracts import Completion, GraderError, Score, Task, TaskError
from weightgym.rewards.machine import cores
from weightgym.rollouts.hub.completion import completion_of
from weightgym.rollouts.hub.pool import scoring_pool

#: Of the time that verifiers allows for scoring. Its own deadline would end the rollout in good order, with reward 0.
_SHARE = 0.9


class HubData(vf.TaskData):
    """What is sent and stored of a task. ``weightgym score`` finds it again by ``env`` and ``task``."""

    env: str = ""
    """The environment's short name."""
    task: str = ""
    """The task's id."""
    id: str | None = None
    """The same: what verifiers selects by (``--select.include.ids``)."""
    profile: str = ""
    """The set of scoring choices."""
    task_sha256: str = ""
    """Hash of the task without its prompt: a server with another version of it refuses to score."""
    score_timeout: float = 600.0
    """Wall seconds that the score of one answer may take."""


class HubTaskConfig(vf.TaskConfig):
    """Where answers are scored."""

    workers: int | None = Field(None, ge=1)
    """Scoring processes of each process that runs rollouts. Default: the cores of the machine."""


class EpisodeState(vf.State):
    """What an episode's loop tells the harness, and the scorer; no part of the trace."""

    tools: list[dict[str, JsonValue]] = Field(default_factory=list)
    """OpenAI schemas."""
    score: dict[str, Any] | None = None
    """The environment's own ``Score`` of an episode that it has ended."""


class HubTask(vf.Task[HubData, EpisodeState, HubTaskConfig]):
    """One task. An answer that is at fault gets the environment's floor; a fault of ours is an error of verifiers'."""

    @property
    def entry(self) -> registry.EnvSpec:
        """Its environment."""
        return registry.spec(self.data.env)

    @property
    def key(self) -> str:
        """Environment, task and profile: what verifiers knows it by."""
        return f"{self.data.env}/{self.data.task}@{self.data.profile}"

    def gold(self) -> Completion | None:
        """An answer that solves the task, if one is known."""
        return None

    @vf.reward
    async def reward(self, trace: vf.Trace) -> float:
        """The benchmark's reward. Its metrics join the trace's, and the whole ``Score`` is ``trace.info["score"]``."""
        found = trace.state.score if isinstance(trace.state, EpisodeState) else None
        if found is not None:
            score = Score.model_validate(found)
        else:
            completion = completion_of(trace, several_turns=self.entry.max_turns > 1)
            score = await self._score(completion, _allowed(trace, self.data))
        trace.info["score"] = score.model_dump(mode="json")
        reward = _reward(score)
        trace.record_metrics(score.metrics | {"invalid": float(score.status == "invalid")})
        return reward

    async def validate(self, runtime: vf.Runtime) -> bool:
        """Whether an empty answer gets the floor, and no more than 0, and a known good one gets more.

        Raises:
            GraderError: it can't be scored.
        """
        floor = self.entry.floor
        empty: Completion = [{"role": "assistant", "content": ""}] if self.entry.max_turns > 1 else ""
        untouched = _reward(await self._score(empty, None))
        if not untouched <= min(floor, 0.0):
            return False
        gold = self.gold()
        if gold is None:
            return True
        return _reward(await self._score(gold, None)) > untouched

    async def _score(self, completion: Completion, within: float | None) -> Score:
        entry, data = self.entry, self.data
        pool = scoring_pool(entry.scorer, data.profile, self.config.workers or cores(), data.score_timeout)
        return await pool.score(self._task(), completion, within=within)

    def _task(self) -> Task:
        """Our task, as ``weightgym score`` finds it.

        Raises:
            TaskError: it differs from the one that was asked.
        """
        data = self.data
        task = self.entry.tasks_under(data.profile).task(data.task, prompt=False)
        if task.hash != data.task_sha256:
            raise TaskError(
                f"{data.env} {data.task}: asked with hash {data.task_sha256[:12]}…, but here it has {task.hash[:12]}…: "
                "use the same version of weightgym (and of its data) for tasks and rollouts"
            )
        return task


def _allowed(trace: vf.Trace, data: HubData) -> float | None:
    """Seconds that scoring may take in all, where verifiers has a limit."""
    wanted = trace.agent.config.timeout.scoring
    limit = data.timeout.scoring if wanted is None else wanted
    return None if limit is None else _SHARE * float(limit)


def _reward(score: Score) -> float:
    if score.reward is None:
        raise GraderError(f"{score.status}: {score.reason}")
    return score.reward

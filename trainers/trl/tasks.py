"""The tasks of one environment as TRL takes them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from weightgym.envs import registry
from weightgym.rewards.batch import ScoreItem, score_batch
from weightgym.rewards.batch_worker import load_scorer, score_one
from weightgym.rewards.contracts import Completion, GraderError, Score, Split, Task, TaskError, canonical_json
from weightgym.trainers.trl.environment import ToolEnvironment, environment_class, final_score, tools_of

_log = logging.getLogger(__name__)

#: What identifies a task in the data set.
_KEY = ("env", "task", "task_sha256")


class TRLTasks:
    """A data set, a reward function and environments for one trainer of TRL, from the environment's own scorer::

        tasks = TRLTasks("weight-program", profile="wpb-v1-e64")
        GRPOTrainer(model, reward_funcs=tasks.reward, train_dataset=tasks.dataset(),
                    environment_factory=tasks.environments, args=...)

    Args:
        env: short name, or Gymnasium id.
        tasks: ids; the whole split where there are none.
        split: where tasks come from, if none are named.
        profile: of the rewards. Default: the environment's own.
        workers: scoring processes, for environments of one turn; 0: in this process.
        timeout: wall seconds for one score (needs workers), or for one call into an environment with tools (default:
            its ``step_timeout``).
        most_faults: the fraction of the answers of one call that may have no reward through our fault; with more,
            the reward function raises.

    Raises:
        TaskError: the environment, a task or the profile is unknown.
        ValueError: ``timeout`` without workers, for an environment of one turn.
    """

    def __init__(
        self,
        env: str,
        *,
        tasks: Sequence[str] = (),
        split: Split = "train",
        profile: str | None = None,
        workers: int = 0,
        timeout: float | None = None,
        most_faults: float = 0.5,
    ) -> None:
        self.entry = registry.spec(env)
        self.profile = self.entry.checked_profile(profile)
        source = self.entry.tasks_under(self.profile)
        self.tasks = {id: source.task(id) for id in tasks or source.ids(split)}
        if not self.tasks:
            raise TaskError(f"{self.entry.name}: split {split!r} has no tasks")
        if timeout is not None and not workers and not self.has_turns:
            raise ValueError("timeout needs scoring processes: give workers 1 or more")
        self.faults = 0  #: answers without a reward so far, through our fault
        self._workers = workers
        self._timeout = timeout
        self._most_faults = most_faults

    @property
    def has_turns(self) -> bool:
        """Whether an episode may have several turns, which TRL plays as calls of tools."""
        return self.entry.max_turns > 1

    def dataset(self) -> Any:
        """A row a task (``datasets.Dataset``): ``prompt``, as messages, and what the reward function knows it by.

        Raises:
            ImportError: the package datasets is missing.
        """
        try:
            from datasets import Dataset
        except ImportError as error:
            raise ImportError("a data set for TRL needs the extra trl: pip install 'weightgym[trl]'") from error
        return Dataset.from_list([self.row(task) for task in self.tasks.values()])

    def row(self, task: Task) -> dict[str, Any]:
        """The row of a task."""
        row = {"prompt": task.messages, "env": task.env, "task": task.id, "task_sha256": task.hash}
        return row | ({"environment": self._kinds[task.id]} if self.has_turns else {})

    @property
    def reward(self) -> Callable[..., list[float | None]]:
        """The reward function, with the name of the environment.

        It gives the reward of each completion, the floor where the answer is invalid. None says that there is no reward
        through our fault, which TRL leaves out of the group's mean; it is told on the log, and counted in ``faults``
        and the metric ``ENV/faults``.
        """

        def reward(
            prompts: Any = None, completions: Sequence[Completion] = (), completion_ids: Any = None, **columns: Any
        ) -> list[float | None]:
            scores = self._scores(completions, columns)
            self._tell(scores, columns)
            return [score.reward for score in scores]

        reward.__name__ = self.entry.name
        return reward

    @cached_property
    def environments(self) -> dict[str, type[ToolEnvironment]] | None:
        """For ``environment_factory``: a class for each set of tools, by the data set's column ``environment``.

        None for environments of one turn.

        Raises:
            TaskError: the environment has turns but no tools, which TRL can't play.
            GraderError: it doesn't start.
        """
        if not self.has_turns:
            return None
        offered = {self._kinds[id]: tools for id, tools in self._tools.items()}
        return {
            kind: environment_class(self.entry, self.profile, tools, timeout=self._patience, find=self._task)
            for kind, tools in offered.items()
        }

    @property
    def _patience(self) -> float:
        """Seconds that a call into an environment with tools may take."""
        return self.entry.step_timeout if self._timeout is None else self._timeout

    @cached_property
    def _tools(self) -> dict[str, tuple[dict[str, Any], ...]]:
        """The tools of each task."""
        found = {}
        for id, task in self.tasks.items():
            found[id] = tools_of(self.entry, task, self.profile, self._patience)
            if not found[id]:
                raise TaskError(
                    f"{self.entry.name} has turns but no tools, and TRL plays turns as calls of tools: use weightgym "
                    f"train, or an environment of one turn"
                )
        return found

    @cached_property
    def _kinds(self) -> dict[str, str]:
        """The name of each task's set of tools."""
        kinds: dict[str, str] = {}
        name = self.entry.name
        for tools in self._tools.values():
            kinds.setdefault(canonical_json(tools), f"{name}-{len(kinds) + 1}" if kinds else name)
        return {id: kinds[canonical_json(tools)] for id, tools in self._tools.items()}

    def _task(self, row: Mapping[str, Any]) -> Task:
        env, id, digest = (row.get(name) for name in _KEY)
        task = self.tasks.get(str(id))
        if task is None or env != task.env:
            raise TaskError(f"a row of {env!r}, {id!r}: not of this data set, which is of {self.entry.name}")
        if digest != task.hash:
            raise TaskError(f"task {id!r} is not what it was when the data set was made: make it again")
        return task

    def _scores(self, completions: Sequence[Completion], columns: Mapping[str, Any]) -> list[Score]:
        missing = [name for name in _KEY if len(columns.get(name) or ()) != len(completions)]
        if missing:
            raise TaskError(f"the data set needs a column {missing[0]!r}: make it with TRLTasks.dataset()")
        rows = [dict(zip(_KEY, values, strict=True)) for values in zip(*(columns[name] for name in _KEY), strict=True)]
        tasks = [self._task(row) for row in rows]
        if self.has_turns:
            played: Sequence[ToolEnvironment] | None = columns.get("environments")
            if played is None:
                raise TaskError(f"{self.entry.name} is played: give the trainer environment_factory=tasks.environments")
            return [final_score(one, _said(text)) for one, text in zip(played, completions, strict=True)]
        if not self._workers:
            scorer = load_scorer(self.entry.scorer)
            return [
                score_one(scorer, task, completion, profile=self.profile)
                for task, completion in zip(tasks, completions, strict=True)
            ]
        pairs = enumerate(zip(tasks, completions, strict=True))
        done = dict(
            score_batch(
                [ScoreItem(index, task, completion) for index, (task, completion) in pairs],
                scorer=self.entry.scorer,
                profile=self.profile,
                workers=self._workers,
                item_timeout=self._timeout,
            )
        )
        return [done[index] for index in range(len(tasks))]

    def _tell(self, scores: Sequence[Score], columns: Mapping[str, Any]) -> None:
        """Columns and metrics for TRL's logs; faults are loud."""
        name, count = self.entry.name, max(len(scores), 1)
        faults = [index for index, score in enumerate(scores) if score.reward is None]
        if (log_extra := columns.get("log_extra")) is not None:
            for column in ("env", "task"):
                log_extra(column, list(columns[column]))
            log_extra("profile", [self.profile] * len(scores))
            log_extra("status", [score.status for score in scores])
            log_extra("reason", [score.reason for score in scores])
            if self.has_turns:
                log_extra("conversation", [canonical_json(one.messages) for one in columns["environments"]])
        if (log_metric := columns.get("log_metric")) is not None:
            log_metric(f"{name}/invalid", sum(score.status == "invalid" for score in scores) / count)
            log_metric(f"{name}/faults", len(faults) / count)
        if not faults:
            return
        self.faults += len(faults)
        first = faults[0]
        told = (
            f"{len(faults)} of {len(scores)} answers have no reward, through our fault ({self.faults} so far); the "
            f"first, of task {columns['task'][first]}: {scores[first].reason}"
        )
        if len(faults) > self._most_faults * len(scores):
            raise GraderError(told)
        _log.error("%s", told)


def _said(completion: Completion) -> str:
    """The text of the last message, if the model wrote it."""
    last = completion[-1] if completion and not isinstance(completion, str) else None
    return str(last.get("content") or "") if isinstance(last, Mapping) and last.get("role") == "assistant" else ""

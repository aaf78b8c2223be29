"""The Gymnasium environments of this package: a prompt out, answers in, a score back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, SupportsFloat, get_args

import gymnasium

from weightgym.envs import registry
from weightgym.envs.spaces import TextSpace
from weightgym.rewards.contracts import GraderError, Score, Split, Task, TaskError, canonical_json, sha256_hex

MAX_OBSERVATION_CHARS = 1 << 20
MAX_ACTION_CHARS = 1 << 20

Action = str | Mapping[str, Any]


def pick_index(env: str, split: str, seed: int, index: int, choices: int) -> int:
    """Which of ``choices`` items episode ``index`` of a seed gets.

    A hash of (env, split, seed, index): neighbouring seeds share nothing, which ``seed + index`` would not give.
    """
    return int(sha256_hex(canonical_json([env, split, seed, index])), 16) % choices


class TaskEnv(gymnasium.Env[str, Action]):
    """Task choice and seeding for the environments of this package.

    ``reset(seed=s)`` starts the sequence of tasks of that seed; each further ``reset()`` takes its next task;
    ``reset(options={"task": id})`` takes that task and nothing from the sequence. ``info`` holds ``task`` (id),
    ``task_hash``, ``messages`` (chat request) and ``tools`` (OpenAI schemas). ``tasks``: another source of tasks than
    the one that is registered.

    An environment of several turns gets each assistant message with its ``tool_calls`` (OpenAI's form, arguments as
    JSON text; those that can't be read never reach it), or plain text when it has no tools. Until the episode ends,
    ``info["reply"]`` is what the model is told: chat messages of role ``tool`` (with the ``tool_call_id`` that each
    answers, these first) and ``user``. Without it, the observation is the user's reply. At the end, ``info["score"]``.

    Raises:
        TaskError: no environment is registered under ``name``.
        ValueError: ``split`` is neither ``train`` nor ``test``.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 - Gymnasium's own convention

    def __init__(
        self, name: str, *, split: Split, profile: str | None = None, tasks: registry.TaskSource | None = None
    ) -> None:
        if split not in get_args(Split):
            raise ValueError(f"unknown split {split!r}: use one of {', '.join(get_args(Split))}")
        self.entry = registry.spec(name)
        self.split: Split = split
        self.profile = self.entry.default_profile if profile is None else profile
        self.tasks = self.entry.tasks_under(self.profile) if tasks is None else tasks
        self.observation_space = TextSpace(MAX_OBSERVATION_CHARS)
        self.action_space = TextSpace(MAX_ACTION_CHARS)
        self.task: Task | None = None
        self._seed: int | None = None
        self._index = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode; returns the prompt and ``info``. A refused option changes nothing.

        Raises:
            TaskError: the task is unknown, or the split has none.
            ValueError: an option other than ``task``.
        """
        wanted = _task_option(options)
        chosen = None if wanted is None else self.tasks.task(wanted)
        super().reset(seed=seed)
        if seed is not None:
            self._seed, self._index = seed, 0
        self.task = self.tasks.task(self._next_id()) if chosen is None else chosen
        return self._prompt(self.task), self._info(self.task)

    def _answered(self, action: Action) -> tuple[Task, Score]:
        """The task at hand, and what the benchmark's own scorer says of an answer. The episode has ended, whatever
        comes of it, unless the caller puts the task back.

        Raises:
            GraderError: the scorer failed. That is ours, so there is no reward.
            RuntimeError: the episode has ended, or was never started.
            TypeError: the action is neither text nor a message (no policy wrote it, so it has no reward either).
        """
        if self.task is None:
            raise RuntimeError("step() needs an episode: call reset() first")
        if not isinstance(action, str | Mapping):
            raise TypeError(f"an action is the assistant's text or message, not {type(action).__name__}")
        task, self.task = self.task, None
        score = self.entry.score(task, action if isinstance(action, str) else [action], profile=self.profile)
        reward_of(score)
        return task, score

    def _next_id(self) -> str:
        ids = self.tasks.ids(self.split)
        if not ids:
            raise TaskError(f"{self.entry.name}: split {self.split!r} has no tasks")
        if self._seed is None:
            self._seed = int(self.np_random.integers(2**62))
        index, self._index = self._index, self._index + 1
        return ids[pick_index(self.entry.name, self.split, self._seed, index, len(ids))]

    def _prompt(self, task: Task) -> str:
        return "\n\n".join(message.content for message in task.prompt)

    def _info(self, task: Task) -> dict[str, Any]:
        return {"task": task.id, "task_hash": task.hash, "messages": task.messages, "tools": []}


class SingleTurnEnv(TaskEnv):
    """One answer an episode: ``step`` scores it with the benchmark's own scorer and ends the episode.

    The action is the assistant's text, or an assistant message (``{"role": "assistant", "content": …}``).
    """

    def step(self, action: Action) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        """Score the answer. The observation is the verdict in one line; ``info["score"]`` is the ``Score``.

        Raises:
            GraderError, RuntimeError, TypeError: see ``TaskEnv._answered``.
        """
        task, score = self._answered(action)
        return verdict(score), reward_of(score), True, False, self._info(task) | {"score": score}


def _task_option(options: Mapping[str, Any] | None) -> str | None:
    """The task id that the reset options ask for, or None."""
    unknown = sorted(set(options or {}) - {"task"}, key=repr)
    if unknown:
        raise ValueError(f"unknown reset option {unknown[0]!r}: the only one is 'task' (a task id)")
    wanted = (options or {}).get("task")
    if wanted is not None and not isinstance(wanted, str):
        raise TaskError(f"reset option 'task' is a task id (text), not {wanted!r}")
    return wanted


def reply_of(observation: object, info: Mapping[str, Any]) -> list[dict[str, str]]:
    """What a step tells the model, as chat messages: ``info["reply"]``, or else the observation as the user's.

    Raises:
        GraderError: it is no list of at least one ``tool`` or ``user`` message with text. That is the environment's.
    """
    reply = info.get("reply", [{"role": "user", "content": observation}])
    if not isinstance(reply, list | tuple) or not reply:
        raise GraderError(f"an environment replies with a list of messages, not {_short(reply)}")
    return [_reply_message(message) for message in reply]


def _reply_message(message: Any) -> dict[str, str]:
    fields: dict[str, str] = dict(message) if isinstance(message, Mapping) else {}
    wanted = {"role", "content"} | ({"tool_call_id"} if fields.get("role") == "tool" else set())
    if fields.keys() != wanted or fields["role"] not in ("tool", "user"):
        raise GraderError(f"a reply is a user's message, or a tool's with its tool_call_id, not {_short(message)}")
    if not all(isinstance(text, str) for text in fields.values()):
        raise GraderError(f"the fields of a reply's message are text, but this is {_short(message)}")
    return fields


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}…"


def reward_of(score: Score) -> float:
    """The reward of a score that has one.

    Raises:
        GraderError: the status is ``error`` or ``timeout``: our fault is never a number.
    """
    if score.reward is None:
        raise GraderError(f"{score.status}: {score.reason}")
    return score.reward


def verdict(score: Score) -> str:
    """A score in one line, for people and for the model."""
    reward = "no reward" if score.reward is None else f"reward {score.reward:g}"
    detail = score.reason or ", ".join(f"{name} {value:g}" for name, value in score.metrics.items())
    return f"{score.status}: {reward}" + (f" ({detail})" if detail else "")

"""An environment with tools as TRL plays it: an object with ``reset`` and a public method for each tool."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from weightgym.envs.registry import EnvSpec
from weightgym.rewards.batch_worker import load_scorer, score_one
from weightgym.rewards.contracts import GraderError, Score, Task
from weightgym.rollouts.conversation import well_formed
from weightgym.rollouts.env_episode import EnvEpisode
from weightgym.rollouts.tools import check_calls
from weightgym.trainers.trl.deadline import Deadline
from weightgym.trainers.trl.tool_methods import tool_method

ENDED = "The episode has ended. No more calls are run."
FAILED = "The environment has failed, through no fault of yours. The episode has ended."
#: Seconds that an environment has to close.
_CLOSE = 5.0


class ToolEnvironment:
    """The base of the classes that ``environment_class`` makes. TRL makes several, and resets them again and again.

    TRL runs the calls of a message one by one and doesn't say where a message ends: here each call is a message and a
    turn of its own. ``messages`` is the conversation as it was played, which gets the same score from every other door.
    """

    # Set by environment_class.
    _entry: EnvSpec
    _profile: str
    _timeout: float
    _find: Callable[[Mapping[str, Any]], Task]

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self._deadline = Deadline(f"{self._entry.name} for TRL")
        self._episode: EnvEpisode | None = None
        self._task: Task | None = None
        self._turns = 0
        self._score: Score | None = None

    def reset(self, **row: Any) -> None:
        """Start the episode of a row of the data set, which holds the whole prompt.

        A failure of the environment ends the episode without a reward.

        Raises:
            TaskError: the row is not of this data set.
        """
        self._close()
        self._task = self._find(row)
        self.messages, self._turns, self._score = [], 0, None
        self._episode = EnvEpisode(self._entry, self._task, self._profile)
        self._within(self._episode.start)

    def _call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Play a call; what the model is told."""
        if self._score is not None:
            return ENDED
        if self._episode is None:
            raise RuntimeError("a tool needs an episode: call reset() first")
        written = {"name": name, "arguments": json.dumps(arguments)}
        read = check_calls("", [{"id": f"call_{self._turns}", "function": written}])
        message = {"role": "assistant", "content": "", "tool_calls": list(read.calls)}
        self._turns += 1
        self.messages.append(message)
        turn = self._within(partial(self._episode.step, message, self._turns))
        if turn is None:
            return FAILED
        if turn.score is not None:
            self._score = turn.score
            return ENDED
        self.messages += [dict(one) for one in turn.reply]
        told = [str(one["content"]) for one in turn.reply]
        return well_formed("\n\n".join([*told, *read.malformed]))

    def _final(self, said: str) -> Score:
        if self._task is None:
            raise RuntimeError("a score needs an episode: call reset() first")
        if self._score is None:
            self.messages.append({"role": "assistant", "content": said})
            scorer, task, talk = load_scorer(self._entry.scorer), self._task, list(self.messages)
            found = self._within(lambda: score_one(scorer, task, talk, profile=self._profile))
            self._score = self._score if found is None else found
        self._close()
        assert self._score is not None
        return self._score

    def _within(self, function: Callable[[], Any]) -> Any:
        """What the function returns; or None, and the score says why."""
        close = self._episode.close if self._episode else None
        call = self._deadline.run(function, self._timeout, late=close)
        if call.overdue:
            self._episode = None  # it closes when it comes back: not while it is at work
            reason = f"env_timeout: {self._entry.name} took more than {self._timeout:g} s, our limit"
            self._score = Score(
                status="timeout", reward=None, reason=reason, profile=self._profile, seconds=self._timeout
            )
            return None
        if call.error:
            self._score = Score.fault(call.error, profile=self._profile, seconds=call.seconds)
            return None
        return call.result

    def _close(self) -> None:
        if self._episode is not None:
            episode, self._episode = self._episode, None
            self._deadline.run(episode.close, _CLOSE)


def tools_of(entry: EnvSpec, task: Task, profile: str, timeout: float) -> tuple[dict[str, Any], ...]:
    """The tools that the environment offers for a task.

    Raises:
        GraderError: it doesn't start, or not within ``timeout`` seconds.
    """
    deadline, episode = Deadline(f"{entry.name} for TRL"), EnvEpisode(entry, task, profile)
    call = deadline.run(episode.start, timeout)
    if call.overdue or call.error:
        why = f"took more than {timeout:g} s" if call.overdue else f"failed: {call.error}"
        raise GraderError(f"{entry.name} {why} at the start of task {task.id!r}") from call.error
    deadline.run(episode.close, _CLOSE)
    tools: tuple[dict[str, Any], ...] = call.result.tools
    return tools


def final_score(played: ToolEnvironment, said: str) -> Score:
    """The score, now that TRL's loop is over: the environment's, or its scorer's where the model just stopped.

    No method, since TRL would take it for a tool.

    Args:
        said: the model's last text.

    Raises:
        RuntimeError: there was no episode.
    """
    return played._final(said)


def environment_class(
    entry: EnvSpec,
    profile: str,
    tools: Sequence[Mapping[str, Any]],
    *,
    timeout: float,
    find: Callable[[Mapping[str, Any]], Task],
) -> type[ToolEnvironment]:
    """A class for ``environment_factory``. Its methods are called ``tool_00_…`` in the order of the tools, which TRL
    sorts by; the model sees their ``__name__``, the tool's own, which may be one that TRL keeps for itself (``reset``).

    Args:
        timeout: wall seconds that one call into the environment may take.
        find: the task of a row of the data set.

    Raises:
        TaskError: no method can be made of a tool.
    """
    methods = {f"tool_{index:02}_{tool['function']['name']}": tool_method(tool) for index, tool in enumerate(tools)}
    settings = {"_entry": entry, "_profile": profile, "_timeout": timeout, "_find": staticmethod(find)}
    return type("ToolEnvironment", (ToolEnvironment,), {"__doc__": entry.summary, **settings, **methods})

"""What ``reset`` and ``step`` hand out."""

from __future__ import annotations

import json
import math
from typing import Any

from weightgym.envs.base import reply_of
from weightgym.envs.testing.expect import fail, show
from weightgym.envs.testing.harness import Harness, Trace
from weightgym.rewards.contracts import GraderError

_ROLES = ("system", "user", "assistant", "tool")


def info_holds_the_task(h: Harness) -> None:
    """Every info names the task and its hash, and holds the chat request and the tools, as JSON. Protects rollouts,
    which build the model's request from it and store the rest.
    """
    for id in h.slow_ids:
        digest = h.tasks.task(id).hash
        for trace in (h.gold_trace(id), h.play_fresh("", id)):
            for info in trace.infos:
                for key, wanted in (("task", id), ("task_hash", digest)):
                    if info.get(key) != wanted:
                        fail(f"info[{key!r}] in task {id!r}", wanted=repr(wanted), seen=show(info.get(key)))
                _expect_messages(info.get("messages"), id)
                _expect_tools(info.get("tools"), id)
            for observation, info in zip(trace.observations[1:-1], trace.infos[1:-1], strict=True):
                _expect_reply(observation, info, id)


def score_comes_at_the_end(h: Harness) -> None:
    """``info["score"]`` comes with the last step only, and holds the reward that the episode paid. Protects from two
    truths: the number that is trained on and the score that is stored.
    """
    for id in h.slow_ids:
        for trace in (h.gold_trace(id), h.play_fresh("", id)):
            if any("score" in info for info in trace.infos[:-1]):
                fail(f"info before the end of task {id!r}", wanted="no 'score'", seen="a score")
            paid, reward = trace.rewards, trace.score.reward
            if not all(map(math.isfinite, paid)) or paid[-1] != reward or any(paid[:-1]):
                fail(f"rewards of an episode of task {id!r}", wanted=f"0 until the score's {reward}", seen=str(paid))


def observations_are_in_their_space(h: Harness) -> None:
    """Every observation is a member of the observation space. Protects vector environments and wrappers."""
    for split, ids in h.by_split(h.quick_ids).items():
        with h.env(split) as env:
            for id in ids:
                observation, _ = env.reset(options={"task": id})
                _expect_in_space(env.observation_space, observation, f"the prompt of task {id!r}")
    for id in h.slow_ids:
        with h.env(h.split_of[id]) as env:
            for observation in _observations(h.gold_trace(id), h.play_fresh("", id)):
                _expect_in_space(env.observation_space, observation, f"an observation of task {id!r}")


def _observations(*traces: Trace) -> list[Any]:
    return [observation for trace in traces for observation in trace.observations]


def _expect_in_space(space: Any, observation: Any, what: str) -> None:
    if not isinstance(observation, str) or observation not in space:
        fail(what, wanted=f"a text in {space}", seen=show(observation))


def _expect_messages(messages: Any, id: str) -> None:
    what = f"info['messages'] of task {id!r}"
    if not isinstance(messages, list) or not messages:
        fail(what, wanted="a list of chat messages", seen=show(messages))
    for message in messages:
        if not isinstance(message, dict) or message.get("role") not in _ROLES:
            fail(what, wanted=f"messages with a role among {_ROLES}", seen=show(message))
        # An assistant message that only calls tools has no content.
        if not isinstance(message.get("content"), str) and not message.get("tool_calls"):
            fail(what, wanted="messages with text as content", seen=show(message))
    _expect_json(messages, what)


def _expect_reply(observation: Any, info: dict[str, Any], id: str) -> None:
    what = f"info['reply'] of task {id!r}"
    try:
        reply = reply_of(observation, info)
    except GraderError as error:
        fail(what, wanted="chat messages of tools and the user", seen=str(error))
    _expect_json(reply, what)


def _expect_tools(tools: Any, id: str) -> None:
    what = f"info['tools'] of task {id!r}"
    if not isinstance(tools, list):
        fail(what, wanted="a list of OpenAI tool schemas", seen=show(tools))
    for tool in tools:
        function = tool.get("function") if isinstance(tool, dict) and tool.get("type") == "function" else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            fail(what, wanted='{"type": "function", "function": {"name": …, "parameters": …}}', seen=show(tool))
        if not isinstance(function.get("parameters"), dict):
            fail(what, wanted="a JSON schema under 'parameters'", seen=show(tool))
    _expect_json(tools, what)


def _expect_json(value: Any, what: str) -> None:
    try:
        same = json.loads(json.dumps(value, allow_nan=False)) == value
    except (TypeError, ValueError) as error:
        fail(what, wanted="JSON", seen=f"{type(error).__name__}: {error}")
    if not same:
        fail(what, wanted="JSON that reads back equal", seen=show(value))

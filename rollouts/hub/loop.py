"""The environment: one answer, or the loop of an environment of several turns."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

import verifiers.v1 as vf
from pydantic import Field

from weightgym.envs import registry
from weightgym.rewards.contracts import GraderError
from weightgym.rollouts.env_episode import EnvEpisode
from weightgym.rollouts.hub.completion import answer_of, assistant_message, replies

T = TypeVar("T")

logger = logging.getLogger(__name__)


class ToolLoopConfig(vf.EnvConfig):
    """One agent. It needs no sandbox: nothing that the model writes runs outside our own."""

    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())
    env_workers: int = Field(8, ge=1)
    """Calls into environments of several turns at once."""


class ToolLoop(vf.Env[ToolLoopConfig]):
    """Plays an episode: the model's messages go to the environment, its replies to the model, until it has a score.

    Whatever the environment raises, or takes too long for, is an error of the episode.
    """

    def __init__(self, config: ToolLoopConfig) -> None:
        super().__init__(config)
        self._calls = asyncio.Semaphore(config.env_workers)

    async def run(self, task: vf.Task, agents: vf.Agents) -> None:
        """One episode."""
        entry = registry.spec(task.data.env)
        if entry.max_turns == 1:
            await agents.agent.run(task)
            return
        async with agents.agent.interaction(task) as talk:
            ours = entry.tasks_under(task.data.profile).task(task.data.task)
            episode = _EpisodeThread(EnvEpisode(entry, ours, task.data.profile), entry.step_timeout, self._calls)
            try:
                await self._play(talk, episode)
            finally:
                episode.end()

    async def _play(self, talk: vf.Interaction, thread: _EpisodeThread) -> None:
        episode, state = thread.episode, talk.trace.state
        state.tools = list((await thread.call(episode.start)).tools)
        segment = await talk.turn()
        turn = 0
        while not segment.terminated:
            turn += 1
            message = segment.messages[-1]
            parsed = answer_of(message)
            result = await thread.call(partial(episode.step, assistant_message(parsed), turn))
            if result.score is not None:
                state.score = result.score.model_dump(mode="json")
                return
            segment = await talk.turn(replies(message, parsed, result.reply))


class _EpisodeThread:
    """Calls into one episode's environment, in a thread of its own: any of them may hang.

    The environment is closed when the last call has ended.
    """

    def __init__(self, episode: EnvEpisode, timeout: float, at_once: asyncio.Semaphore) -> None:
        self.episode = episode
        self._timeout = timeout
        self._at_once = at_once
        self._inbox: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="environment", daemon=True).start()

    async def call(self, function: Callable[[], T]) -> T:
        """Its result.

        Raises:
            GraderError: it took too long, or did not end as a function does.
        """
        async with self._at_once:
            future: Future[T] = Future()
            self._inbox.put((function, future))
            waiting = asyncio.wrap_future(future)
            try:
                done, _ = await asyncio.wait([waiting], timeout=self._timeout)
            finally:
                waiting.cancel()
        if not done:
            raise GraderError(f"env_timeout: no answer of the environment within {self._timeout:g} s, our limit")
        return waiting.result()

    def end(self) -> None:
        """Close the environment as soon as it is free."""
        self._inbox.put(None)

    def _work(self) -> None:
        while (call := self._inbox.get()) is not None:
            function, future = call
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(function())
            except BaseException as error:
                # What ends a thread would end the event loop.
                plain = isinstance(error, Exception) and not isinstance(error, StopIteration)
                future.set_exception(error if plain else GraderError(f"the environment raised {error!r}"))
        try:
            self.episode.close()
        except BaseException:
            logger.warning("the environment did not close", exc_info=True)

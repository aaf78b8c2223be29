"""Episodes of many clients on shared models. Each ends once, is scored once, and leaves one line of results, a row as
``weightgym wsp report`` reads it.

A session's lock is held while a message is run: calls of different episodes meet in their engine's blocks only.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from weightgym.rewards.contracts import Score, Task
from weightgym.rewards.wsp.episode import Episode
from weightgym.rewards.wsp.instances import PublicData
from weightgym.rewards.wsp.lab.bodies import WrittenMessage
from weightgym.rewards.wsp.lab.errors import LabError
from weightgym.rewards.wsp.lab.loaded import Instance, LoadedInstances
from weightgym.rewards.wsp.lab.results import Results
from weightgym.rewards.wsp.lab.sessions import Closing, Session
from weightgym.rewards.wsp.prices import Prices
from weightgym.rewards.wsp.profile import Track

_log = logging.getLogger(__name__)
_FREE = Prices()
#: Seconds that a request waits for another one of the same episode.
_WAIT = 600.0

#: Scores an episode that has ended.
Scorer = Callable[[Task, Episode], Score]


class Lab:
    """Safe to use from many threads.

    Args:
        load: the instance of an id; None where there is none.
        score: called for one episode at a time, in a thread of the lab's.
        results: a JSONL file: one line for each episode that has ended.
        track: which of the two; written beside each score.
        lease: seconds without a word after which an episode is closed, and counted as it is.
        most_episodes: at a time.
        most_instances: in memory.

    Raises:
        OSError: the file can't be opened.
    """

    def __init__(
        self,
        load: Callable[[str], Instance | None],
        score: Scorer,
        results: Path,
        *,
        track: Track = "fixed",
        prices: Prices = _FREE,
        lease: float = 900.0,
        most_episodes: int = 256,
        most_instances: int = 8,
    ) -> None:
        self.track = track
        self.lease = lease
        self._score = score
        self._prices = prices
        self._most_episodes = most_episodes
        self._instances = LoadedInstances(load, most_instances)
        self._results = Results(results)
        self._lock = threading.Lock()
        self._sessions: dict[str, Session] = {}
        #: By the client's id: what it asked for, and the session's id.
        self._openings: dict[str, tuple[str, Future[str]]] = {}
        self._scoring = ThreadPoolExecutor(1, thread_name_prefix="weightgym-lab-scores")
        self._closed = threading.Event()
        self._reaper = threading.Thread(target=self._reap_on, name="weightgym-lab-lease", daemon=True)
        self._reaper.start()

    def open(self, id: str, instance: str) -> dict[str, Any]:
        """Begin an episode: its id, prompt, tools and budgets. The same client id again is the same episode.

        Raises:
            LabError: there is no such instance, the id was used for another one, or the lab is full or closed.
        """
        with self._lock:
            self._check_open()
            known = self._openings.get(id)
            if known is None:
                if self._open_episodes() >= self._most_episodes:
                    raise LabError(503, "busy", f"{self._most_episodes} episodes are open: try again later")
                future: Future[str] = Future()
                self._openings[id] = (instance, future)
            elif known[0] != instance:
                raise LabError(409, "id_taken", f"episode id {id!r} was used for another instance")
        if known is not None:
            return self._opened(_waited_for(known[1]))
        try:
            made = self._begin(instance)
        except BaseException as error:
            with self._lock:
                del self._openings[id]
            future.set_exception(error)
            raise
        future.set_result(made)
        return self._opened(made)

    def message(self, episode: str, id: str, message: WrittenMessage) -> dict[str, Any]:
        """Take an assistant message: ``messages``, ``done`` and ``status``. The same id again gets the same reply.

        Raises:
            LabError: there is no such episode, it has ended, or the id was used for another message.
        """
        with self._session(episode) as session:
            reply = session.answer(id, message)
            if session.episode is not None and session.episode.done:
                self._end(session, session.episode.ended_by)
            return reply

    def status(self, episode: str) -> dict[str, JsonValue]:
        """How far an episode is.

        Raises:
            LabError: there is no such episode.
        """
        with self._session(episode) as session:
            return session.told()

    def close_episode(self, episode: str) -> dict[str, JsonValue]:
        """End an episode: it counts as it is. One that has ended stays as it was.

        Raises:
            LabError: there is no such episode.
        """
        with self._session(episode) as session:
            self._end(session, "closed")
            return session.told()

    def reap(self) -> None:
        """Close the episodes whose clients have been silent for too long, and forget those that ended long ago."""
        for session in list(self._sessions.values()):
            if not session.lock.acquire(blocking=False):
                continue  # a message is being run
            try:
                if time.monotonic() - session.used <= self.lease:
                    continue
                if session.ended_by:
                    self._forget(session)
                else:
                    self._end(session, "lease")
                    session.used = time.monotonic()
            finally:
                session.lock.release()

    def close(self) -> None:
        """Stop. Episodes that ended are scored; those that are open are not, and their lines say so."""
        with self._lock:
            if self._closed.is_set():
                return
            self._closed.set()
        self._reaper.join()
        for session in list(self._sessions.values()):
            with session.lock:
                self._end(session, "shutdown")
        self._scoring.shutdown(wait=True)
        self._results.close()

    def _begin(self, id: str) -> str:
        instance = self._instances.borrow(id)
        try:
            data = PublicData.model_validate(dict(instance.task.data))
            episode = Episode(instance.engine, data, prices=self._prices)
            session = Session(secrets.token_hex(16), id, instance.task, episode, episode.tools, episode.status())
            with self._lock:
                self._check_open()
                self._sessions[session.id] = session
        except BaseException:
            self._instances.give_back(id)
            raise
        return session.id

    def _opened(self, id: str) -> dict[str, Any]:
        with self._session(id) as session:
            return {
                "episode": id,
                "messages": session.task.messages,
                "tools": session.tools,
                "status": session.begun,
            }

    @contextmanager
    def _session(self, id: str) -> Iterator[Session]:
        """A session under its lock; hearing of a client renews its lease."""
        session = self._sessions.get(id)
        if session is None:
            raise LabError(404, "unknown_episode", "there is no such episode; it may have ended long ago")
        if not session.lock.acquire(timeout=_WAIT):
            raise LabError(503, "busy", "another request of this episode is still being run")
        try:
            self._check_open()
            yield session
        finally:
            session.used = time.monotonic()
            session.lock.release()

    def _open_episodes(self) -> int:
        """Those that are played, and those that are just being opened."""
        played = sum(not session.ended_by for session in self._sessions.values())
        return played + sum(not future.done() for _, future in self._openings.values())

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise LabError(503, "closing", "the lab is being closed")

    def _end(self, session: Session, ended_by: Closing) -> None:
        """Once for each session, under its lock."""
        if session.ended_by:
            return
        session.ended_by = ended_by
        self._scoring.submit(self._settle, session)

    def _settle(self, session: Session) -> None:
        """Score an episode and write its line. What goes wrong is told in the line, or else in the log."""
        episode = session.episode
        assert episode is not None
        task = session.task
        try:
            score = self._scored(task, episode, session.ended_by)
            record: dict[str, JsonValue] = {
                "env": task.env,
                "task": task.id,
                "task_hash": task.hash,
                "episode": session.id,
                "track": self.track,
                "ended_by": session.ended_by,
                "status": episode.status(),
                "score": score.model_dump(mode="json"),
            }
            self._results.add(record)
        except Exception:
            _log.exception("the result of episode %s of instance %s is lost", session.id, task.id)
        finally:
            with session.lock:
                session.episode = None
            self._instances.give_back(session.instance_id)

    def _scored(self, task: Task, episode: Episode, ended_by: Closing) -> Score:
        name = episode.profile.name
        try:
            if ended_by != "shutdown":
                return self._score(task, episode)
            made = Score(status="error", reward=None, reason="lab_closed: before the episode's end", profile=name)
        except Exception as error:
            made = Score.fault(error, profile=name)
        return made.model_copy(update={"info": made.info | {"track": self.track}})

    def _forget(self, session: Session) -> None:
        if session.episode is not None:
            return  # it waits for its score
        with self._lock:
            del self._sessions[session.id]
            for id, (_, future) in list(self._openings.items()):
                if future.done() and not future.exception() and future.result() == session.id:
                    del self._openings[id]

    def _reap_on(self) -> None:
        while not self._closed.wait(min(self.lease / 4, 5.0)):
            try:
                self.reap()
            except Exception:
                _log.exception("looking for silent clients failed")


def _waited_for(opening: Future[str]) -> str:
    try:
        return opening.result(timeout=_WAIT)
    except TimeoutError as error:
        raise LabError(503, "busy", "the episode is still being opened: try again") from error

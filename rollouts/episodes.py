"""The scheduler: many episodes of a policy at once, of one turn or of several.

One loop decides; what may take long or hang (the backend, environments) runs in threads with deadlines (``calls.py``).
Episodes go in cohorts. A backend with one lane has cohorts of ``batch_size`` episodes, in the order of the jobs, that
take their turns together: what is generated in one call depends on no timing. A backend with several lanes has cohorts
of one: each episode goes on as soon as it can.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from weightgym.envs.registry import EnvSpec
from weightgym.rewards.batch_worker import score_one
from weightgym.rewards.contracts import BackendError, Score
from weightgym.rollouts.backend import Backend, Request, Sample, Sampling
from weightgym.rollouts.calls import Call, Calls, News
from weightgym.rollouts.conversation import Conversation
from weightgym.rollouts.env_episode import EnvEpisode, Start, Turn
from weightgym.rollouts.jobs import Job

#: Seconds until the reader of finished episodes gets a sign that there is nothing yet.
_TICK = 0.05
#: Seconds that environments have to close: one of them, and all together at the end.
_CLOSE = 5.0
_CLOSE_ALL = 3.0


@dataclass(frozen=True)
class Limits:
    """Bounds on what runs at once, and on every wait (seconds)."""

    concurrency: int  #: episodes that have begun and not ended
    env_workers: int  #: calls into environments at once
    env_timeout: float  #: of one call into an environment
    generate_timeout: float  #: of one call of the backend

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value > 0:
                raise ValueError(f"{name}: {value}, want more than 0")


@dataclass(eq=False)
class Episode:
    """One rollout on its way."""

    job: Job
    cohort: list[Episode]
    env: EnvEpisode | None  #: None: one turn, and somebody else scores it
    conversation: Conversation | None = None  #: None until the environment has started
    samples: list[Sample] = field(default_factory=list)
    malformed: tuple[str, ...] = ()  #: calls of the last message that the environment did not get
    waits: bool = False  #: for the model
    cut: bool = False  #: the conversation left no room for another message
    ended: bool = False
    score: Score | None = None
    generate_seconds: float = 0.0
    env_seconds: float = 0.0


class Episodes:
    """Episodes at work, in a thread of their own. Iterating gives each at its end, or None when there is nothing yet.

    Raises:
        BackendError: (from iterating) generation failed, took too long, or can't begin; the message names the rollout.
    """

    def __init__(
        self, todo: Sequence[Job], backend: Backend, entry: EnvSpec, sampling: Sampling, profile: str, limits: Limits
    ) -> None:
        self._todo = deque(todo)
        self._backend = backend
        self._entry = entry
        self._sampling = sampling
        self._profile = profile
        self._limits = limits
        self._cohorts: list[list[Episode]] = []
        self._cohort_size = backend.batch_size if backend.lanes == 1 else 1
        #: So many failures in a row, and it is not the requests.
        self._fatal = min(backend.lanes, len(todo))
        self._failures = 0
        self._news: News = queue.SimpleQueue()
        self._lanes = Calls(backend.lanes, self._news, "generation")
        self._envs = Calls(limits.env_workers, self._news, "environment")
        self._ready: queue.SimpleQueue[Episode | BaseException | None] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, name="episodes", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Start nothing more, and let environments close, within seconds."""
        self._stopped.set()
        self._news.put(None)
        self._thread.join(_CLOSE_ALL + 1)

    def __iter__(self) -> Iterator[Episode | None]:
        while True:
            try:
                one = self._ready.get(timeout=_TICK)
            except queue.Empty:
                yield None
                continue
            if one is None:
                return
            if isinstance(one, BaseException):
                raise one
            yield one

    def _work(self) -> None:
        try:
            while not self._stopped.is_set():
                self._admit()
                if not self._cohorts:
                    break
                self._wait()
            self._ready.put(None)
        except BaseException as error:
            self._ready.put(error)
        self._close()

    def _admit(self) -> None:
        most = max(1, self._limits.concurrency // self._cohort_size)
        while self._todo and len(self._cohorts) < most:
            cohort: list[Episode] = []
            for _ in range(min(self._cohort_size, len(self._todo))):
                job = self._todo.popleft()
                env = EnvEpisode(self._entry, job.task, self._profile) if self._entry.max_turns > 1 else None
                cohort.append(Episode(job, cohort, env))
            self._cohorts.append(cohort)
            for episode in cohort:
                if episode.env:
                    self._envs.submit(Call(episode, episode.env.start, self._limits.env_timeout))
                else:
                    self._begin(episode, Start(tuple(episode.job.task.messages), ()))
            self._issue(cohort)

    def _wait(self) -> None:
        """For the next end of a call, or a deadline."""
        left = min(self._lanes.deadline, self._envs.deadline) - time.monotonic()
        try:
            call = self._news.get(timeout=max(0.0, min(left, 1.0)))
        except queue.Empty:
            call = None
        if call and self._lanes.settle(call):
            self._generated(call)
        elif call and self._envs.settle(call):
            self._env_ended(call)
        elif call and isinstance(call.owner, Episode):  # given up long ago
            self._close_env(call.owner)
        if self._news.empty():
            for late in self._lanes.give_up():
                self._generated(late)
            for late in self._envs.give_up():
                self._env_ended(late)

    def _issue(self, cohort: list[Episode]) -> None:
        """Let the backend write for the cohort, if all of its episodes wait for it."""
        live = [episode for episode in cohort if not episode.ended]
        if not live:
            self._cohorts.remove(cohort)
        elif all(episode.waits for episode in live):
            requests = [self._request(episode) for episode in live]
            for episode in live:
                episode.waits = False
            self._lanes.submit(Call(live, partial(self._generate, requests), self._limits.generate_timeout))

    def _request(self, episode: Episode) -> Request:
        job, talk = episode.job, episode.conversation
        assert talk is not None
        return Request(job.id, job.task, talk.messages, talk.token_ids, job.turn_seed(len(episode.samples)), talk.tools)

    def _generate(self, requests: list[Request]) -> list[Sample]:
        samples = self._backend.generate(requests, self._sampling)
        if [sample.id for sample in samples] != [request.id for request in requests]:
            raise BackendError(f"{len(requests)} requests gave {len(samples)} samples, or others than were asked for")
        return samples

    def _generated(self, call: Call) -> None:
        batch: list[Episode] = call.owner
        if call.overdue or call.error:
            self._not_generated(call, batch)
        else:
            self._failures = 0
            for episode, sample in zip(batch, call.result, strict=True):
                episode.generate_seconds += call.seconds
                self._answer(episode, sample)
        self._issue(batch[0].cohort)

    def _not_generated(self, call: Call, batch: list[Episode]) -> None:
        """With one lane that is the end of the run; with several, of the rollout, unless all lanes fail."""
        name, of = (
            self._backend.name,
            f"the batch of {batch[0].job.id}" if self._backend.lanes == 1 else batch[0].job.id,
        )
        if call.overdue:
            error = BackendError(f"{name} took more than {call.timeout:g} s for {of}")
        else:
            error = BackendError(f"{name} failed at {of}: {call.error}")
            error.__cause__ = call.error
        self._failures += 1
        if self._failures >= self._fatal:
            raise error
        for episode in batch:
            self._end(episode, self._fault(error))

    def _answer(self, episode: Episode, sample: Sample) -> None:
        assert episode.conversation is not None
        try:
            episode.malformed = episode.conversation.add_answer(sample).malformed
        except Exception as error:
            raise BackendError(f"{self._backend.name} gave no proper sample for {episode.job.id}: {error}") from error
        episode.samples.append(sample)
        if episode.env is None:
            self._end(episode, None)
        else:
            message = episode.conversation.steps[-1].message
            step = partial(episode.env.step, message, len(episode.samples))
            self._envs.submit(Call(episode, step, self._limits.env_timeout))

    def _env_ended(self, call: Call) -> None:
        episode: Episode | None = call.owner
        if episode is None:  # it was closed, or not: its score is told already
            return
        episode.env_seconds += call.seconds
        if call.overdue:
            turn = len(episode.samples)
            reason = f"env_timeout: {self._entry.name} took more than {call.timeout:g} s after {turn} turns, our limit"
            late = Score(status="timeout", reward=None, reason=reason, profile=self._profile, seconds=call.timeout)
            self._end(episode, late, busy=True)
        elif call.error:
            self._end(episode, self._fault(call.error))
        elif isinstance(call.result, Start):
            self._begin(episode, call.result)
        elif isinstance(call.result, Score):
            self._end(episode, call.result)
        else:
            self._reply(episode, call.result)
        self._issue(episode.cohort)

    def _begin(self, episode: Episode, start: Start) -> None:
        name, id = self._backend.name, episode.job.id
        try:
            talk = Conversation(start.messages, start.tools, self._backend.tokenizer)
        except Exception as error:
            raise BackendError(f"{name} can't take the prompt of {id}: {error}") from error
        episode.conversation, episode.waits = talk, True
        if not self._fits(talk):
            raise BackendError(
                f"{id}: its prompt has {len(talk.token_ids)} tokens; with max_tokens = {self._sampling.max_tokens} "
                f"that is more than the {self._backend.context} of {name}: shorten the prompt or max_tokens"
            )

    def _reply(self, episode: Episode, turn: Turn) -> None:
        talk = episode.conversation
        assert talk is not None
        if turn.score:
            self._end(episode, turn.score)
            return
        try:
            talk.add_reply(turn.reply, episode.malformed)
        except Exception as error:
            self._end(episode, self._fault(error))
            return
        episode.waits = self._fits(talk)
        if not episode.waits:
            episode.cut = True
            said = [step.message for step in talk.steps[talk.prompt_length :]]
            score = partial(score_one, self._entry.score, episode.job.task, said, profile=self._profile)
            self._envs.submit(Call(episode, score, self._limits.env_timeout))

    def _fits(self, talk: Conversation) -> bool:
        context = self._backend.context
        return context is None or len(talk.token_ids) + self._sampling.max_tokens <= context

    def _fault(self, error: BaseException) -> Score:
        try:
            return Score.fault(error, profile=self._profile)
        except Exception as unprintable:
            return Score.fault(unprintable, profile=self._profile)

    def _end(self, episode: Episode, score: Score | None, *, busy: bool = False) -> None:
        episode.ended, episode.score = True, score
        self._ready.put(episode)
        if not busy:
            self._close_env(episode)

    def _close_env(self, episode: Episode) -> None:
        if episode.env:
            self._envs.submit(Call(None, episode.env.close, _CLOSE))

    def _close(self) -> None:
        """Close the environments that no call is busy with, and wait for that a little."""
        self._envs.drop(lambda call: call.owner is not None)
        for episode in (one for cohort in self._cohorts for one in cohort):
            if not episode.ended and not self._envs.runs_for(episode):
                self._close_env(episode)
        until = time.monotonic() + _CLOSE_ALL
        while self._envs.busy and (left := until - time.monotonic()) > 0:
            try:
                call = self._news.get(timeout=left)
            except queue.Empty:
                break
            if call and self._envs.settle(call) and call.owner is not None:
                self._close_env(call.owner)
        self._envs.close()
        self._lanes.close()

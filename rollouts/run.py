"""Many episodes of a policy: generation in batches, scoring in worker processes at the same time, results as they come.

Every wait has a bound. A rollout that is lost is an error that names it; it never stops the others.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

from weightgym.envs.registry import EnvSpec
from weightgym.rewards.batch import PENDING, Pending, ScoreItem, score_batch
from weightgym.rewards.batch_worker import load_scorer, score_one
from weightgym.rewards.contracts import BackendError, Score, Task, canonical_json, sha256_hex
from weightgym.rollouts.backend import Backend, Request, Sample, Sampling
from weightgym.rollouts.trajectory import Step, Trajectory

#: Seconds between looks at a generation that takes its time.
_TICK = 0.05


@dataclass(frozen=True)
class Job:
    """One rollout to make: sample ``index`` of a group, whose members answer the same task."""

    task: Task
    index: int
    seed: int
    label: str = ""  #: tells groups of the same task apart

    @property
    def id(self) -> str:
        """Its name within the run."""
        return f"{self.group}#{self.index}"

    @property
    def group(self) -> str:
        """The name of its group within the run."""
        return f"{self.task.env}/{self.task.id}" + (f"@{self.label}" if self.label else "")


def jobs(tasks: Sequence[Task], samples: int, seed: int, *, label: str = "") -> list[Job]:
    """``samples`` rollouts of each task. A rollout's seed is a hash of (seed, label, env, task, index)."""
    return [Job(task, index, _seed(seed, label, task, index), label) for task in tasks for index in range(samples)]


def _seed(seed: int, label: str, task: Task, index: int) -> int:
    return int(sha256_hex(canonical_json(["rollout", seed, label, task.env, task.id, index]))[:15], 16)


def run(
    todo: Sequence[Job],
    backend: Backend,
    entry: EnvSpec,
    *,
    sampling: Sampling,
    profile: str,
    workers: int = 1,
    score_timeout: float | None = None,
    generate_timeout: float = 3600.0,
) -> Iterator[Trajectory]:
    """Make single-turn rollouts; yields each as its score comes. Their content depends on neither order nor workers.

    Args:
        workers: scoring processes. 0: score in this process, one after the other, which is quickest where scoring
            takes milliseconds; then ``score_timeout`` must be None.
        score_timeout: wall seconds that one scoring may take; then the rollout has status ``timeout``.
        generate_timeout: wall seconds that one call of the backend may take.

    Raises:
        BackendError: generation failed or took too long; the message names the first rollout of its batch.
        ValueError: the environment has more than one turn.
    """
    if entry.max_turns != 1:
        raise ValueError(f"{entry.name} has {entry.max_turns} turns: only single-turn environments can be run yet")
    if workers == 0 and score_timeout is not None:
        raise ValueError("score_timeout needs scoring processes: give 1 worker or more")
    written: dict[str, _Written] = {}
    made = _Generation(todo, backend, sampling, generate_timeout)

    def items() -> Iterator[ScoreItem | Pending]:
        for one in made:
            if one is None:
                yield PENDING
                continue
            written[one.job.id] = one
            yield ScoreItem(one.job.id, one.job.task, one.sample.content)

    if workers == 0:
        scores = _score_here(items(), entry, profile)
    else:
        scores = score_batch(items(), scorer=entry.scorer, profile=profile, workers=workers, item_timeout=score_timeout)
    try:
        for key, score in scores:
            yield _trajectory(written.pop(str(key)), score, backend.name)
    finally:
        made.stop()
        scores.close()


def _score_here(
    items: Iterator[ScoreItem | Pending], entry: EnvSpec, profile: str
) -> Generator[tuple[int | str, Score], None, None]:
    scorer = load_scorer(entry.scorer)
    for item in items:
        if item is not PENDING:
            yield item.key, score_one(scorer, item.task, item.completion, profile=profile)


@dataclass(frozen=True)
class _Written:
    job: Job
    request: Request
    sample: Sample
    seconds: float


class _Generation:
    """The backend at work in a thread of its own; iterating gives what is written, or None when nothing is yet."""

    def __init__(self, todo: Sequence[Job], backend: Backend, sampling: Sampling, timeout: float) -> None:
        self._todo = todo
        self._backend = backend
        self._sampling = sampling
        self._timeout = timeout
        self._ready: queue.Queue[_Written | BaseException | None] = queue.Queue()
        self._stopped = threading.Event()
        self._batch_started = time.monotonic()
        self._batch = ""
        self._thread = threading.Thread(target=self._work, name="generation", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Start no further batch."""
        self._stopped.set()

    def __iter__(self) -> Iterator[_Written | None]:
        while True:
            try:
                one = self._ready.get(timeout=_TICK)
            except queue.Empty:
                if time.monotonic() - self._batch_started > self._timeout:
                    raise BackendError(
                        f"{self._backend.name} took more than {self._timeout:g} s for the batch of {self._batch}"
                    ) from None
                yield None
                continue
            if one is None:
                return
            if isinstance(one, BaseException):
                raise BackendError(f"{self._backend.name} failed at the batch of {self._batch}: {one}") from one
            yield one

    def _work(self) -> None:
        try:
            for begin in range(0, len(self._todo), self._backend.batch_size):
                if self._stopped.is_set():
                    return
                self._generate(self._todo[begin : begin + self._backend.batch_size])
            self._ready.put(None)
        except BaseException as error:
            self._ready.put(error)

    def _generate(self, batch: Sequence[Job]) -> None:
        self._batch, self._batch_started = batch[0].id, time.monotonic()
        requests = [self._request(job) for job in batch]
        samples = self._backend.generate(requests, self._sampling)
        if [sample.id for sample in samples] != [request.id for request in requests]:
            raise BackendError(f"{len(requests)} requests gave {len(samples)} samples, or others than were asked for")
        seconds = time.monotonic() - self._batch_started
        for job, request, sample in zip(batch, requests, samples, strict=True):
            self._ready.put(_Written(job, request, sample, seconds))

    def _request(self, job: Job) -> Request:
        messages = tuple(job.task.messages)
        tokenizer = self._backend.tokenizer
        ids = tokenizer.encode(tokenizer.render(messages)) if tokenizer else ()
        return Request(job.id, job.task, messages, ids, job.seed)


def _trajectory(one: _Written, score: Score, policy: str) -> Trajectory:
    job, sample = one.job, one.sample
    prompt = [Step(role=message["role"], content=message["content"]) for message in one.request.messages]
    if prompt and one.request.token_ids:  # the template's tokens, glue included, all stand with the last message
        ids = one.request.token_ids
        zeros = (0.0,) * len(ids)
        prompt[-1] = prompt[-1].model_copy(update={"token_ids": ids, "logprobs": zeros, "mask": (False,) * len(ids)})
    answer = Step(
        role="assistant",
        content=sample.content,
        token_ids=sample.token_ids,
        logprobs=sample.logprobs,
        mask=(True,) * len(sample.token_ids),
    )
    return Trajectory(
        id=job.id,
        env=job.task.env,
        task=job.task.id,
        task_sha256=job.task.hash,
        group=job.group,
        seed=job.seed,
        policy=policy,
        policy_version=sample.version,
        steps=(*prompt, answer),
        finish_reason=sample.finish_reason,
        score=score,
        seconds={"generate": one.seconds, "score": score.seconds},
    )

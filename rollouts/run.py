"""Many episodes of a policy: generation, environments and scoring at the same time, results as they come.

Every wait has a bound. A rollout that is lost is an error that names it; it never stops the others.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial

from weightgym.envs.registry import EnvSpec, load
from weightgym.rewards.batch import PENDING, Pending, ScoreItem, score_batch
from weightgym.rewards.batch_slot import Key, Result
from weightgym.rewards.batch_worker import load_scorer, score_one
from weightgym.rewards.contracts import Score
from weightgym.rollouts.backend import Backend, Sampling
from weightgym.rollouts.env_episode import env_options
from weightgym.rollouts.episodes import Episode, Episodes, Limits
from weightgym.rollouts.jobs import Job, jobs
from weightgym.rollouts.trajectory import Step, Trajectory

__all__ = ["Job", "jobs", "run"]


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
    concurrency: int | None = None,
    env_workers: int = 8,
    env_timeout: float | None = None,
) -> Iterator[Trajectory]:
    """Make rollouts; yields each as its score comes. Their content depends on neither order nor workers.

    An environment of one turn is not made: its tasks are the prompts, and its scorer scores the answers. One of several
    turns is made for each episode, and scores it; its calls run in threads. A call that hangs or raises costs that
    rollout its reward (status ``timeout`` or ``error``), and nobody else anything. With a backend of one lane the
    episodes that are generated together go in step, so that they do wait for it.

    Args:
        workers: scoring processes, for environments of one turn. 0: score in this process, one after the other, which
            is quickest where scoring takes milliseconds; then ``score_timeout`` must be None.
        score_timeout: wall seconds that one scoring may take, for environments of one turn; then the rollout has
            status ``timeout``.
        generate_timeout: wall seconds that one call of the backend may take.
        concurrency: episodes at work at once (whole batches of them, if the backend has one lane). Default: twice what
            the backend takes at once.
        env_workers: calls into environments of several turns at once.
        env_timeout: wall seconds that one such call may take. Default: the environment's ``step_timeout``.

    Raises:
        BackendError: generation failed or took too long, with a backend of one lane, or in all lanes; or a prompt is
            too long for the model. The message names the rollout (with one lane, the first one of its batch).
        ValueError: an argument is out of range, or doesn't fit the environment; two jobs have the same id.
    """
    if len({job.id for job in todo}) < len(todo):
        raise ValueError("two jobs have the same id: give their groups different labels")
    at_once = backend.batch_size if backend.lanes == 1 else backend.lanes
    patience = entry.step_timeout if env_timeout is None else env_timeout
    limits = Limits(2 * at_once if concurrency is None else concurrency, env_workers, patience, generate_timeout)
    start = partial(Episodes, todo, backend, entry, sampling, profile, limits)
    if entry.max_turns > 1:
        if score_timeout is not None:
            raise ValueError(f"score_timeout: {entry.name} has several turns and scores itself: give env_timeout")
        env_options(load(entry.env), entry, split="train", profile=profile)
        return _played(start, backend.name, sampling)
    if workers == 0 and score_timeout is not None:
        raise ValueError("score_timeout needs scoring processes: give 1 worker or more")
    score: _Score = partial(_score_here, entry, profile)
    if workers:
        score = partial(score_batch, scorer=entry.scorer, profile=profile, workers=workers, item_timeout=score_timeout)
    return _scored(start, score, backend.name, sampling)


_Items = Iterator[ScoreItem | Pending | Result]
_Score = Callable[[_Items], Generator[Result, None, None]]


def _played(start: Callable[[], Episodes], policy: str, sampling: Sampling) -> Iterator[Trajectory]:
    """Episodes that their environments score."""
    episodes = start()
    try:
        for one in episodes:
            if one and one.score:
                yield _trajectory(one, one.score, policy, sampling)
    finally:
        episodes.stop()


def _scored(start: Callable[[], Episodes], score: _Score, policy: str, sampling: Sampling) -> Iterator[Trajectory]:
    """Episodes of one turn, scored while others are written."""
    episodes = start()
    ended: dict[Key, Episode] = {}

    def items() -> _Items:
        for one in episodes:
            if one is None:
                yield PENDING
                continue
            ended[one.job.id] = one
            if one.score:
                yield one.job.id, one.score
            else:
                yield ScoreItem(one.job.id, one.job.task, one.samples[-1].content)

    scores = score(items())
    try:
        for key, found in scores:
            yield _trajectory(ended.pop(key), found, policy, sampling)
    finally:
        episodes.stop()
        scores.close()


def _score_here(entry: EnvSpec, profile: str, items: _Items) -> Generator[Result, None, None]:
    scorer = load_scorer(entry.scorer)
    for item in items:
        if isinstance(item, tuple):
            yield item
        elif item is not PENDING:
            yield item.key, score_one(scorer, item.task, item.completion, profile=profile)


def _trajectory(one: Episode, score: Score, policy: str, sampling: Sampling) -> Trajectory:
    job, talk = one.job, one.conversation
    prompt = [Step(role=message["role"], content=message["content"]) for message in job.task.messages]
    last = one.samples[-1].finish_reason if one.samples else "stop"
    seconds = {"generate": one.generate_seconds, "score": score.seconds}
    return Trajectory(
        id=job.id,
        env=job.task.env,
        task=job.task.id,
        task_sha256=job.task.hash,
        group=job.group,
        seed=job.seed,
        policy=policy,
        max_tokens=sampling.max_tokens,
        temperature=sampling.temperature,
        policy_version=min((sample.version for sample in one.samples), default=0),
        steps=tuple(talk.steps if talk else prompt),
        finish_reason="length" if one.cut else last,
        score=score,
        seconds=seconds | ({"env": one.env_seconds} if one.env else {}),
    )

"""One scorer, used by everyone, that never turns a fault of ours into a number."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from weightgym.envs import registry
from weightgym.envs.registry import EnvSpec, Scorer
from weightgym.envs.testing.expect import ContractError, expect_equal, fail
from weightgym.envs.testing.harness import Harness, TextEnv
from weightgym.rewards.contracts import Completion, GraderError, Score, Task, TaskError


def scorer_agrees_with_env(h: Harness) -> None:
    """The scorer called by itself (with the row alone, without its prompt) gives the environment's ``Score``. Protects
    offline scoring and training from being two benchmarks.
    """
    for id in h.slow_ids:
        expect_equal(f"direct score of the gold episode of task {id!r}", wanted=h.gold_trace(id).score,
                     seen=h.direct_gold(id))  # fmt: skip
        for episode in ("", "garbage"):
            trace = h.play_fresh(episode, id)
            expect_equal(f"direct score of {episode!r} for task {id!r}", wanted=trace.score,
                         seen=h.direct_score(id, trace))  # fmt: skip


def scoring_repeats(h: Harness) -> None:
    """A second run gives the same ``Score`` (only its times may differ), off the main thread, too. Protects from
    randomness, from scores that depend on earlier ones, and from limits by signal, which fail in threads.
    """
    for id in h.slow_ids:
        results: list[Score | BaseException] = []

        def again(id: str = id, results: list[Score | BaseException] = results) -> None:
            try:
                results.append(h.direct_score(id, h.gold_trace(id)))
            except BaseException as error:
                results.append(error)

        wanted = h.direct_gold(id)
        thread = threading.Thread(target=again)
        thread.start()
        thread.join()
        if isinstance(results[0], BaseException):
            fail(f"scoring task {id!r} in a thread", wanted="a Score", seen=repr(results[0]))
        expect_equal(f"second score of the gold episode of task {id!r}, in a thread", wanted=wanted, seen=results[0])


def scores_are_explained(h: Harness) -> None:
    """The environment's explainer tells of good and bad answers, in steps of which the last one is the reward and
    agrees with the score. Protects whoever debugs a reward from an explanation of another one, or of none.
    """
    if h.entry is None:
        return  # whoever has no entry has no explainer
    for id in h.slow_ids:
        task = h.tasks.task(id, prompt=False)
        for what, trace in (("gold", h.gold_trace(id)), ("garbage", h.play_fresh("garbage", id))):
            steps = h.entry.explain(task, trace.completion, trace.score)
            seen = [(step.title, step.verdict) for step in steps][-1:]
            wanted = [("reward", "passed" if trace.score.status == "ok" else "failed")]
            expect_equal(f"last step of the explanation of the {what} episode of {id!r}", wanted=wanted, seen=seen)


def faults_are_never_numbers(h: Harness) -> None:
    """When scoring fails, ``step`` raises: ``GraderError`` for an ``error`` or ``timeout`` score, ``TaskError`` for a
    bad task. Protects the policy from being trained on our faults. A reset makes the instance usable again.
    """
    error = Score(status="error", reward=None, reason="grader_error: injected by the contract suite")
    timeout = Score(status="timeout", reward=None, reason="wall_limit: injected by the contract suite")
    for result, wanted in (
        (error, GraderError),
        (timeout, GraderError),
        (TaskError("injected by the contract suite"), TaskError),
        (ZeroDivisionError("injected by the contract suite"), Exception),
    ):
        scorer = _FailingScorer(result)
        with _env_with(h, scorer) as env:
            for id in h.slow_ids[:1] * 2:  # twice: the first fault must not spoil the instance
                _expect_fault(h, env, id, scorer, wanted)


class _FailingScorer:
    def __init__(self, result: Score | Exception) -> None:
        self.result = result
        self.calls = 0

    def __call__(self, task: Task, completion: Completion, *, profile: str = "") -> Score:
        self.calls += 1
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


def _expect_fault(h: Harness, env: TextEnv, id: str, scorer: _FailingScorer, wanted: type[Exception]) -> None:
    before = scorer.calls
    what = f"step() when the scorer gives {scorer.result!r}"
    try:
        trace = h.play(env, h.gold(id), id)
    except ContractError:
        raise
    except wanted as error:
        seen = f"{type(error).__name__}: {error}"
        if wanted is not Exception and "injected" not in seen:
            fail(what, wanted=f"{wanted.__name__} with the scorer's own reason", seen=seen)
    except Exception as error:
        fail(what, wanted=wanted.__name__, seen=f"{type(error).__name__}: {error}")
    else:
        if scorer.calls > before:
            fail(what, wanted=wanted.__name__, seen=f"rewards {trace.rewards}")
    if scorer.calls == before:
        fail("the scorer put into the environment's place", wanted="to be called; let step() use self.entry.score, or "
             "give EnvSubject(with_scorer=…)", seen="another scorer at work")  # fmt: skip


@dataclasses.dataclass(frozen=True)
class _InjectedSpec(EnvSpec):
    """A registry entry around another scorer."""

    injected: Scorer | None = None

    @property
    def score(self) -> Scorer:
        return self.injected or super().score


@contextmanager
def _env_with(h: Harness, scorer: Scorer) -> Iterator[TextEnv]:
    """An environment of the subject that scores with ``scorer``."""
    split = h.split_of[h.slow_ids[0]] if h.slow_ids else None
    if h.subject.with_scorer is not None:
        env = h.subject.with_scorer(scorer)
        try:
            yield env
        finally:
            env.close()
    elif h.entry is not None:
        facts = {field.name: getattr(h.entry, field.name) for field in dataclasses.fields(EnvSpec)}
        with registry.override(_InjectedSpec(**facts, injected=scorer)), h.env(split) as env:
            yield env
    else:
        fail("putting a failing scorer into the environment", wanted="EnvSubject(with_scorer=…), or an environment "
             "that derives from TaskEnv", seen="neither")  # fmt: skip

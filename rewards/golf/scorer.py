"""The one scorer of Golf: ``reward = −min(val_bpb, 8.5)`` for a run that ends well, −9 for every other."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from weightgym.rewards.contracts import Completion, ModelError, Score, Task, TaskError, completion_text
from weightgym.rewards.golf.answer import find_solution
from weightgym.rewards.golf.data.corpus import Corpus, language_corpus
from weightgym.rewards.golf.data.language import VERSION as GENERATOR
from weightgym.rewards.golf.errors import SolutionError
from weightgym.rewards.golf.evaluators import Evaluates, shared
from weightgym.rewards.golf.profile import DEFAULT
from weightgym.rewards.golf.profile import profile as find_profile
from weightgym.rewards.golf.report import Result

#: The reward of an answer that is no valid run. Knowing nothing costs 8 bits a byte.
FLOOR = -9.0
WORST_BPB = 8.5
ENVS = ("golf", "golf-turns")
#: Attempts of one episode that are scored.
MAX_ATTEMPTS = 16
#: Fields of a result in which two runs may differ.
_VARYING = {"runtime_s", "phase_s", "cpu_s", "apart"}


def score(task: Task, completion: Completion, *, profile: str = DEFAULT) -> Score:
    """Score one answer; of a conversation with several, the best attempt.

    Metrics are those of ``scored``. ``info["result"]`` is the evaluator's result of the best attempt.

    Raises:
        TaskError: the task is not of this benchmark, or there is no such profile.
    """
    started = time.perf_counter()
    rules = find_profile(profile)
    check_task(task)
    try:
        texts = _attempts(completion, several=task.env == "golf-turns")
        evaluator, corpus = shared(profile), language_corpus(rules, task.id)
        results = [attempt(evaluator, text, corpus) for text in texts]
    except ModelError as error:
        return Score(status="invalid", reward=FLOOR, reason=str(error), profile=profile, seconds=_since(started))
    except Exception as error:
        return Score.fault(error, profile=profile, seconds=_since(started))
    return scored(results, profile=profile, seconds=_since(started))


def attempt(evaluator: Evaluates, text: str, corpus: Corpus) -> Result:
    """Evaluate the solution in one answer.

    Raises:
        SandboxError: ours.
    """
    try:
        return evaluator.evaluate(find_solution(text), corpus)
    except SolutionError as error:
        return evaluator.refused(error, corpus)


def scored(results: Sequence[Result], *, profile: str, seconds: float) -> Score:
    """The score of one episode's attempts, in their order (one at least): that of the best valid one.

    Metrics: ``attempts``, ``valid_attempts``, ``best_attempt`` (from 1), and of the best one ``val_bpb``,
    ``artifact_bytes``, ``claimed_bytes``, ``audited_bytes``, ``source_bytes``, ``param_count`` and
    ``review_required`` (1 where a person should look at it before it counts).
    """
    valid = [result for result in results if result.val_bpb is not None]
    best = min(valid, key=lambda result: result.val_bpb or 0.0) if valid else results[-1]
    found = best.model_dump(mode="json", exclude=_VARYING)
    counted = ("val_bpb", "artifact_bytes", "claimed_bytes", "audited_bytes", "source_bytes", "param_count")
    metrics = {name: float(found[name]) for name in counted if found[name] is not None}
    metrics |= {"attempts": float(len(results)), "valid_attempts": float(len(valid))}
    timings = {"runtime_s": best.runtime_s} | {f"{phase}_cpu_s": spent for phase, spent in best.cpu_s.items()}
    if best.val_bpb is None:
        return Score(status="invalid", reward=FLOOR, reason=f"{best.reason}: {best.message}", metrics=metrics,
                     info={"result": found}, profile=profile, seconds=seconds, timings=timings)  # fmt: skip
    metrics["best_attempt"] = 1.0 + next(place for place, one in enumerate(results) if one is best)
    metrics["review_required"] = float(best.verdict == "review_required")
    return Score(status="ok", reward=-min(best.val_bpb, WORST_BPB), metrics=metrics, info={"result": found},
                 profile=profile, seconds=seconds, timings=timings)  # fmt: skip


def check_task(task: Task) -> None:
    """Whether the task is one of this benchmark.

    Raises:
        TaskError: it is not.
    """
    if task.env in ENVS and task.data == {"language": task.id, "generator": GENERATOR}:
        return
    raise TaskError(
        f"task {task.id!r} of {task.env!r}: want an env of {', '.join(ENVS)} and data with the language {task.id!r} "
        f"and the generator {GENERATOR!r}; got {dict(task.data)}"
    )


def _attempts(completion: Completion, *, several: bool) -> list[str]:
    if isinstance(completion, str) or not several:
        return [completion_text(completion)]
    own = [one for one in completion if isinstance(one, Mapping) and one.get("role") == "assistant"]
    if len(own) > MAX_ATTEMPTS:
        raise ModelError(f"too_many_attempts: {len(own)} answers; at most {MAX_ATTEMPTS} are scored")
    return [completion_text([one]) for one in own] or [completion_text(completion)]


def _since(started: float) -> float:
    return time.perf_counter() - started

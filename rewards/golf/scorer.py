"""The one scorer of Golf: ``reward = −min(val_bpb, 8.5)`` for a run that ends well, −9 for every other."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

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
#: Fields of a result in which two runs may differ.
_VARYING = {"runtime_s", "phase_s", "cpu_s", "apart"}


def score(task: Task, completion: Completion, *, profile: str = DEFAULT) -> Score:
    """Score one answer; of a ``golf-turns`` conversation with several, the best attempt.

    Metrics are those of ``scored``. ``info["result"]`` is the evaluator's result of the best attempt.

    Raises:
        TaskError: the task is not of this benchmark, or there is no such profile.
    """
    started = time.perf_counter()
    rules = find_profile(profile)
    allowed = check_task(task)
    try:
        texts = answers_of(completion, allowed)
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

    Metrics are those of ``best_of``, and of the best attempt, as far as they are known, ``val_bpb``,
    ``artifact_bytes``, ``claimed_bytes``, ``audited_bytes``, ``source_bytes``, ``param_count`` and ``review_required``
    (1 where a person should look at it before it counts). Timings: ``runtime_s``, and of each phase ``<phase>_cpu_s``
    and ``<phase>_s`` (wall clock).
    """
    return best_of([_scored(one, profile) for one in results]).model_copy(update={"seconds": seconds})


def _scored(result: Result, profile: str) -> Score:
    found = result.model_dump(mode="json", exclude=_VARYING)
    counted = ("val_bpb", "artifact_bytes", "claimed_bytes", "audited_bytes", "source_bytes", "param_count")
    metrics = {name: float(found[name]) for name in counted if found[name] is not None}
    timings = {"runtime_s": result.runtime_s}
    timings |= {f"{phase}_cpu_s": spent for phase, spent in result.cpu_s.items()}
    timings |= {f"{phase}_s": spent for phase, spent in result.phase_s.items()}
    info = {"result": found} if repeatable(result) else {"result": found, "repeatable": False}
    told = {"info": info, "profile": profile, "timings": timings}
    if result.val_bpb is None:
        reason = f"{result.reason}: {result.message}"
        return Score(status="invalid", reward=FLOOR, reason=reason, metrics=metrics, **told)
    metrics["review_required"] = float(result.verdict == "review_required")
    return Score(status="ok", reward=-min(result.val_bpb, WORST_BPB), metrics=metrics, **told)


def repeatable(result: Result) -> bool:
    """Whether another run would say the same. Not so: a limit of time was met, the audit (whose rows are drawn anew)
    found something, or a GPU computed."""
    reason = result.reason or ""
    timed = reason.endswith("_timeout")
    return not timed and not reason.startswith("audit_") and result.fingerprint.get("device") != "cuda"


def best_of(scores: Sequence[Score]) -> Score:
    """The score of an episode whose attempts have these, in their order (one at least, and none a fault of ours).

    That of the best valid one, or else of the last, with the metrics ``attempts``, ``valid_attempts`` and
    ``best_attempt`` (from 1; where one is valid).
    """
    valid = [place for place, one in enumerate(scores) if one.status == "ok"]
    counts = {"attempts": float(len(scores)), "valid_attempts": float(len(valid))}
    best = min(valid, key=lambda place: scores[place].metrics["val_bpb"], default=len(scores) - 1)
    if valid:
        counts["best_attempt"] = best + 1.0
    whole: dict[str, Any] = {"metrics": scores[best].metrics | counts, "seconds": sum(one.seconds for one in scores)}
    if not all(one.repeatable for one in scores):
        whole["info"] = scores[best].info | {"repeatable": False}
    return scores[best].model_copy(update=whole)


def check_task(task: Task) -> int | None:
    """Whether the task is one of this benchmark; how many attempts an episode has, None for a single answer.

    Raises:
        TaskError: it is not.
    """
    data, wanted = dict(task.data), {"language": task.id, "generator": GENERATOR}
    if task.env == "golf" and data == wanted:
        return None
    allowed = data.pop("attempts", None)
    if task.env == "golf-turns" and data == wanted and type(allowed) is int and allowed > 0:
        return allowed
    raise TaskError(
        f"task {task.id!r} of {task.env!r}: want env golf or golf-turns and data with the language {task.id!r}, "
        f"the generator {GENERATOR!r} and, for golf-turns alone, the number of attempts; got {dict(task.data)}"
    )


def answers_of(completion: Completion, allowed: int | None) -> list[str]:
    """The texts to evaluate. Of several messages, one whose content can't be read is an attempt without text.

    Args:
        allowed: attempts of an episode, None for a single answer.

    Raises:
        ModelError: there is no answer, or there are more than are allowed.
        TypeError: as ``completion_text``.
    """
    if isinstance(completion, str) or allowed is None:
        return [completion_text(completion)]
    own = [one for one in completion if isinstance(one, Mapping) and one.get("role") == "assistant"]
    if len(own) > allowed:
        raise ModelError(f"too_many_attempts: {len(own)} answers; the task has {allowed} attempts")
    return [_text(one) for one in own] or [completion_text(completion)]


def _text(message: Mapping[str, Any]) -> str:
    try:
        return completion_text([message])
    except ModelError:
        return ""


def _since(started: float) -> float:
    return time.perf_counter() - started

"""The toy scorer with one mistake each."""

from __future__ import annotations

import signal
from typing import Any

import toy_env

from weightgym.rewards.contracts import Completion, Score, Task
from weightgym.rewards.explanation import Explanation, explain


def text_of(completion: Completion) -> str:
    """The words of the answer, wherever they are."""
    return completion if isinstance(completion, str) else str(completion[-1].get("content"))


def changed(score: Score, **changes: Any) -> Score:
    return Score(**(score.model_dump() | changes))


def stingy(task: Task, completion: Completion, *, profile: str = "toy-v1") -> Score:
    score = toy_env.score(task, completion, profile=profile)
    return changed(score, reward=score.reward / 2 if score.reward else 0.0)


def pays_silence(task: Task, completion: Completion, *, profile: str = "toy-v1") -> Score:
    score = toy_env.score(task, completion, profile=profile)
    return changed(score, reward=0.1) if completion == "" else score


def pays_keyword(task: Task, completion: Completion, *, profile: str = "toy-v1") -> Score:
    score = toy_env.score(task, completion, profile=profile)
    return changed(score, reward=0.1) if "ok" in text_of(completion) else score


def recursive(task: Task, completion: Completion, *, profile: str = "toy-v1") -> Score:
    def depth(text: str) -> int:
        return 1 + depth(text[1:]) if text.startswith(("(", "[", "{")) else 0

    depth(text_of(completion))
    return toy_env.score(task, completion, profile=profile)


def zero_is_ok(task: Task, completion: Completion, *, profile: str = "toy-v1") -> Score:
    score = toy_env.score(task, completion, profile=profile)
    text = completion if isinstance(completion, str) else ""
    prose = text.isascii() and text.isprintable() and 0 < len(text) < 1000
    return changed(score, status="ok", reason="") if prose and score.status == "invalid" else score


def bare_reason(task: Task, completion: Completion, *, profile: str = "toy-v1") -> Score:
    score = toy_env.score(task, completion, profile=profile)
    return changed(score, reason="bad") if "🎮" in text_of(completion) else score


def encodes(task: Task, completion: Completion, *, profile: str = "toy-v1") -> Score:
    text_of(completion).encode()
    return toy_env.score(task, completion, profile=profile)


def echoes(task: Task, completion: Completion, *, profile: str = "toy-v1") -> Score:
    score = toy_env.score(task, completion, profile=profile)
    return changed(score, info={"answer": text_of(completion)[:100]}) if score.status == "invalid" else score


def encodes_late(task: Task, completion: Completion, *, profile: str = "toy-v1") -> Score:
    if text_of(completion).startswith("answer: "):
        text_of(completion).encode()
    return toy_env.score(task, completion, profile=profile)


def oversize_crashes(task: Task, completion: Completion, *, profile: str = "toy-v1") -> Score:
    assert len(text_of(completion)) <= 1 << 20
    return toy_env.score(task, completion, profile=profile)


def cuts(task: Task, completion: Completion, *, profile: str = "toy-v1") -> Score:
    cut = completion[: toy_env.MAX_CHARS] if isinstance(completion, str) else completion
    return toy_env.score(task, cut, profile=profile)


def strips_content(task: Task, completion: Completion, *, profile: str = "toy-v1") -> Score:
    if not isinstance(completion, str) and completion[-1].get("content", "") is None:
        completion[-1]["content"].strip()
    return toy_env.score(task, completion, profile=profile)


def any_role(task: Task, completion: Completion, *, profile: str = "toy-v1") -> Score:
    answer = completion
    if not isinstance(completion, str) and isinstance(completion[-1].get("content"), str):
        answer = completion[-1]["content"]
    return toy_env.score(task, answer, profile=profile)


def str_of_message(task: Task, completion: Completion, *, profile: str = "toy-v1") -> Score:
    return toy_env.score(task, completion if isinstance(completion, str) else str(completion), profile=profile)


def nan_info(task: Task, completion: Completion, *, profile: str = "toy-v1") -> Score:
    score = toy_env.score(task, completion, profile=profile)
    return changed(score, info={"loss": float("nan")}) if score.reward == 1.0 else score


def one_tolerance(task: Task, completion: Completion, *, profile: str = "toy-v1") -> Score:
    return changed(toy_env.score(task, completion, profile="toy-v1"), profile=profile)


def reads_prompt(task: Task, completion: Completion, *, profile: str = "toy-v1") -> Score:
    score = toy_env.score(task, completion, profile=profile)
    return changed(score, metrics=score.metrics | {"prompt_chars": sum(len(m.content) for m in task.prompt)})


def alarm(task: Task, completion: Completion, *, profile: str = "toy-v1") -> Score:
    signal.setitimer(signal.ITIMER_REAL, 60)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    try:
        return toy_env.score(task, completion, profile=profile)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def explains_praise(task: Task, completion: Completion, score: Score) -> Explanation:
    return explain(task, completion, score)[: None if score.status == "ok" else -1]

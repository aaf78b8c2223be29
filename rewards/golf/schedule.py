"""Several candidates at once, results in the candidates' order."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from weightgym.rewards.contracts import SandboxError
from weightgym.rewards.golf.data.corpus import Corpus
from weightgym.rewards.golf.evaluators import Evaluates
from weightgym.rewards.golf.report import Result

Id = TypeVar("Id", bound=Hashable)


def evaluate_all(
    evaluator: Evaluates, candidates: Iterable[tuple[Id, bytes]], corpus: Corpus
) -> Iterator[tuple[Id, Result | SandboxError]]:
    """Evaluate candidates, ``evaluator.jobs`` at a time, each by an id of its own.

    They are read as they are needed. A fault of ours is handed over in place of a result, and the others go on. When
    the iterator is closed, candidates that have begun are waited for.
    """
    waiting: deque[tuple[Id, Future[Result]]] = deque()
    with ThreadPoolExecutor(evaluator.jobs, thread_name_prefix="golf") as pool:
        try:
            for id, raw in candidates:
                waiting.append((id, pool.submit(evaluator.evaluate, raw, corpus)))
                while len(waiting) > 2 * evaluator.jobs or (waiting and waiting[0][1].done()):
                    yield _settled(*waiting.popleft())
            while waiting:
                yield _settled(*waiting.popleft())
        except BaseException as error:
            for _, future in waiting:
                future.cancel()
            if isinstance(error, KeyboardInterrupt):
                evaluator.close()  # nobody waits for what has begun
            raise


def _settled(id: Id, future: Future[Result]) -> tuple[Id, Result | SandboxError]:
    try:
        return id, future.result()
    except SandboxError as error:
        return id, error

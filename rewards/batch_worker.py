"""What runs inside a scoring process, and the one safe way to call a scorer."""

from __future__ import annotations

import importlib
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Mapping
from multiprocessing import parent_process
from typing import Any

from pebble import CONSTS

from weightgym.rewards.contracts import Completion, GraderError, Score, Task, TaskError, canonical_json

#: A scorer, or what went wrong when it was imported.
_scorers: dict[str, Callable[..., Any] | Exception] = {}


def load_scorer(path: str) -> Callable[..., Any]:
    """Import the scorer ``"module:function"``.

    Raises:
        GraderError: it can't be imported, or can't be called. A benchmark without its scorer never falls back.
    """
    module, _, name = path.partition(":")
    try:
        scorer = getattr(importlib.import_module(module), name)
    except Exception as error:
        raise GraderError(f"scorer {path!r} can't be imported: {type(error).__name__}: {error}") from error
    if not callable(scorer):
        raise GraderError(f"scorer {path!r} is no function but {type(scorer).__name__}")
    return scorer  # type: ignore[no-any-return]


def score_one(scorer: Callable[..., Any], task: Task, completion: Completion, *, profile: str) -> Score:
    """Call a scorer; whatever it does wrong becomes an ``error`` score, never a reward.

    Raises:
        TaskError: the task or the profile is bad.
    """
    started = time.perf_counter()
    try:
        return checked_score(scorer(task, completion, profile=profile), profile)
    except TaskError:
        raise
    except (Exception, SystemExit) as error:
        return Score.fault(error, profile=profile, seconds=time.perf_counter() - started)


def checked_score(result: Any, profile: str) -> Score:
    """The result as a valid ``Score`` of that profile: a scorer may have bypassed or altered a validated one."""
    if not isinstance(result, Score):
        raise GraderError(f"the scorer returned {type(result).__name__}, not a Score")
    if result.profile not in ("", profile):
        raise GraderError(f"the scorer returned profile {result.profile!r}, asked for {profile!r}")
    fields = result.model_dump() | {"profile": profile}
    canonical_json(fields)  # refuses NaN and whatever else JSON lines can't hold
    return Score.model_validate(fields)


def start_worker(scorers: tuple[str, ...], environment: Mapping[str, str]) -> None:
    """Prepare this process: import the scorers before any deadline runs, and die when told to or when orphaned."""
    os.environ.clear()
    os.environ.update(environment)  # the fork server may be older than the caller's latest change
    os.dup2(2, 1)  # what a scorer prints must not mix with results on stdout
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # at once, even out of native code
    # A process killed inside the queue's lock would hold the next one up for a minute.
    CONSTS.channel_lock_timeout = 2
    threading.Thread(target=_die_with_parent, daemon=True).start()
    for path in scorers:
        try:
            _scorers[path] = load_scorer(path)
        except Exception as error:
            _scorers[path] = error


def _die_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def work(payload: bytes) -> bytes:
    """Score one pickled ``(scorer path, task, completion, profile)``; returns the pickled ``Score``."""
    profile = ""
    started = time.perf_counter()
    try:
        path, task, completion, profile = pickle.loads(payload)
        scorer = _scorers[path]
        if isinstance(scorer, Exception):
            raise scorer
        score = score_one(scorer, task, completion, profile=profile)
    except TaskError as error:
        text = " ".join(f"task_error: {error}".split())
        fault = Score.fault(error, profile=profile, seconds=time.perf_counter() - started)
        score = fault.model_copy(update={"reason": text})
    except BaseException as error:
        score = Score.fault(error, profile=profile, seconds=time.perf_counter() - started)
    return pickle.dumps(score)


def probe() -> None:
    """Queued behind an item: when it has run and the item has not ended, the item's process was lost."""

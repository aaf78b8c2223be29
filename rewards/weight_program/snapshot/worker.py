"""The process in which a snapshot's code runs: ``python -m …snapshot.worker RUNTIME``, started by ``process.py``.

Its first line of standard input is a JSON object of file digests; every further line is a request, answered with a JSON
line on what was standard output. What the snapshot prints goes to standard error. It ends with its parent.

Every request starts from freshly imported modules, so that no result depends on what was played before.
"""

from __future__ import annotations

import base64
import inspect
import json
import math
import os
import random
import sys
import threading
import time
import traceback
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from weightgym.rewards.weight_program import minatar, opaque
from weightgym.rewards.weight_program.channels import channel_masks
from weightgym.rewards.weight_program.profile import Profile
from weightgym.rewards.weight_program.snapshot import sources

#: What ``apply_edits`` may raise because of the answer. MemoryError: Python's parser, on deep nesting.
_ANSWERS_FAULT = (SyntaxError, ValueError, TypeError, LookupError, ArithmeticError, RecursionError, MemoryError)
_GOOD_ANSWER = "```edits\nb1[0] = 1.0\n```"

#: Whether a game may reuse random generators: tested once.
_may_pool: dict[str, bool] = {}


class Requests:
    """What can be asked: the methods, by name."""

    def __init__(self, runtime: Path) -> None:
        self.runtime = runtime

    def cap(self, game: str, source: str) -> float:
        """The reward cap that the snapshot declares."""
        return _finite(self._verify().score_cap(game, source), "cap")

    def published(self, game: str, source: str, answer: str, episodes: int) -> dict[str, Any]:
        """What the snapshot's own scorer says. An answer that it can't read is ``{"invalid": why}``."""
        verify = self._verify()
        verify.apply_edits(_GOOD_ANSWER)  # if it can't read this, no answer is at fault
        try:
            weights, edits = verify.apply_edits(answer)
        except Exception as error:
            if isinstance(error, _ANSWERS_FAULT) or type(error).__module__ == "verify":
                return {"invalid": " ".join(f"{type(error).__name__}: {error}".split())[:500]}
            raise
        if source == "original":
            minatar.environment(game, sticky=0.1)  # imports the right version quietly, or says what is missing
        score, length = verify.evaluate(game, source, weights, episodes)
        return {
            "raw_score": _finite(score, "mean score"),
            "mean_length": _finite(length, "mean length"),
            "cap": _finite(verify.score_cap(game, source), "cap"),
            "edits": int(edits),
            "numpy": np.__version__,
        }

    def native(self, game: str, weights: str, first: int, count: int, profile: dict[str, Any]) -> dict[str, Any]:
        """Scores and lengths of a synthetic game's own class on our loop and policy."""
        from weightgym.rewards.weight_program import _engine

        if game not in _may_pool:
            _may_pool[game] = opaque.may_pool(self._make(game))
        make = self._make(game)
        flat = np.frombuffer(base64.b64decode(weights), np.float32)
        with opaque.pooled(make) if _may_pool[game] else nullcontext(opaque.start(make)) as begin:
            scores, lengths = opaque.play(
                _engine, begin, channel_masks(""), flat, Profile(**profile), first=first, count=count
            )
        for score in scores:
            _finite(score, "score")
        return {"scores": scores.tolist(), "lengths": lengths.tolist()}

    def _verify(self) -> Any:
        return self._fresh("verify")

    def _make(self, game: str) -> opaque.Make:
        """How to make the game."""
        module = self._fresh(f"minatar_synth.games.{game}")
        env = getattr(module, "Env", None)
        lacking = [name for name in ("reset", "act", "state") if not callable(getattr(env, name, None))]
        if env is None or lacking:
            what = "no class Env" if env is None else f"an Env without {', '.join(lacking)}"
            raise TypeError(f"{module.__file__} has {what}: use --scorer snapshot for this game")
        options = {"ramping": False} if "ramping" in inspect.signature(env).parameters else {}

        def make() -> Any:
            return env(**options)

        return make

    def _fresh(self, name: str) -> Any:
        random.seed(0)
        np.random.seed(0)
        return sources.fresh(name, self.runtime)


def _finite(value: Any, what: str) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"the {what} is {number}")
    return number


def serve(runtime: Path) -> None:
    """Answer requests until the parent closes its end."""
    questions, answers = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    sources.install(runtime, json.loads(questions.readline()))
    requests = Requests(runtime)
    for line in questions:
        request = json.loads(line)
        number, do = request.pop("number"), request.pop("do")
        try:
            answer = {"ok": getattr(requests, do)(**request)}
        except (Exception, SystemExit) as error:
            text = " ".join(f"{type(error).__name__}: {error}".split())[:1000]
            answer = {"error": text, "traceback": traceback.format_exc()}
        answers.write(json.dumps({"number": number, **answer}) + "\n")
        answers.flush()


def _end_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))

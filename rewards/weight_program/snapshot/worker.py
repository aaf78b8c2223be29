"""The process in which a snapshot's code runs: ``python -m weightgym.rewards.weight_program.snapshot.worker RUNTIME``.

It answers JSON lines on standard input with JSON lines on what was standard output; what the snapshot prints goes to
standard error. It ends with its parent.
"""

from __future__ import annotations

import base64
import functools
import importlib
import inspect
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from weightgym.rewards.weight_program import minatar, opaque
from weightgym.rewards.weight_program.channels import CHANNEL_MAPS, channel_masks
from weightgym.rewards.weight_program.profile import Profile


def serve(runtime: Path) -> None:
    """Answer requests until the parent closes its end."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    sys.path.insert(0, str(runtime))
    sys.pycache_prefix = str(runtime / "no such folder")  # bytecode beside the sources has no digest
    sys.dont_write_bytecode = True
    for line in sys.stdin:
        try:
            request = json.loads(line)
            answer = {"ok": _ACTIONS[request.pop("do")](**request)}
        except (Exception, SystemExit) as error:
            text = " ".join(f"{type(error).__name__}: {error}".split())
            answer = {"error": text, "traceback": traceback.format_exc()}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _end_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def cap(game: str, source: str) -> float:
    """The reward cap that the snapshot declares."""
    return float(_verify().score_cap(game, source))


def published(game: str, source: str, answer: str, episodes: int) -> dict[str, Any]:
    """What the snapshot's own scorer says. An answer that it can't read is ``{"invalid": why}``."""
    verify = _verify()
    try:
        weights, edits = verify.apply_edits(answer)
    except (OSError, ImportError, MemoryError):
        raise  # this machine is at fault, not the answer
    except Exception as error:  # its way to say that the answer is invalid; which kinds it raises is not documented
        return {"invalid": " ".join(f"{type(error).__name__}: {error}".split())}
    if source == "original":
        minatar.environment(game, sticky=0.1)  # imports the right version quietly, or says what is missing
    score, length = verify.evaluate(game, source, weights, episodes)
    return {
        "raw_score": float(score),
        "mean_length": float(length),
        "cap": cap(game, source),
        "edits": int(edits),
        "numpy": np.__version__,
    }


def native(game: str, source: str, weights: str, first: int, count: int, profile: dict[str, Any]) -> dict[str, Any]:
    """Scores and lengths of the game's own class on our loop and policy."""
    from weightgym.rewards.weight_program import _engine

    make, may_pool = _game(game, source)
    flat = np.frombuffer(base64.b64decode(weights), np.float32)
    rules = Profile(**profile)
    with opaque.pooled(make) if may_pool else nullcontext(opaque.start(make)) as begin:
        scores, lengths = opaque.play(_engine, begin, channel_masks(game), flat, rules, first=first, count=count)
    return {"scores": scores.tolist(), "lengths": lengths.tolist(), "pooled": may_pool}


_ACTIONS: dict[str, Callable[..., Any]] = {"cap": cap, "published": published, "native": native}


@functools.cache
def _verify() -> Any:
    return importlib.import_module("verify")


@functools.cache
def _game(game: str, source: str) -> tuple[opaque.Make, bool]:
    """How to make the game, and whether it may reuse random generators."""
    if source == "original" and game in CHANNEL_MAPS:
        minatar.environment(game, sticky=0.1)  # imports MinAtar, or says what is missing
        module = importlib.import_module(f"minatar.environments.{game}")
    else:
        module = importlib.import_module(f"minatar_synth.games.{game}")
    env = getattr(module, "Env", None)
    lacking = [name for name in ("reset", "act", "state") if not callable(getattr(env, name, None))]
    if env is None or lacking:
        what = "no class Env" if env is None else f"an Env without {', '.join(lacking)}"
        raise TypeError(f"{module.__file__} has {what}: use --scorer snapshot for this game")
    options = {"ramping": False} if "ramping" in inspect.signature(env).parameters else {}

    def make() -> Any:
        return env(**options)

    return make, opaque.may_pool(make)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))

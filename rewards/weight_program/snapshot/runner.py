"""What runs in the sandbox: the phase ``serve``, which answers questions.

It imports the standard library and numpy, and the files that ``process.py`` names; never weightgym. Whatever it says is
untrusted, because the snapshot's code shares its process. Every question starts from freshly imported modules, so that
no result depends on what was played before.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import os
import random
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

#: What ``apply_edits`` may raise because of the answer. MemoryError: Python's parser, on deep nesting.
_ANSWERS_FAULT = (SyntaxError, ValueError, TypeError, LookupError, ArithmeticError, RecursionError, MemoryError)
_GOOD_ANSWER = "```edits\nb1[0] = 1.0\n```"
_TEXT, _TRACEBACK = 1000, 8000  # characters

#: The folder of the snapshot's code, and our own modules.
_here = SimpleNamespace()


def prepare() -> None:
    """Import all that is not the snapshot's."""
    parts = json.loads(os.environ["SNAPSHOT_PARTS"])
    _here.runtime = Path(parts["runtime"])
    _here.sources, _here.opaque = _load("sources", parts["sources"]), _load("opaque", parts["opaque"])
    _here.engine = _load("_engine", parts["engine"]) if "engine" in parts else None
    if "minatar" in parts:
        sys.path.append(os.path.dirname(parts["minatar"]))
        with _load("no_plotting", parts["no_plotting"]).no_plotting():
            importlib.import_module("minatar.environment")


def serve(port: Any) -> None:
    """Answer questions (``do`` names the function), with the ``number`` of each, until the parent has no more."""
    os.chdir(_here.runtime)
    _here.sources.install(_here.runtime)
    functions: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
        "cap": _cap,
        "published": _published,
        "native": partial(_native, port.Tensor),
    }
    while True:
        try:
            asked = port.receive()
        except EOFError:
            return
        try:
            reply = functions[asked["do"]](asked)
        except BaseException as error:
            text = " ".join(f"{type(error).__name__}: {error}".split())[:_TEXT]
            reply = {"error": _sendable(text), "traceback": _sendable(traceback.format_exc()[-_TRACEBACK:])}
        port.send({"number": asked["number"], **reply})


def _cap(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The reward cap that the snapshot declares."""
    return {"cap": float(_fresh("verify").score_cap(asked["game"], asked["source"]))}


def _published(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What the snapshot's own scorer says. An answer that it can't read is ``invalid``."""
    game, source = asked["game"], asked["source"]
    verify = _fresh("verify")
    verify.apply_edits(_GOOD_ANSWER)  # if it can't read this, no answer is at fault
    try:
        edited = verify.apply_edits(bytes(asked["answer"]).decode("utf-8", "surrogatepass"))
    except Exception as error:
        if isinstance(error, _ANSWERS_FAULT) or type(error).__module__ == "verify":
            return {"invalid": _sendable(f"{type(error).__name__}: {error}"[:_TEXT])}
        raise
    weights, edits = edited
    score, length = verify.evaluate(game, source, weights, asked["episodes"])
    declared = verify.score_cap(game, source)
    return {"raw_score": float(score), "mean_length": float(length), "cap": float(declared), "edits": float(edits)}


def _native(tensor: Any, asked: Mapping[str, Any]) -> dict[str, Any]:
    """A synthetic game's own class on our loop and policy.

    Episodes ``first`` to ``first + count - 1``, with a fresh import before each ``chunk`` of them.
    ``pool``: whether the game may reuse random generators; to be tested if it is neither 0 nor 1.
    """
    if _here.engine is None:
        raise ImportError("the compiled engine is not there, which plays the snapshot's games: use --scorer snapshot")
    game, first, count, opaque = asked["game"], asked["first"], asked["count"], _here.opaque
    pool = asked["pool"] if asked["pool"] in (0, 1) else int(opaque.may_pool(_make(game)))
    weights = np.frombuffer(asked["weights"], np.float32)
    profile = SimpleNamespace(**{name: asked[name] for name in ("env_seed", "action_seed", "sticky", "max_actions")})
    scores, lengths = [], []
    for start in range(first, first + count, asked["chunk"]):
        make = _make(game)
        length = min(asked["chunk"], first + count - start)
        with opaque.pooled(make) if pool else nullcontext(opaque.start(make)) as begin:
            played = opaque.play(_here.engine, begin, asked["masks"], weights, profile, first=start, count=length)
        scores.append(played[0].tobytes())
        lengths.append(played[1].tobytes())
    return {
        "scores": tensor("float64", (count,), b"".join(scores)),
        "lengths": tensor("int32", (count,), b"".join(lengths)),
        "pool": pool,
    }


def _make(game: str) -> Callable[[], Any]:
    """How to make the game."""
    module = _fresh(f"minatar_synth.games.{game}")
    env = getattr(module, "Env", None)
    lacking = [name for name in ("reset", "act", "state") if not callable(getattr(env, name, None))]
    if env is None or lacking:
        what = "no class Env" if env is None else f"an Env without {', '.join(lacking)}"
        raise TypeError(f"{game}.py has {what}: use --scorer snapshot for this game")
    options = {"ramping": False} if "ramping" in inspect.signature(env).parameters else {}

    def make() -> Any:
        return env(**options)

    return make


def _fresh(name: str) -> Any:
    random.seed(0)
    np.random.seed(0)
    return _here.sources.fresh(name, _here.runtime)


def _sendable(text: str) -> str:
    """Without lone surrogates, which no frame holds."""
    return text.encode("utf-8", "backslashreplace").decode()


def _load(name: str, path: str) -> Any:
    """A file as a module that nobody else can import: a helper of the snapshot may have the same name."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

"""Policies without a model: they show that an environment, a scorer and a store do what they should."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from weightgym.envs.registry import suggest
from weightgym.rewards.contracts import BackendError, sha256_hex
from weightgym.rollouts.backend import Request, Sample, Sampling
from weightgym.rollouts.backends import BackendOptions

#: Task and seed → what is written. The name is the policy's.
Script = Callable[[Request], str]


def empty(request: Request) -> str:
    """Nothing: no answer, no tool call."""
    return ""


def garbage(request: Request) -> str:
    """Text that no environment can read, different for every seed."""
    return f"?{sha256_hex(f'{request.id} {request.seed}')}"


def echo(request: Request) -> str:
    """The prompt itself: a scorer must not find an answer in it."""
    return str(request.messages[-1]["content"])


SCRIPTS: Mapping[str, Script] = {"empty": empty, "garbage": garbage, "echo": echo}


class ScriptedBackend:
    """Writes what a function says."""

    tokenizer = None
    batch_size = 64
    lanes = 1
    context = None

    def __init__(self, name: str, script: Script) -> None:
        self.name = f"scripted:{name}"
        self._script = script

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Sample]:
        """The script's text for each request."""
        return [Sample(request.id, self._script(request), "stop") for request in requests]

    def sync(self, weights: Iterable[tuple[str, Any]], version: int) -> None:
        """A script has no weights."""
        raise BackendError(f"{self.name} has no weights to sync")

    def close(self) -> None:
        """Nothing is held."""


def open_backend(name: str, options: BackendOptions) -> ScriptedBackend:
    """For ``backends.open_backend``.

    Raises:
        BackendError: there is no script of that name.
    """
    if name not in SCRIPTS:
        raise BackendError(f"no script {name!r}{suggest(name, SCRIPTS)}")
    return ScriptedBackend(name, SCRIPTS[name])

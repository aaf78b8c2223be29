"""Policies without a model: they show that an environment, a scorer and a store do what they should.

An environment may bring its own (``EnvSpec.agents``): functions of the task, the conversation so far and a seed that
give the next assistant message.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from weightgym.envs import registry
from weightgym.rewards.contracts import BackendError, sha256_hex
from weightgym.rewards.suggest import suggest
from weightgym.rollouts.backend import Request, Sample, Sampling
from weightgym.rollouts.backends import BackendOptions
from weightgym.rollouts.jobs import sample_index

#: What is written: text, or an assistant message with ``tool_calls``.
Said = str | Mapping[str, Any]
#: Task and seed → what is written. The name is the policy's.
Script = Callable[[Request], Said]


def empty(request: Request) -> str:
    """Nothing: no answer, no tool call."""
    return ""


def garbage(request: Request) -> str:
    """Text that no environment can read, different for every seed."""
    return f"?{sha256_hex(f'{request.id} {request.seed}')}"


def echo(request: Request) -> str:
    """The prompt itself: a scorer must not find an answer in it."""
    return str(request.messages[-1]["content"])


def answers(folder: Path) -> Callable[[Request], str]:
    """The files of a folder as answers, in the order of their names: sample n of a task gets file n, and in its further
    turns the files after it, round and round. What ends in ``.py`` is put into a ```python block.

    Raises:
        BackendError: there is no file, or one can't be read as UTF-8.
    """
    paths = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    texts = [_answer(path) for path in paths]
    if not texts:
        raise BackendError(f"{folder} holds no files of answers")

    def script(request: Request) -> str:
        said = [sum(one["role"] == "assistant" for one in of) for of in (request.messages, request.task.messages)]
        turn: int = said[0] - said[1]
        return texts[(max(0, sample_index(request.id)) + turn) % len(texts)]

    return script


def _answer(path: Path) -> str:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BackendError(f"can't read the answer {path}: {error}") from error
    if path.suffix != ".py":
        return text
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}python\n{text}\n{fence}\n"


SCRIPTS: Mapping[str, Script] = {"empty": empty, "garbage": garbage, "echo": echo}


def agents(name: str) -> Script | None:
    """The agent of that name, of each environment that has one; None: none has. Its seed is the rollout's name, the
    same in all turns."""
    playing = {
        spec.name: found[name]
        for spec in registry.all_specs()
        if spec.agents and name in (found := registry.load(spec.agents))
    }

    def script(request: Request) -> Said:
        if (agent := playing.get(request.task.env)) is None:
            raise BackendError(f"scripted:{name} plays {', '.join(playing)}, not {request.task.env}")
        message: Mapping[str, Any] = agent(request.task, request.messages, request.id)
        return message

    return script if playing else None


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
        """What the script says to each request."""
        return [_sample(request.id, self._script(request)) for request in requests]

    def sync(self, weights: Iterable[tuple[str, Any]], version: int) -> None:
        """A script has no weights."""
        raise BackendError(f"{self.name} has no weights to sync")

    def close(self) -> None:
        """Nothing is held."""


def _sample(id: str, said: Said) -> Sample:
    if isinstance(said, str):
        return Sample(id, said, "stop")
    return Sample(id, said.get("content") or "", "stop", tool_calls=tuple(said.get("tool_calls") or ()))


def open_backend(name: str, options: BackendOptions) -> ScriptedBackend:
    """For ``backends.open_backend``.

    Raises:
        BackendError: there is no script of that name and no such folder, or the folder holds no answers.
    """
    if name in SCRIPTS:
        return ScriptedBackend(name, SCRIPTS[name])
    if Path(name).is_dir():
        return ScriptedBackend(name, answers(Path(name)))
    if (script := agents(name)) is not None:
        return ScriptedBackend(name, script)
    known = [*SCRIPTS, *(one for spec in registry.all_specs() if spec.agents for one in registry.load(spec.agents))]
    raise BackendError(f"no script {name!r}{suggest(name, known)} (or name a folder of answers)")

"""Helpers of tests: the commands and the env server of the verifiers that is installed here, and what they write."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import verifiers
import verifiers.v1 as vf
from openai_server import Reply, Seen, Server, serve
from verifiers.v1.clients import ModelContext
from verifiers.v1.utils.loaders import load_environment, resolve_env_config

OLD = verifiers.__version__.startswith("0.3.")
BIN = Path(sys.executable).parent


def command(name: str, *arguments: str, cwd: Path) -> str:
    """What ``eval`` or ``validate`` prints; it must succeed."""
    run = [str(BIN / (name if OLD else f"vf-{name}")), *arguments, "--no-rich"]
    done = subprocess.run(run, cwd=cwd, capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def saved(folder: Path) -> list[dict[str, Any]]:
    """The episodes that a run has saved."""
    return [json.loads(line) for line in (folder / "traces.jsonl").read_text("utf-8").splitlines()]


def config(taskset: str, *ids: str, env: dict[str, Any] | None = None, **fields: Any) -> vf.EnvConfig:
    """The config of an environment, for these tasks."""
    return resolve_env_config({"taskset": {"id": taskset, "task_ids": list(ids), **fields}, **(env or {})})


def episode(config: vf.EnvConfig, script: Callable[[int, Seen], Reply]) -> tuple[Any, Server]:
    """One episode of the config's first task, and the server that played the model."""

    async def play(url: str) -> Any:
        env = load_environment(config)
        context = ModelContext(
            model="m", client=vf.EvalClientConfig(base_url=url, api_key_var="NO_KEY"), sampling=vf.SamplingConfig()
        )
        async with env.serving():
            (slot,) = env.slots(next(iter(env.taskset)))
            return await env.run_slot(slot, context)

    with serve(script) as server:
        return asyncio.run(play(server.url)), server


def errors(played: Any) -> list[tuple[str, str]]:
    """All errors of an episode and its traces."""
    found = [*played.errors, *(error for trace in played.traces for error in trace.errors)]
    return [(error.type, error.message) for error in found]


def call(name: str, arguments: Any, id: str = "c1") -> dict[str, Any]:
    """A tool call, its arguments as JSON text or as they are."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": id, "type": "function", "function": {"name": name, "arguments": text}}


def roles(messages: Sequence[Any]) -> str:
    """The first letters of the messages' roles."""
    return "".join((message["role"] if isinstance(message, dict) else message.role)[0] for message in messages)


def completion(trace: Any) -> list[dict[str, Any]]:
    """What the model said, and what it was told, as ``weightgym score`` takes it."""
    from weightgym.rollouts.hub.completion import completion_of

    found = completion_of(trace, several_turns=True)
    assert isinstance(found, list)
    return found

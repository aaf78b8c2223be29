"""Helper of tests: an env server in a process of its own, and a client that samples as a trainer does."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import verifiers.v1 as vf
from renderers import Qwen3RendererConfig
from verifiers.v1.serve import EnvClient, env_config_data, serve_env
from verifiers.v1.utils.loaders import load_taskset


@contextmanager
def served(found: vf.EnvConfig) -> Iterator[str]:
    """The address of a server that runs the environment's episodes."""
    context = multiprocessing.get_context("spawn")
    addresses: Any = context.Queue()
    kwargs = {"max_workers": 1, "address": "tcp://127.0.0.1:0", "address_queue": addresses}
    process = context.Process(target=serve_env, kwargs=kwargs | {"config_data": env_config_data(found)})
    process.start()
    try:
        yield addresses.get(timeout=120)
    finally:
        process.terminate()
        process.join(20)
        assert process.exitcode == 0


def rollout(
    found: vf.EnvConfig, url: str, model: str, *, tasks: int = 1, thinks: bool = True, max_tokens: int = 200
) -> list[Any]:
    """Episodes of the first tasks, sampled as a trainer samples."""

    async def play(address: str) -> list[Any]:
        client = EnvClient(address)
        renderer = Qwen3RendererConfig(enable_thinking=thinks)
        train = vf.TrainClientConfig(base_url=url, api_key_var="NO_KEY", renderer=renderer, renderer_model_name=model)
        rows = [task.data.model_dump(mode="json") for task in load_taskset(found.taskset)][:tasks]
        sampling = vf.SamplingConfig(temperature=1.0, max_tokens=max_tokens)
        try:
            await client.wait_for_server_startup(120)
            return list(await asyncio.gather(*(client.run(train, "m", sampling, row) for row in rows)))
        finally:
            await client.close()

    with served(found) as address:
        return asyncio.run(play(address))

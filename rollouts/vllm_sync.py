"""New weights into running vLLM servers by vLLM's routes: pause, update, version, empty cache, resume.

Only the routes are used: vLLM's classes for trainers change from release to release.
"""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from weightgym.rewards.contracts import BackendError
from weightgym.rollouts.vllm_client import VLLMClient
from weightgym.rollouts.vllm_plugin import TRANSFER

Weights = Sequence[tuple[str, Any]]

#: How to start a server that takes weights.
START = f'VLLM_SERVER_DEV_MODE=1 and --weight-transfer-config \'{{"backend": "{TRANSFER}"}}\', with weightgym installed'


class Transfer(Protocol):
    """The trainer's side of what ``vllm_transfer`` does in the workers."""

    def send(self, servers: Sequence[VLLMClient], weights: Weights, what: str) -> None:
        """Have each server load the weights.

        Raises:
            BackendError: it broke off before any did.
        TornUpdate: one could not; the others may have.
        """

    def close(self) -> None:
        """Give back what it holds."""


class FileTransfer:
    """Weights in a safetensors file, in memory where the machine has /dev/shm. Servers must run on the same machine."""

    def send(self, servers: Sequence[VLLMClient], weights: Weights, what: str) -> None:
        """Write the file, let all servers read it, remove it."""
        from safetensors.torch import save_file

        folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()
        path = Path(folder) / f"weightgym-{uuid.uuid4().hex}.safetensors"
        try:
            path.touch(mode=0o600)
            try:
                save_file({name: weight.cpu().contiguous() for name, weight in weights}, path)
            except Exception as error:  # safetensors has its own for a full disk
                raise BackendError(f"{what}: can't write {path}: {error}") from error
            body = {"update_info": {"path": str(path)}}
            _load(servers, lambda server: server.post("/update_weights", body, what))
        finally:
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """Nothing is held."""


class GlooTransfer:
    """Weights broadcast over TCP: the trainer is rank 0 of a group with all workers of all servers."""

    def __init__(self, timeout: float) -> None:
        self._timeout = min(timeout, 120.0)  # of one tensor
        self._group: Any = None

    def send(self, servers: Sequence[VLLMClient], weights: Weights, what: str) -> None:
        """Broadcast the tensors while the servers receive."""
        if self._group is None:
            self._group = self._meet(servers, what)
        tensors = [(name, weight.cpu().contiguous()) for name, weight in weights]
        info = {
            "names": [name for name, _ in tensors],
            "dtypes": [str(weight.dtype).removeprefix("torch.") for _, weight in tensors],
            "shapes": [list(weight.shape) for _, weight in tensors],
        }

        def broadcast() -> None:
            for _, weight in tensors:
                self._group.broadcast(weight, 0).wait()

        try:
            _load(servers, lambda server: server.post("/update_weights", {"update_info": info}, what), broadcast)
        except BaseException:
            self._group = None  # it may be out of step: meet again
            raise

    def _meet(self, servers: Sequence[VLLMClient], what: str) -> Any:
        from weightgym.rollouts.vllm_gloo import join

        sizes = [int(server.get("/get_world_size", what)["world_size"]) for server in servers]
        first = {server.url: 1 + sum(sizes[:index]) for index, server in enumerate(servers)}
        host, port = _own_address(servers[0].url)
        shared = {"host": host, "port": port, "world_size": 1 + sum(sizes), "timeout": self._timeout}
        group: Future[Any] = Future()

        def init(server: VLLMClient) -> None:
            body = {"init_info": shared | {"first_rank": first[server.url]}}
            server.post("/init_weight_transfer_engine", body, what)

        def meet() -> None:
            group.set_result(join(host, port, 0, 1 + sum(sizes), timedelta(seconds=self._timeout)))

        each(servers, init, meet)
        return group.result(0)

    def close(self) -> None:
        """Leave the group."""
        self._group = None


def update(servers: Sequence[VLLMClient], transfer: Transfer, weights: Weights, version: int, what: str) -> None:
    """Change the weights of all servers. Requests on the way are held, and go on with the new weights from the start.

    Raises:
        BackendError: a server does not offer this, or failed before it could change.
        TornUpdate: it went wrong later.
    """
    for server in servers:
        if not server.has("/is_paused"):
            raise BackendError(f"{what}: {server.url} takes no weights: start it with {START}")
    try:
        each(servers, lambda server: server.post("/pause?mode=keep&clear_cache=false", None, what))
        each(servers, lambda server: _begin(server, what))
        transfer.send(servers, weights, what)
        _load(servers, lambda server: _finish(server, version, what))
    except BaseException:
        with contextlib.suppress(BackendError):  # what went wrong before says more
            each(servers, lambda server: server.post("/resume", None, what))
        raise
    each(servers, lambda server: server.post("/resume", None, what))


class TornUpdate(BackendError):
    """An update broke off: servers may have different weights."""


def _load(
    servers: Sequence[VLLMClient], act: Callable[[VLLMClient], Any], beside: Callable[[], Any] | None = None
) -> None:
    """See ``each``; from here on nobody knows which weights a server has if it goes wrong."""
    try:
        each(servers, act, beside)
    except BackendError as error:
        raise TornUpdate(str(error)) from error


def _begin(server: VLLMClient, what: str) -> None:
    try:
        server.post("/start_weight_update", {}, what)
    except BackendError:  # a trainer that was killed may have left an update open
        with contextlib.suppress(BackendError):
            server.post("/finish_weight_update", {}, what)
        server.post("/start_weight_update", {}, what)


def _finish(server: VLLMClient, version: int, what: str) -> None:
    server.post("/finish_weight_update", {"weight_version": str(version)}, what)
    # what is cached was computed with the old weights; requests that are held would keep their part of it
    if server.post("/reset_prefix_cache?reset_running_requests=true", None, what).get("success") is False:
        raise BackendError(f"{what}: {server.url} keeps its cache of the old weights")


def each(
    servers: Sequence[VLLMClient], act: Callable[[VLLMClient], Any], beside: Callable[[], Any] | None = None
) -> None:
    """``act`` on all servers at once, and ``beside`` at the same time.

    Raises:
        BackendError: the first server's that failed, after all have answered.
    """
    with ThreadPoolExecutor(len(servers)) as pool:
        futures = [pool.submit(act, server) for server in servers]
        broken: list[BaseException] = []
        if beside is not None:
            try:
                beside()
            except Exception as error:
                broken.append(BackendError(f"the group of trainer and servers broke: {error}"))
        failed = [found for future in futures if (found := future.exception())]
    if failed or broken:  # what a server says comes first: it says more
        raise (failed + broken)[0]


def _own_address(url: str) -> tuple[str, int]:
    """An address of this machine that the server at ``url`` can reach, and a free port."""
    host = urlsplit(url).hostname or "127.0.0.1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, 9))  # sends nothing
        own = str(probe.getsockname()[0])
    with socket.socket() as held:
        held.bind((own, 0))
        return own, int(held.getsockname()[1])

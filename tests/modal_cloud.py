"""A control plane that Modal's real client talks to, on this machine: what it is asked for is kept, and a container is
a function of what the client mounted and typed in. No account, no network."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpclib.server
from grpclib import GRPCError, Status
from modal_proto import api_grpc, api_pb2

Stream = grpclib.server.Stream[Any, Any]
SUCCESS = api_pb2.GenericResult.GENERIC_STATUS_SUCCESS
GenericStatus = api_pb2.GenericResult.GenericStatus
_BUILDER = "2025.06"


@dataclass
class Container:
    """A container that was asked for: its definition, and the files mounted in it, by path."""

    definition: api_pb2.Sandbox
    files: dict[str, bytes]
    typed: bytes = b""
    ended: asyncio.Future[Ended] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


@dataclass
class Ended:
    """How a container ended, and what it had said."""

    stdout: bytes = b""
    stderr: bytes = b""
    exitcode: int = 0
    status: GenericStatus.ValueType = SUCCESS


#: What a container does with its standard input.
Run = Callable[[Container, bytes], Ended]


@dataclass
class Cloud:
    """What was asked for, and what is answered."""

    run: Run
    #: RPCs that fail, with the status and text they fail with.
    fail: dict[str, tuple[Status, str]] = field(default_factory=dict)
    image_status: GenericStatus.ValueType = SUCCESS
    calls: list[tuple[str, Any]] = field(default_factory=list)
    containers: list[Container] = field(default_factory=list)
    terminated: int = 0
    blobs: dict[str, bytes] = field(default_factory=dict)
    mounts: dict[str, dict[str, str]] = field(default_factory=dict)
    work: list[asyncio.Future[None]] = field(default_factory=list)

    def said(self) -> bytes:
        """All that the client sent, as bytes."""
        return b"".join(request.SerializeToString() for _, request in self.calls)

    def images(self) -> list[str]:
        """The commands of all images, in order."""
        return [
            line for name, ask in self.calls if name == "ImageGetOrCreate" for line in ask.image.dockerfile_commands
        ]

    async def answer(self, name: str, ask: Any) -> AsyncIterator[Any]:
        """The answers to one request."""
        self.calls.append((name, ask))
        if name in self.fail:
            raise GRPCError(*self.fail[name])
        handler: Callable[[Any], Awaitable[Any]] | None = getattr(self, f"_{name}", None)
        if name == "SandboxGetLogs":
            async for batch in self._logs(ask):
                yield batch
        elif handler is None:
            raise GRPCError(Status.UNIMPLEMENTED, f"this cloud knows no {name}")
        else:
            yield await handler(ask)

    async def _ClientHello(self, ask: Any) -> Any:
        return api_pb2.ClientHelloResponse(image_builder_version=_BUILDER)

    async def _EnvironmentGetOrCreate(self, ask: Any) -> Any:
        settings = api_pb2.EnvironmentSettings(image_builder_version=_BUILDER)
        metadata = api_pb2.EnvironmentMetadata(name="main", settings=settings)
        return api_pb2.EnvironmentGetOrCreateResponse(environment_id="en-1", metadata=metadata)

    async def _AppGetOrCreate(self, ask: Any) -> Any:
        return api_pb2.AppGetOrCreateResponse(app_id="ap-1")

    async def _ImageGetOrCreate(self, ask: Any) -> Any:
        digest = hashlib.sha256(ask.image.SerializeToString()).hexdigest()[:8]
        result = api_pb2.GenericResult(status=self.image_status, exception="no space" * (self.image_status != SUCCESS))
        metadata = api_pb2.ImageMetadata(image_builder_version=_BUILDER, python_version_info="Python 3.12.9")
        return api_pb2.ImageGetOrCreateResponse(image_id=f"im-{digest}", result=result, metadata=metadata)

    async def _MountBatchedCheckExistence(self, ask: Any) -> Any:
        missing = [sha for sha in ask.sha256_hex_hashes if sha not in self.blobs]
        return api_pb2.MountBatchedCheckExistenceResponse(missing_sha256_hex_hashes=missing)

    async def _MountPutFile(self, ask: Any) -> Any:
        if ask.WhichOneof("data_oneof") == "data":
            self.blobs[ask.sha256_hex] = ask.data
        return api_pb2.MountPutFileResponse(exists=ask.sha256_hex in self.blobs)

    async def _MountGetOrCreate(self, ask: Any) -> Any:
        name = f"mo-{len(self.mounts)}"
        self.mounts[name] = {file.filename: file.sha256_hex for file in ask.files}
        return api_pb2.MountGetOrCreateResponse(mount_id=name)

    async def _SandboxCreate(self, ask: Any) -> Any:
        files = {
            path: self.blobs[sha] for mount in ask.definition.mount_ids for path, sha in self.mounts[mount].items()
        }
        self.containers.append(Container(ask.definition, files))
        return api_pb2.SandboxCreateResponse(sandbox_id=f"sb-{len(self.containers)}")

    def _container(self, ask: Any) -> Container:
        return self.containers[int(ask.sandbox_id.removeprefix("sb-")) - 1]

    async def _SandboxGetTaskId(self, ask: Any) -> Any:
        return api_pb2.SandboxGetTaskIdResponse(task_id="ta-1")

    async def _SandboxStdinWrite(self, ask: Any) -> Any:
        container = self._container(ask)
        container.typed += ask.input
        if ask.eof:
            self.work.append(asyncio.ensure_future(self._work(container)))
        return api_pb2.SandboxStdinWriteResponse()

    async def _work(self, container: Container) -> None:
        try:
            ended = await asyncio.to_thread(self.run, container, container.typed)
        except Exception as error:
            ended = Ended(stderr=repr(error).encode(), exitcode=99)
        if not container.ended.done():
            container.ended.set_result(ended)

    async def _logs(self, ask: Any) -> AsyncIterator[Any]:
        ended = await asyncio.shield(self._container(ask).ended)
        text = (ended.stdout if ask.file_descriptor == api_pb2.FILE_DESCRIPTOR_STDOUT else ended.stderr).decode()
        for number, start in enumerate(range(0, len(text), 3000), 1):
            item = api_pb2.TaskLogs(data=text[start : start + 3000], file_descriptor=ask.file_descriptor)
            yield api_pb2.TaskLogsBatch(items=[item], entry_id=f"{number}-0")
        yield api_pb2.TaskLogsBatch(entry_id="end", eof=True)

    async def _SandboxWait(self, ask: Any) -> Any:
        ended = await asyncio.shield(self._container(ask).ended)
        result = api_pb2.GenericResult(status=ended.status, exitcode=ended.exitcode)
        return api_pb2.SandboxWaitResponse(result=result)

    async def _SandboxTerminate(self, ask: Any) -> Any:
        self.terminated += 1
        ended = self._container(ask).ended
        if not ended.done():
            ended.set_result(Ended(exitcode=137, status=api_pb2.GenericResult.GENERIC_STATUS_TERMINATED))
        return api_pb2.SandboxTerminateResponse()


class _Handlers:
    """The cloud as grpclib takes it: one coroutine for each method of the protocol."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def __mapping__(self) -> dict[str, Any]:
        known = type("Every", (api_grpc.ModalClientBase,), {})
        known.__abstractmethods__ = frozenset()  # type: ignore[attr-defined]
        mapping: dict[str, Any] = known().__mapping__()
        return {path: one._replace(func=self._handler(path.rsplit("/", 1)[1])) for path, one in mapping.items()}

    def _handler(self, name: str) -> Callable[[Stream], Awaitable[None]]:
        async def handle(stream: Stream) -> None:
            async for answer in self._cloud.answer(name, await stream.recv_message()):
                await stream.send_message(answer)

        return handle


@contextmanager
def serving(cloud: Cloud) -> Iterator[str]:
    """The cloud's address, while it serves."""
    loop = asyncio.new_event_loop()
    with tempfile.TemporaryDirectory() as folder:
        address = str(Path(folder) / "modal.sock")
        server: list[grpclib.server.Server] = []

        async def start() -> None:
            server.append(grpclib.server.Server([_Handlers(cloud)]))
            await server[0].start(path=address)

        async def stop() -> None:
            server[0].close()
            await server[0].wait_closed()
            left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            await loop.shutdown_default_executor()

        thread = threading.Thread(target=loop.run_forever, daemon=True)
        thread.start()
        try:
            asyncio.run_coroutine_threadsafe(start(), loop).result(30)
            yield f"unix://{address}"
        finally:
            asyncio.run_coroutine_threadsafe(stop(), loop).result(60)
            loop.call_soon_threadsafe(loop.stop)
            thread.join(30)
            loop.close()

"""The evaluator of ``golf-modal-h100x8``: the one of every profile, in a container on Modal that is rented for one
candidate.

A container is a *Modal Sandbox*, not a Modal Function. What a Function returns or raises comes back as a pickle that
Modal's client would load here, so whoever took over the container would own this machine; a Sandbox has standard input
and output. It is also started once, for one command, and never retried.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from weightgym.rewards.contracts import SandboxError
from weightgym.rewards.golf.data.corpus import Corpus
from weightgym.rewards.golf.errors import SolutionError
from weightgym.rewards.golf.modal_image import (
    APP,
    COMMAND,
    base_image,
    lifetime,
    machine,
    modal_module,
    with_streams,
    with_weightgym,
)
from weightgym.rewards.golf.modal_payload import MAX_REPLY_BYTES, Payload, Stream, StreamName, read_reply
from weightgym.rewards.golf.profile import Profile
from weightgym.rewards.golf.reading import VERSION, read, refusal, result
from weightgym.rewards.golf.report import Result
from weightgym.rewards.one_line import one_line

if TYPE_CHECKING:
    import modal

#: Seconds to build the image (the first time, torch is downloaded), and to be given a machine with eight GPUs.
BUILD_SECONDS, QUEUE_SECONDS = 45 * 60, 25 * 60
#: Beyond a container's lifetime, before we no longer believe that it ends by itself.
GRACE_SECONDS = 60
_STOP_SECONDS = 30
_CHUNK = 512 << 10
#: Lines that the container wrote on its standard error, of which the last ones explain a missing reply.
_LAST_LINES = 3


class ModalEvaluator:
    """Evaluates solutions on Modal, from any thread, as ``Evaluator`` does here. What the file itself gives away (it
    can't run, or is illegal) is told without a container.

    Args:
        profile: what is run, how long, on which machine.
        unsafe: let the solution run without a sandbox inside its container: it could forge its own result then.
        jobs: containers at work at once.

    Raises:
        SandboxError: the package ``modal`` is not installed.
    """

    def __init__(self, profile: Profile, *, unsafe: bool = False, jobs: int = 1) -> None:
        modal_module()
        self.profile = profile
        self.unsafe = unsafe
        self.jobs = jobs
        self._slots = threading.BoundedSemaphore(jobs)
        self._lock = threading.Lock()
        self._folder = tempfile.TemporaryDirectory(prefix="weightgym-")
        self._image = base_image()
        self._live: set[modal.Sandbox] = set()
        self._closed = False

    def evaluate(self, raw: bytes, corpus: Corpus) -> Result:
        """Evaluate a ``solution.py``. Every fault of the candidate is a ``buggy`` result. Not within an event loop.

        Raises:
            SandboxError: whatever else went wrong: there, here or on the way.
        """
        solution, facts = read(raw)
        if solution is None:
            return result(raw, corpus, self.profile, facts)
        payload = Payload.of(raw, self.profile, corpus, evaluator=VERSION, unsafe=self.unsafe)
        with self._slots:
            try:
                files = {name: self._file(one, getattr(corpus, name)) for name, one in payload.streams.items()}
                text = asyncio.run(self._ask(payload, files))
            except SandboxError:
                raise
            except Exception as error:
                raise SandboxError(_explained(error)) from error
        return read_reply(text, payload)

    def refused(self, error: SolutionError, corpus: Corpus, raw: bytes = b"") -> Result:
        """The result of a solution that can't be run, or of an answer without one."""
        return result(raw, corpus, self.profile, refusal(error))

    def close(self) -> None:
        """End all containers."""
        with self._lock:
            self._closed = True
            live = list(self._live)
        for box in live:
            with suppress(Exception):  # it has ended
                box.terminate()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _file(self, wanted: Stream, data: npt.NDArray[np.uint8]) -> Path:
        path = Path(self._folder.name) / wanted.sha256
        with self._lock:
            if not path.exists():
                data.tofile(path)
        return path

    async def _ask(self, payload: Payload, files: Mapping[StreamName, Path]) -> bytes:
        api = modal_module()
        async with _within(BUILD_SECONDS, "Modal did not build the image"):
            app = await api.App.lookup.aio(APP, create_if_missing=True)
            built = await self._image.build.aio(app)
        image = with_streams(with_weightgym(built), files)
        async with _within(QUEUE_SECONDS, "Modal had no machine for us"):
            box = await api.Sandbox.create.aio(*COMMAND, app=app, image=image, **machine(self.profile))
        with self._lock:
            self._live.add(box)
            closed = self._closed
        try:
            if closed:
                raise SandboxError("the evaluator was closed while Modal found a machine")
            async with _within(lifetime(self.profile) + GRACE_SECONDS, "the container on Modal did not end"):
                return await _talk(box, payload.encode())
        finally:
            with self._lock:
                self._live.discard(box)
            with suppress(Exception):  # it has ended
                async with asyncio.timeout(_STOP_SECONDS):
                    await box.terminate.aio()


async def _talk(box: modal.Sandbox, question: bytes) -> bytes:
    for start in range(0, len(question), _CHUNK):
        box.stdin.write(question[start : start + _CHUNK])
        await box.stdin.drain.aio()
    box.stdin.write_eof()
    await box.stdin.drain.aio()
    said, size = [], 0
    async for line in box.stdout:
        said.append(line.encode())
        size += len(said[-1])
        if size > MAX_REPLY_BYTES:
            break  # the reader of the reply says so
    else:
        await box.wait.aio(raise_on_termination=False)
        if box.returncode != 0:
            lines = deque([line async for line in box.stderr], _LAST_LINES)
            raise SandboxError(f"the container on Modal ended with code {box.returncode}: {one_line(' '.join(lines))}")
    return b"".join(said)


@asynccontextmanager
async def _within(seconds: float, otherwise: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise SandboxError(f"{otherwise} within {seconds:,.0f} seconds") from None


def _explained(error: Exception) -> str:
    faults = modal_module().exception
    if isinstance(error, faults.AuthError):
        how = "run `modal setup`, or set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET"
        return f"Modal does not know you: {how} ({one_line(str(error), 200)})"
    if isinstance(error, faults.SandboxTimeoutError):
        return "Modal ended the container, which had lived longer than it may: no phase's budget ended it before"
    return f"Modal failed: {type(error).__name__}: {one_line(str(error))}"

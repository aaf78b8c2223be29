"""What runs in the container on Modal: reads one payload, evaluates it, writes one reply. It needs no modal package.

    python -m weightgym.rewards.golf.modal_remote FOLDER < payload > reply

The solution runs in the sandbox, here as everywhere. If none can start in this container, that is the reply.
"""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from pathlib import Path

import numpy as np
import numpy.typing as npt

from weightgym.rewards.contracts import SandboxError, WeightgymError
from weightgym.rewards.golf.data.corpus import Corpus
from weightgym.rewards.golf.evaluate import Evaluator
from weightgym.rewards.golf.modal_payload import MAX_PAYLOAD_BYTES, Payload, Reply, Stream
from weightgym.rewards.golf.profile import Profile, profile
from weightgym.rewards.golf.reading import VERSION
from weightgym.rewards.golf.report import Result

_SMI_SECONDS = 60


def answer(text: bytes, folder: Path) -> bytes:
    """The reply to a payload, whose streams are in the folder: the result, or a fault of ours.

    Raises:
        SandboxError: the payload can't be read, so there is nobody to reply to.
    """
    payload = Payload.decode(text)
    try:
        return Reply(nonce=payload.nonce, result=_result(payload, folder)).encode()
    except WeightgymError as error:
        return Reply.of_fault(payload, str(error)).encode()
    except Exception as error:  # a bug of ours is not the candidate's fault either
        where = traceback.extract_tb(error.__traceback__)[-1]
        what = f"{type(error).__name__} in {Path(where.filename).name}, line {where.lineno}: {error}"
        return Reply.of_fault(payload, what).encode()


def _result(payload: Payload, folder: Path) -> Result:
    if payload.evaluator != VERSION:
        raise SandboxError(f"the container has evaluator {VERSION}; {payload.evaluator} was asked for")
    known = profile(payload.profile)
    check_gpus(known)
    streams = {name: _read(folder / name, stream) for name, stream in payload.streams.items()}
    corpus = Corpus(**streams, origin=dict(payload.origin))
    with Evaluator(known, unsafe=payload.unsafe, jobs=1) as evaluator:
        return evaluator.evaluate(payload.raw, corpus)


def check_gpus(known: Profile) -> None:
    """Look at the names of the GPUs that are here.

    Raises:
        SandboxError: they are not what the profile names.
    """
    if known.gpu_kind is None:
        return
    query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=_SMI_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise SandboxError(f"profile {known.name} takes {known.gpus} {known.gpu_kind}; nvidia-smi: {error}") from None
    names = done.stdout.splitlines()
    if len(names) != known.gpus or not all(known.gpu_kind in name.split() for name in names):
        found = ", ".join(names) or "none"
        raise SandboxError(f"profile {known.name} takes {known.gpus} {known.gpu_kind}; here are {found}")


def _read(path: Path, wanted: Stream) -> npt.NDArray[np.uint8]:
    try:
        data: npt.NDArray[np.uint8] = np.fromfile(path, dtype=np.uint8)
    except OSError as error:
        raise SandboxError(f"{path}: {error.strerror or error}") from None
    data.flags.writeable = False
    if Stream.of(data) != wanted:
        raise SandboxError(f"{path} does not hold the {wanted.size:,} bytes that were sent")
    return data


def main() -> int:
    """The command. Nothing but the reply reaches the standard output, whatever a library prints."""
    replies = os.dup(1)
    os.dup2(2, 1)
    try:
        reply = answer(sys.stdin.buffer.read(MAX_PAYLOAD_BYTES + 1), Path(sys.argv[1]))
    except SandboxError as error:
        print(error, file=sys.stderr)
        return 1
    with os.fdopen(replies, "wb") as stream:
        stream.write(reply)
    return 0


if __name__ == "__main__":
    sys.exit(main())

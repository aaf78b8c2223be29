"""Golf on Modal as tests have it: a small corpus, good replies, and a cloud for Modal's client to talk to."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import modal
import modal_cloud
import numpy as np
import pytest
from modal_cloud import Cloud, Container, Ended

from weightgym.rewards.golf.data.corpus import Corpus
from weightgym.rewards.golf.modal_payload import Payload, Reply
from weightgym.rewards.golf.profile import profile
from weightgym.rewards.golf.report import Result

MODAL = profile("golf-modal-h100x8")
SOLUTION = b"def get_config():\n    return {'model_dim': 128, 'num_layers': 2, 'train_steps': 50}\n"
BYTES = np.frombuffer(b"some text of a corpus. " * 200, np.uint8)
CORPUS = Corpus(BYTES, BYTES[:2500], BYTES[:2100], {"kind": "words"})
Connect = Callable[[Cloud], None]


@contextmanager
def connections() -> Iterator[Connect]:
    """Makes a cloud the one that Modal's client talks to."""
    # Containers without GPUs go another way by default, which ours never do.
    settings = {"TOKEN_ID": "ak-test", "TOKEN_SECRET": "as-test", "SANDBOX_V2": "0"}
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())

        def connect(cloud: Cloud) -> None:
            settings["SERVER_URL"] = stack.enter_context(modal_cloud.serving(cloud))
            for name, value in settings.items():
                patch.setenv(f"MODAL_{name}", value)
            stack.callback(disconnect, cloud)

        def disconnect(cloud: Cloud) -> None:
            if cloud.calls:  # else there is no client, and this would make one
                modal.Client.from_env().close()

        yield connect


def result(payload: Payload, **more: Any) -> Result:
    """A good result to a payload."""
    known: dict[str, Any] = {
        "status": "ok",
        "phase": "audit",
        "val_bpb": 2.5,
        "artifact_bytes": 9000,
        "source_bytes": len(payload.raw),
        "source_sha256": hashlib.sha256(payload.raw).hexdigest(),
        "profile": payload.profile,
        "evaluator": payload.evaluator,
        "corpus": payload.origin,
    }
    return Result.model_validate(known | more)


def replying(**more: Any) -> modal_cloud.Run:
    """A container that says so, whatever it was asked."""

    def run(container: Container, typed: bytes) -> Ended:
        payload = Payload.decode(typed)
        return Ended(Reply(nonce=payload.nonce, result=result(payload, **more)).encode())

    return run

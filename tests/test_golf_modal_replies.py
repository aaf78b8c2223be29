"""What is made of what comes back from Modal: one well-formed answer to this very question is a result, all else is
a fault of ours."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import golf_modal
import modal_cloud
import pytest
from golf_modal import CORPUS, MODAL, SOLUTION, Connect, replying, result
from grpclib import Status
from modal_cloud import Cloud, Container, Ended
from modal_proto import api_pb2

from weightgym.rewards.contracts import SandboxError
from weightgym.rewards.golf.modal_evaluator import ModalEvaluator
from weightgym.rewards.golf.modal_payload import Payload, Reply


@pytest.fixture
def connect() -> Iterator[Connect]:
    with golf_modal.connections() as connect:
        yield connect


def bad(change: Callable[[dict[str, Any]], object]) -> modal_cloud.Run:
    """A container whose good reply is changed before it is sent."""

    def run(container: Container, typed: bytes) -> Ended:
        payload = Payload.decode(typed)
        reply = json.loads(Reply(nonce=payload.nonce, result=result(payload)).encode())
        changed = change(reply)
        return Ended(json.dumps(reply if changed is None else changed).encode())

    return run


def set_in(*path: str, to: object) -> Callable[[dict[str, Any]], None]:
    def change(reply: dict[str, Any]) -> None:
        place = reply
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = to

    return change


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (bad(set_in("version", to=2)), "version: Input should be 1"),
        (bad(set_in("nonce", to="0" * 32)), "it answers another question"),
        (bad(set_in("extra", to=1)), "extra: Extra inputs are not permitted"),
        (bad(set_in("result", to=None)), "a reply holds a result or a fault"),
        (bad(set_in("fault", to="both")), "a reply holds a result or a fault"),
        (bad(set_in("result", "val_bpb", to=-7.2)), "needs a val_bpb from 0 to 16"),
        (bad(set_in("result", "val_bpb", to="0.1")), "val_bpb: Input should be a valid number"),
        (bad(set_in("result", "val_bpb", to=float("nan"))), "the number NaN is not finite"),
        (bad(set_in("result", "phase_s", to={"train": float("inf")})), "the number Infinity is not finite"),
        (bad(set_in("result", "status", to="great")), "result.status"),
        (bad(set_in("result", "reason", to="illegal")), "an ok result has no reason"),
        (bad(set_in("result", "profile", to="golf-cpu-v1")), "its profile is not the one"),
        (bad(set_in("result", "evaluator", to="golf-eval-0")), "its evaluator is not the one"),
        (bad(set_in("result", "corpus", to={})), "its corpus is not the one"),
        (bad(set_in("result", "source_bytes", to=1)), "its source_bytes is not the one"),
        (bad(set_in("result", "source_sha256", to="0" * 64)), "its source_sha256 is not the one"),
        (bad(set_in("result", "artifact_bytes", to=None)), "its artifact_bytes"),
        (bad(set_in("result", "artifact_bytes", to=4_000_001)), "its artifact_bytes"),
        (bad(lambda _: [1]), "Input should be an object"),
        (lambda *_: Ended(b'{"version": 1, "nonce": "'), "Unterminated string"),
        (lambda *_: Ended(b"[" * 100_000), "recursion"),
        (lambda *_: Ended(b"1e999"), "the number 1e999 is not finite"),
        (lambda *_: Ended(b"ok\n"), "Expecting value"),
        (lambda *_: Ended(b""), "nothing at all"),
        (lambda *_: Ended("é".encode() * 9), "Expecting value"),
        (lambda *_: Ended((b"x" * 1000 + b"\n") * 1100), "more than 1,048,576 bytes"),
    ],
)
def test_a_malformed_reply_is_no_result(connect: Connect, run: modal_cloud.Run, message: str) -> None:
    cloud = Cloud(run)
    connect(cloud)
    with (
        ModalEvaluator(MODAL) as evaluator,
        pytest.raises(SandboxError, match=f"reply from Modal is malformed: .*{re.escape(message)}") as caught,
    ):
        evaluator.evaluate(SOLUTION, CORPUS)
    assert "\n" not in str(caught.value)
    assert cloud.terminated == 1


def test_a_fault_in_the_container_is_ours(connect: Connect) -> None:
    def run(container: Container, typed: bytes) -> Ended:
        return Ended(Reply.of_fault(Payload.decode(typed), "no bwrap found:\ninstall \x1b[31mbubblewrap").encode())

    connect(Cloud(run))
    with (
        ModalEvaluator(MODAL) as evaluator,
        pytest.raises(SandboxError, match=r"^on Modal: no bwrap found: install \?\[31mbubblewrap$"),
    ):
        evaluator.evaluate(SOLUTION, CORPUS)


GENERIC = api_pb2.GenericResult


@pytest.mark.parametrize(
    ("ended", "message"),
    [
        (Ended(status=GENERIC.GENERIC_STATUS_TIMEOUT), "Modal ended the container, which had lived longer"),
        (Ended(status=GENERIC.GENERIC_STATUS_TERMINATED), "ended with code 137"),
        (Ended(status=GENERIC.GENERIC_STATUS_INTERNAL_FAILURE), "nothing at all"),
        (Ended(status=GENERIC.GENERIC_STATUS_KERNEL_OOM_KILL, exitcode=137), "ended with code 137"),
        (
            Ended(stderr=b"1\n2\n3\nTrace\x07back\nKeyError\n", exitcode=1),
            r"ended with code 1: 3 Trace\?back KeyError$",
        ),
    ],
)
def test_a_lost_container_is_no_result(connect: Connect, ended: Ended, message: str) -> None:
    """Not even with a timeout of Modal's own: a candidate that takes too long is told so from the inside."""
    cloud = Cloud(lambda *_: ended)
    connect(cloud)
    with ModalEvaluator(MODAL) as evaluator, pytest.raises(SandboxError, match=message):
        evaluator.evaluate(SOLUTION, CORPUS)
    assert cloud.terminated == 1


def test_a_reply_of_a_container_that_failed_does_not_count(connect: Connect) -> None:
    good = replying()
    connect(Cloud(lambda container, typed: replace(good(container, typed), exitcode=1)))
    with ModalEvaluator(MODAL) as evaluator, pytest.raises(SandboxError, match="ended with code 1"):
        evaluator.evaluate(SOLUTION, CORPUS)


@pytest.mark.parametrize(
    ("fail", "message"),
    [
        ({"AppGetOrCreate": (Status.UNAUTHENTICATED, "bad token")}, "Modal does not know you: run `modal setup`, or"),
        ({"AppGetOrCreate": (Status.PERMISSION_DENIED, "not yours")}, "PermissionDeniedError: not yours"),
        ({"SandboxCreate": (Status.RESOURCE_EXHAUSTED, "no GPUs")}, "ResourceExhaustedError: no GPUs"),
        ({"SandboxCreate": (Status.INVALID_ARGUMENT, "bad\ngpu")}, "InvalidError: bad gpu"),
        ({"SandboxStdinWrite": (Status.NOT_FOUND, "gone")}, "NotFoundError: gone"),
        ({"SandboxWait": (Status.FAILED_PRECONDITION, "odd")}, "Modal failed: .*odd"),
        ({"MountGetOrCreate": (Status.DATA_LOSS, "lost")}, "DataLossError: lost"),
    ],
)
def test_an_error_of_modal_is_one_clear_line(
    connect: Connect, fail: dict[str, tuple[Status, str]], message: str
) -> None:
    cloud = Cloud(replying(), fail=fail)
    connect(cloud)
    with ModalEvaluator(MODAL) as evaluator, pytest.raises(SandboxError, match=message) as caught:
        evaluator.evaluate(SOLUTION, CORPUS)
    assert "\n" not in str(caught.value)
    assert cloud.terminated == len(cloud.containers)


def test_an_image_that_does_not_build(connect: Connect) -> None:
    connect(Cloud(replying(), image_status=GENERIC.GENERIC_STATUS_FAILURE))
    with ModalEvaluator(MODAL) as evaluator, pytest.raises(SandboxError, match=r"ImageBuildError: .*no space"):
        evaluator.evaluate(SOLUTION, CORPUS)

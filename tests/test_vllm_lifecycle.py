"""A vLLM engine in this process: bfloat16, what it leaves alone, how it fails, and how it ends. Real vLLM on a CPU."""

from __future__ import annotations

import importlib
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import vllm_parity as parity
from transformers import AutoModelForCausalLM

from weightgym.rewards.contracts import BackendError
from weightgym.rollouts.backend import Sampling
from weightgym.rollouts.backends import BackendOptions, open_backend

pytestmark = pytest.mark.vllm

#: Mean difference of log-probabilities that bfloat16 may have.
NEAR = 0.1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return parity.save(parity.random_model(0, tied=True), tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def policy(folder: Path) -> Iterator[Any]:
    options = BackendOptions(kv_cache_gib=0.1, dtype="bfloat16", max_model_len=400, request_timeout=60)
    # The compiler of the games is often there before: vLLM must start all the same.
    assert importlib.import_module("llvmlite.binding.ffi") is sys.modules["llvmlite.binding.ffi"]
    backend: Any = open_backend(f"vllm:{folder}", options)
    yield backend
    backend.close()
    backend.close()  # once more does no harm


def test_bfloat16_takes_float32_weights(policy: Any, folder: Path) -> None:
    asked = parity.requests(4)
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    assert parity.gap(model, asked, policy.generate(asked, Sampling(40))) < NEAR
    new = parity.other(parity.load(str(folder)))
    policy.sync(new.named_parameters(), 1)
    samples = policy.generate(asked, Sampling(40))
    assert parity.gap(new, asked, samples) < NEAR
    assert parity.gap(new.to(torch.bfloat16), asked, samples) < NEAR
    assert parity.gap(model, asked, samples) > 2 * NEAR


def test_the_options_bound_the_length(policy: Any) -> None:
    (one,) = parity.requests(1)
    assert len(policy.generate([one], Sampling(270))[0].token_ids) <= 270
    with pytest.raises(BackendError, match="more than the 400 that the engine takes"):
        policy.generate([one], Sampling(271))


def test_more_tokens_at_once_than_a_step_takes(policy: Any) -> None:
    """On CPUs a seeded request whose prompt is read in parts would end the engine."""
    asked = parity.requests(40, shortest=330, step=1)
    assert sum(len(one.token_ids) for one in asked) > 8192
    assert len(policy.generate(asked, Sampling(4))) == 40


def test_torch_is_left_as_it_was(policy: Any) -> None:
    """vLLM replaces set_num_threads by a function that does nothing."""
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    assert torch.get_num_threads() == 3
    torch.set_num_threads(threads)
    assert torch.tensor([1.0], requires_grad=True).sum().requires_grad


def test_an_engine_that_dies_is_told_to_all_that_wait(policy: Any) -> None:
    """The fault is put into the real engine's step; this is the last test that uses it."""
    asked = parity.requests(3)
    found: list[Any] = []

    def lane(index: int) -> None:
        try:
            policy.generate([asked[index]], Sampling(200))
        except BackendError as error:
            found.append(str(error))

    def boom() -> None:
        raise RuntimeError("the engine core died")

    lanes = [threading.Thread(target=lane, args=(index,)) for index in range(3)]
    for thread in lanes:
        thread.start()
    policy._call(lambda engine: setattr(engine, "step", boom), "the fault")
    started = time.monotonic()
    for thread in lanes:
        thread.join(10)
    with pytest.raises(BackendError, match="r0: the engine core died"):
        policy.generate(asked, Sampling(4))
    with pytest.raises(BackendError, match="the engine core died"):
        policy.sync(parity.random_model(1, tied=True).named_parameters(), 2)
    assert time.monotonic() - started < 5
    assert sorted(found) == [f"{policy.name}: r{index}: the engine core died" for index in range(3)]


def test_what_can_not_start(folder: Path, policy: Any, tmp_path: Path) -> None:
    policy.close()
    with pytest.raises(BackendError, match=r"vLLM can't start: .*max_model_len \(100000\)"):
        open_backend(f"vllm:{folder}", BackendOptions(kv_cache_gib=0.1, max_model_len=100_000))
    with pytest.raises(BackendError, match=r"can't load the tokenizer of '.*/nothing'"):
        open_backend(f"vllm:{tmp_path}/nothing")
    backend: Any = open_backend(f"vllm:{folder}", BackendOptions(kv_cache_gib=0.1))  # the failed ones hold nothing
    (one,) = parity.requests(1)
    running: list[Any] = []

    def generate() -> None:
        try:
            backend.generate([one], Sampling(300))
        except BackendError as error:
            running.append(str(error))

    thread = threading.Thread(target=generate)
    thread.start()
    started = time.monotonic()
    backend.close()
    assert time.monotonic() - started < 5
    thread.join(5)
    assert not thread.is_alive(), "it waits for an engine that is closed"
    assert running in ([], [f"vllm:{folder}: r0: vllm:{folder} is closed"])

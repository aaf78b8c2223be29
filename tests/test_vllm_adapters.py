"""LoRA adapters that are swapped while vLLM runs: parity with transformers and peft. Real vLLM on a CPU."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import vllm_parity as parity

from weightgym.rewards.contracts import BackendError
from weightgym.rollouts.backend import Sampling
from weightgym.rollouts.backends import BackendOptions, open_backend

pytestmark = pytest.mark.vllm

TARGETS = ["q_proj", "v_proj", "down_proj"]


def adapted(model: Any, folder: Path, *, seed: int, rank: int = 4) -> Any:
    """The model with random adapters, in transformers; the adapters are saved to ``folder``."""
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(seed)
    config = LoraConfig(r=rank, lora_alpha=8, target_modules=TARGETS, init_lora_weights=False)
    made: Any = get_peft_model(model, config).eval()
    made.save_pretrained(folder)
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return parity.save(parity.random_model(0, tied=True), tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def policy(folder: Path) -> Iterator[Any]:
    backend: Any = open_backend(f"vllm:{folder}", BackendOptions(kv_cache_gib=0.1, lora_rank=4, request_timeout=60))
    yield backend
    backend.close()


def test_adapters_are_swapped(policy: Any, folder: Path, tmp_path: Path) -> None:
    """Without one, with one, with another, on the same prompts: what is cached of one is not used for another."""
    asked, plain = parity.requests(4), parity.load(str(folder))
    samples = policy.generate(asked, Sampling(20))
    assert parity.gap(plain, asked, samples) < parity.CLOSE
    for version in (1, 2, 3, 4):
        model = adapted(parity.load(str(folder)), tmp_path / f"adapter-{version}", seed=version)
        policy.sync_adapter(tmp_path / f"adapter-{version}", version)
        samples = policy.generate(asked, Sampling(20))
        assert {sample.version for sample in samples} == {version}
        assert parity.gap(model, asked, samples) < parity.CLOSE
        assert parity.gap(plain, asked, samples) > 10 * parity.CLOSE


def test_the_same_folder_again(policy: Any, folder: Path, tmp_path: Path) -> None:
    """A trainer may write each version over the last."""
    asked = parity.requests(3, seed=1)
    for version in (5, 6):
        model = adapted(parity.load(str(folder)), tmp_path / "adapter", seed=version)
        policy.sync_adapter(tmp_path / "adapter", version)
        assert parity.gap(model, asked, policy.generate(asked, Sampling(20))) < parity.CLOSE


def test_what_runs_keeps_its_adapter(policy: Any, folder: Path, tmp_path: Path) -> None:
    asked, models = parity.requests(12, step=5), []
    for version in (7, 8):
        models.append(adapted(parity.load(str(folder)), tmp_path / f"adapter-{version}", seed=version))
    policy.sync_adapter(tmp_path / "adapter-7", 7)
    running: list[Any] = []
    thread = threading.Thread(target=lambda: running.extend(policy.generate(asked, Sampling(250))))
    thread.start()
    policy.sync_adapter(tmp_path / "adapter-8", 8)
    after = policy.generate(asked, Sampling(20))
    thread.join(60)
    assert {sample.version for sample in after} == {8}
    assert parity.gap(models[1], asked, after) < parity.CLOSE
    (version,) = {sample.version for sample in running}  # that of all: they came before the swap or after it
    assert parity.gap(models[version - 7], asked, running) < parity.CLOSE


def test_a_bad_adapter_leaves_the_old_one(policy: Any, folder: Path, tmp_path: Path) -> None:
    asked = parity.requests(2)
    model = adapted(parity.load(str(folder)), tmp_path / "good", seed=9)
    policy.sync_adapter(tmp_path / "good", 9)
    adapted(parity.load(str(folder)), tmp_path / "large", seed=9, rank=64)
    for bad in (tmp_path / "large", tmp_path / "nothing"):
        with pytest.raises(BackendError, match=f"adapter {bad}: .+"):
            policy.sync_adapter(bad, 10)
    samples = policy.generate(asked, Sampling(20))
    assert {sample.version for sample in samples} == {9}
    assert parity.gap(model, asked, samples) < parity.CLOSE


def test_the_base_model_may_change_below_an_adapter(policy: Any, folder: Path, tmp_path: Path) -> None:
    asked = parity.requests(2)
    new = parity.other(parity.load(str(folder)))
    policy.sync(new.named_parameters(), 11)
    model = adapted(new, tmp_path / "adapter", seed=12)
    policy.sync_adapter(tmp_path / "adapter", 12)
    assert parity.gap(model, asked, policy.generate(asked, Sampling(20))) < parity.CLOSE

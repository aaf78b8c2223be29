"""vLLM in this process against transformers: the same distribution, seeds, weights that change. Real vLLM on a CPU."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
import vllm_parity as parity

from weightgym.rewards.contracts import BackendError
from weightgym.rollouts.backend import Sampling
from weightgym.rollouts.backends import BackendOptions, open_backend

pytestmark = pytest.mark.vllm

MODELS = ("tiny-writer", "tied", "untied")


@pytest.fixture(scope="module", params=MODELS)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any]]:
    """(backend, the same model in transformers)."""
    name = str(request.param)
    if name != "tiny-writer":
        model = parity.random_model(0, tied=name == "tied")
        name = str(parity.save(model, tmp_path_factory.mktemp(name)))
    backend: Any = open_backend(f"vllm:{name}", BackendOptions(kv_cache_gib=0.1, request_timeout=60))
    yield backend, parity.load(name)
    started = time.monotonic()
    backend.close()
    assert time.monotonic() - started < 5


@pytest.fixture
def policy(case: tuple[Any, Any]) -> Iterator[Any]:
    """The backend; afterwards it has the weights that it began with."""
    backend, model = case
    yield backend
    if backend.version:
        backend.sync(model.named_parameters(), 0)


@pytest.fixture
def model(case: tuple[Any, Any]) -> Any:
    return case[1]


def wait_until(true: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0])
def test_logprobs_are_those_of_transformers(policy: Any, model: Any, temperature: float) -> None:
    asked = parity.requests()
    samples = policy.generate(asked, Sampling(40, temperature))
    assert [sample.id for sample in samples] == [one.id for one in asked]
    assert parity.gap(model, asked, samples, temperature) < parity.CLOSE
    if not temperature:
        for one, sample in zip(asked, samples, strict=True):
            with torch.inference_mode():
                logits = model(torch.tensor([one.token_ids + sample.token_ids])).logits[0]
            assert logits[len(one.token_ids) - 1 : -1].argmax(-1).tolist() == list(sample.token_ids)


def test_the_end_is_kept_with_its_logprob(policy: Any, model: Any) -> None:
    (end,) = policy.tokenizer.end_ids
    asked = parity.requests(64, step=1)
    samples = policy.generate(asked, Sampling(200))
    finished = [sample for sample in samples if sample.finish_reason == "stop"]
    assert finished
    for sample in samples:
        assert (sample.token_ids[-1] == end) == (sample.finish_reason == "stop")
        assert end not in sample.token_ids[:-1]
        assert len(sample.token_ids) == len(sample.logprobs)
        assert len(sample.token_ids) == 200 or sample.finish_reason == "stop"
        assert sample.content == policy.tokenizer.text(sample.token_ids)
    assert parity.gap(model, asked, samples) < parity.CLOSE


def test_a_sample_depends_on_its_seed_and_not_on_its_neighbours(policy: Any) -> None:
    asked = parity.requests(8, step=5)
    together = policy.generate(asked, Sampling(24))
    assert [one.token_ids for one in policy.generate(asked, Sampling(24))] == [one.token_ids for one in together]
    backwards = policy.generate(asked[::-1], Sampling(24))[::-1]
    for one, sample, again in zip(asked, together, backwards, strict=True):
        (alone,) = policy.generate([one], Sampling(24))
        assert alone.token_ids == sample.token_ids == again.token_ids
        assert np.abs(np.array(alone.logprobs) - sample.logprobs).max() < 1e-3


def test_many_lanes_run_at_once(policy: Any) -> None:
    asked = parity.requests(12, step=5)
    wanted = policy.generate(asked, Sampling(24))
    got: dict[int, Any] = {}

    def lane(index: int) -> None:
        (got[index],) = policy.generate([asked[index]], Sampling(24))

    threads = [threading.Thread(target=lane, args=(index,)) for index in range(len(asked))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [got[index].token_ids for index in range(len(asked))] == [sample.token_ids for sample in wanted]


def test_new_weights_and_no_stale_cache(policy: Any, model: Any) -> None:
    """The second generation has a prompt that is cached: with the old keys and values the difference would be large."""
    asked = parity.requests(3)
    policy.generate(asked, Sampling(20))
    new = parity.other(model)
    started = time.monotonic()
    policy.sync(new.named_parameters(), 3)
    print(f"sync of {policy.name}: {time.monotonic() - started:.3f} s")
    samples = policy.generate(asked, Sampling(20))
    assert {sample.version for sample in samples} == {3}
    assert parity.gap(new, asked, samples) < parity.CLOSE
    assert parity.gap(model, asked, samples) > 100 * parity.CLOSE


def test_the_last_block_alone(policy: Any, model: Any) -> None:
    asked, new = parity.requests(3), parity.other(model, 8)
    policy.generate(asked, Sampling(20))
    mixed = parity.other(model)
    mixed.load_state_dict(model.state_dict() | dict(parity.last_block(new)))
    policy.sync(parity.last_block(new), 1)
    policy.sync(parity.last_block(new), 2)  # and once more: what is left out stays
    samples = policy.generate(asked, Sampling(20))
    assert parity.gap(mixed, asked, samples) < parity.CLOSE
    assert parity.gap(model, asked, samples) > 10 * parity.CLOSE


def test_the_embedding_alone(policy: Any, model: Any) -> None:
    """Where the output layer is tied to it, that changes too."""
    asked = parity.requests(3)
    mixed = parity.other(model)
    embedding = mixed.model.embed_tokens.weight.detach().clone()
    mixed.load_state_dict(model.state_dict())
    mixed.model.embed_tokens.weight.data.copy_(embedding)
    policy.sync([("model.embed_tokens.weight", embedding)], 1)
    assert parity.gap(mixed, asked, policy.generate(asked, Sampling(20))) < parity.CLOSE


def test_wrong_weights_change_nothing(policy: Any, model: Any) -> None:
    asked, new = parity.requests(2), parity.other(model)
    before = policy.generate(asked, Sampling(20))
    weights = [(name, weight.detach()) for name, weight in new.named_parameters()]
    wrong: list[tuple[list[Any], str]] = [
        ([*weights[:-1], (weights[-1][0], torch.zeros(3, 3))], r"of shape \(3, 3\) has shape"),
        ([*weights, ("model.norm.wait", torch.zeros(3))], r"'model\.norm\.wait' of shape \(3,\) does not exist"),
        ([one for one in weights if "layers.1.self_attn.k_proj" not in one[0]], "send all of model.layers.1"),
        ([*weights, weights[0]], "given twice"),
        ([], "no weights"),
    ]
    for bad, message in wrong:
        with pytest.raises(BackendError, match=message):
            policy.sync(bad, 9)
    after = policy.generate(asked, Sampling(20))
    assert {sample.version for sample in after} == {0}
    assert [sample.token_ids for sample in after] == [sample.token_ids for sample in before]
    assert parity.gap(model, asked, after) < parity.CLOSE


def test_weights_that_come_while_it_samples(policy: Any, model: Any) -> None:
    """What runs keeps the older version, ends, and leaves nothing of the old weights behind."""
    asked, new = parity.requests(16, step=3), parity.other(model)
    running: list[Any] = []
    thread = threading.Thread(target=lambda: running.extend(policy.generate(asked, Sampling(250, 0.0))))
    thread.start()
    wait_until(lambda: len(policy._engine._running) == len(asked))
    policy.sync(new.named_parameters(), 5)
    assert thread.is_alive(), "it was over before the weights came"
    after = policy.generate(asked[:4], Sampling(20))
    thread.join(60)
    assert {sample.version for sample in running} == {0}
    assert {sample.version for sample in after} == {5}
    assert parity.gap(new, asked[:4], after) < parity.CLOSE
    again = policy.generate(asked, Sampling(20))
    assert parity.gap(new, asked, again) < parity.CLOSE


def test_what_does_not_fit_is_told(policy: Any) -> None:
    (one,) = parity.requests(1)
    longest = 1024 if "tiny-writer" in policy.name else 2048
    with pytest.raises(BackendError, match=rf"r0: its prompt has 130 tokens; .* 2000 .* the {longest} that"):
        policy.generate([one], Sampling(2000))
    with pytest.raises(BackendError, match=r"takes no adapters: set backend\.lora_rank"):
        policy.sync_adapter("nowhere", 1)
    with pytest.raises(BackendError, match="has a vLLM engine already"):
        open_backend("vllm:tiny-writer")
    assert len(policy.generate([one], Sampling(5))) == 1


def test_waiting_has_a_bound_and_the_engine_goes_on(policy: Any) -> None:
    asked = parity.requests(2)
    options = policy._options
    policy._options = options.model_copy(update={"request_timeout": 0.01})
    try:
        with pytest.raises(BackendError, match=r"r0: no answer in 0\.01 s \(backend\.request_timeout\)"):
            policy.generate(asked, Sampling(300))
    finally:
        policy._options = options
    assert len(policy.generate(asked, Sampling(5))) == 2

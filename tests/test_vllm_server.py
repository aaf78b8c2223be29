"""Stock vLLM servers: tokens, weights, adapters, and servers that die, hang or are not ours. Real vLLM on a CPU."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import vllm_parity as parity

from weightgym.rewards.contracts import BackendError
from weightgym.rollouts import vllm_process
from weightgym.rollouts.backend import Request, Sampling
from weightgym.rollouts.backends import BackendOptions, open_backend

pytestmark = pytest.mark.vllm

OPTIONS = BackendOptions(kv_cache_gib=0.1, lora_rank=4, replicas=2, request_timeout=60, start_timeout=240, lanes=24)


@dataclasses.dataclass
class Fleet:
    """Two replicas that the backend has started, and one server without development routes: ``plain``, at ``url``."""

    policy: Any
    plain: vllm_process.ServerProcess
    url: str
    folder: Path
    model: Any


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    model = parity.random_model(0, tied=True)
    folder = parity.save(model, tmp_path_factory.mktemp("model"))
    (port,) = vllm_process.free_ports(1)
    environ = vllm_process.environment(OPTIONS, cpu=True)
    del environ["VLLM_SERVER_DEV_MODE"]
    run = vllm_process.command(str(folder), port, OPTIONS.model_copy(update={"lora_rank": 0}), cpu=True)
    plain = vllm_process.ServerProcess(run, environ, tmp_path_factory.mktemp("log") / "plain.log")
    try:
        started = time.monotonic()
        policy: Any = open_backend(f"vllm-server:{folder}", OPTIONS)
        print(f"three servers started in {time.monotonic() - started:.1f} s")
        yield Fleet(policy, plain, f"http://127.0.0.1:{port}", folder, model)
    finally:
        plain.terminate()
        plain.wait()
    started = time.monotonic()
    policy.close()
    assert time.monotonic() - started < 5
    assert not [one for process in policy._processes for one in descendants(process)]


@pytest.fixture
def policy(fleet: Fleet) -> Iterator[Any]:
    """The two replicas; afterwards they have the weights that they began with."""
    yield fleet.policy
    if fleet.policy.version:
        fleet.policy.sync(fleet.model.named_parameters(), 0)


def at(fleet: Fleet, *urls: str, name: str = "", **options: Any) -> Any:
    return open_backend(f"vllm-server:{name or fleet.folder}", BackendOptions(urls=urls, **options))


def descendants(process: vllm_process.ServerProcess) -> list[int]:
    """The processes of a server: api server and engine, both in the api server's group."""
    out = subprocess.run(["ps", "-eo", "pid=,ppid=,pgid="], capture_output=True, text=True, check=True).stdout
    rows = [tuple(map(int, line.split())) for line in out.splitlines()]
    servers = {pid for pid, parent, _ in rows if parent == process._watcher.pid}
    return [pid for pid, _, group in rows if group in servers]


def wait_until(true: Callable[[], Any], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def in_thread(act: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """What ``act`` returns or raises, once the thread has ended."""
    found: list[Any] = []

    def work() -> None:
        try:
            found.append(act())
        except BackendError as error:
            found.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    return thread, found


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0])
def test_logprobs_are_those_of_transformers(policy: Any, fleet: Fleet, temperature: float) -> None:
    asked = parity.requests(12, step=9)
    samples = policy.generate(asked, Sampling(40, temperature))
    assert [sample.id for sample in samples] == [one.id for one in asked]
    assert parity.gap(fleet.model, asked, samples, temperature) < parity.CLOSE
    again = policy.generate(asked[::-1], Sampling(40, temperature))[::-1]
    assert [one.token_ids for one in again] == [one.token_ids for one in samples]


def test_the_end_is_kept_with_its_logprob(policy: Any, fleet: Fleet) -> None:
    asked = parity.requests(48, step=1)
    samples = policy.generate(asked, Sampling(200))
    assert {sample.finish_reason for sample in samples} == {"stop", "length"}
    for sample in samples:
        assert (sample.token_ids[-1] == 256) == (sample.finish_reason == "stop")
        assert 256 not in sample.token_ids[:-1]
        assert len(sample.token_ids) == len(sample.logprobs)
        assert sample.content == policy.tokenizer.text(sample.token_ids)
    assert parity.gap(fleet.model, asked, samples) < parity.CLOSE


def test_replicas_share_the_work(policy: Any) -> None:
    def served() -> list[float]:
        lines = [client._http.get("/metrics").text.splitlines() for client in policy._clients]
        name = "vllm:request_success_total{"
        return [sum(float(line.split()[-1]) for line in part if line.startswith(name)) for part in lines]

    before = served()
    policy.generate(parity.requests(24, step=3), Sampling(300, 0.0))
    counts = [after - earlier for after, earlier in zip(served(), before, strict=True)]
    assert sum(counts) == 24
    assert min(counts) >= 6


@pytest.mark.parametrize("transfer", ["file", "gloo"])
def test_new_weights_reach_every_replica(policy: Any, fleet: Fleet, transfer: str) -> None:
    """Prompts are cached before: old keys and values, or the old packed head, would make a large difference."""
    sender = at(fleet, *(client.url for client in policy._clients), transfer=transfer, request_timeout=60)
    alone = [at(fleet, client.url) for client in policy._clients]
    asked = parity.requests(3)
    for one in alone:
        one.generate(asked, Sampling(20))
    for version, seed in ((1, 7), (2, 8)):
        new = parity.other(fleet.model, seed)
        started = time.monotonic()
        sender.sync(new.named_parameters(), version)
        print(f"sync by {transfer}: {time.monotonic() - started:.3f} s")
        for one in (sender, *alone):
            samples = one.generate(asked, Sampling(20))
            assert parity.gap(new, asked, samples) < parity.CLOSE
            assert parity.gap(fleet.model, asked, samples) > 100 * parity.CLOSE
        assert {sample.version for sample in sender.generate(asked, Sampling(2))} == {version}
        for client in sender._clients:
            assert client.get("/weight_info", "")["weight_version"] == str(version)
    mixed = parity.other(fleet.model, 8)
    mixed.load_state_dict(new.state_dict() | dict(parity.last_block(fleet.model)))
    sender.sync(parity.last_block(fleet.model), 3)
    assert parity.gap(mixed, asked, sender.generate(asked, Sampling(20))) < parity.CLOSE
    sender.sync(fleet.model.named_parameters(), 4)
    for one in (sender, *alone):
        one.close()


def test_weights_that_come_while_it_samples(policy: Any, fleet: Fleet) -> None:
    asked, models = parity.requests(16, step=3), (fleet.model, parity.other(fleet.model))
    for version in range(1, 7):  # a quick machine is done before the weights come: then once more
        new = models[version % 2]
        # Greedy: it goes round and round.
        thread, found = in_thread(lambda: policy.generate(asked, Sampling(1700, 0.0)))
        wait_until(lambda: sum(client.load for client in policy._clients) == 16 or found)  # noqa: B023
        policy.sync(new.named_parameters(), version)
        if not found:
            break
    else:
        pytest.fail("it was over before the weights came, each time")
    after = policy.generate(asked[:4], Sampling(20))
    thread.join(60)
    assert {sample.version for sample in found[0]} == {version - 1}
    assert {sample.version for sample in after} == {version}
    assert parity.gap(new, asked[:4], after) < parity.CLOSE
    assert parity.gap(new, asked, policy.generate(asked, Sampling(20))) < parity.CLOSE


def test_a_trainer_that_was_killed_in_an_update(policy: Any, fleet: Fleet) -> None:
    """It left servers that are paused and wait for weights: the next one's update puts that right."""
    for client in policy._clients:
        client.post("/pause?mode=keep", None, "")
        client.post("/start_weight_update", {}, "")
    asked, new = parity.requests(2), parity.other(fleet.model)
    policy.sync(new.named_parameters(), 1)
    assert parity.gap(new, asked, policy.generate(asked, Sampling(20))) < parity.CLOSE


def test_wrong_weights_change_nothing(policy: Any, fleet: Fleet, tmp_path: Path) -> None:
    asked, new = parity.requests(2), parity.other(fleet.model)
    weights = [(name, weight.detach()) for name, weight in new.named_parameters()]
    for bad, message in (
        ([*weights[:-1], (weights[-1][0], torch.zeros(3, 3))], r"of shape \(3, 3\) has shape"),
        ([*weights, ("nothing", torch.zeros(3))], "'nothing' of shape .* does not exist"),
        (weights[:5], "send all of model.layers.0"),
    ):
        with pytest.raises(BackendError, match=message):
            policy.sync(bad, 9)
    # what we take for its model is another: the servers refuse, and a backend that can't know what they have stops
    wide = parity.save(parity.random_model(0, tied=False), tmp_path / "wide")
    sender = at(fleet, *(client.url for client in policy._clients), name=str(wide))
    for client, process in zip(sender._clients, policy._processes, strict=True):
        client.process = process
    with pytest.raises(BackendError, match=r"answers 500: .*'lm_head\.weight' of shape .* does not exist in the model"):
        sender.sync(parity.load(str(wide)).named_parameters(), 9)
    with pytest.raises(BackendError, match="may have different weights"):
        sender.generate(asked, Sampling(2))
    sender.close()
    samples = policy.generate(asked, Sampling(20))
    assert {sample.version for sample in samples} == {0}
    assert parity.gap(fleet.model, asked, samples) < parity.CLOSE


def test_adapters_are_swapped(policy: Any, fleet: Fleet, tmp_path: Path) -> None:
    from peft import LoraConfig, get_peft_model

    asked = parity.requests(4)
    for version in (1, 2, 3, 4):
        torch.manual_seed(version)
        config = LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "down_proj"], init_lora_weights=False)
        model: Any = get_peft_model(parity.load(str(fleet.folder)), config).eval()
        model.save_pretrained(tmp_path / str(version))
        started = time.monotonic()
        policy.sync_adapter(tmp_path / str(version), version)
        print(f"adapter: {time.monotonic() - started:.3f} s")
        samples = policy.generate(asked, Sampling(20))
        assert {sample.version for sample in samples} == {version}
        assert parity.gap(model, asked, samples) < parity.CLOSE
    with pytest.raises(BackendError, match=r"adapter .*nothing: http.* answers 4\d\d"):
        policy.sync_adapter(tmp_path / "nothing", 5)
    assert parity.gap(model, asked, policy.generate(asked, Sampling(20))) < parity.CLOSE
    policy._served = (4, "")  # what follows is about the model alone


def test_what_does_not_fit_is_told(policy: Any, fleet: Fleet) -> None:
    (one,) = parity.requests(1)
    with pytest.raises(BackendError, match=r"r0: its prompt has 130 tokens; .* 2000 .* the 2048 that"):
        policy.generate([one], Sampling(2000))
    with pytest.raises(BackendError, match=r"odd: http://127\.0\.0\.1:\d+ answers 400: .*999"):
        policy.generate([Request("odd", one.task, (), (1, 999), 0)], Sampling(4))
    (port,) = vllm_process.free_ports(1)
    started = time.monotonic()
    with pytest.raises(BackendError, match=f"http://127.0.0.1:{port} can't be reached"):
        at(fleet, f"http://127.0.0.1:{port}")
    assert time.monotonic() - started < 5


def test_a_server_that_is_not_ours(fleet: Fleet) -> None:
    """Without development routes it samples, and takes no weights."""
    other = at(fleet, fleet.url + "/v1/")
    vllm_process.wait_until_ready(other._clients[0].healthy, fleet.plain, name="plain", timeout=60)
    asked = parity.requests(4)
    assert parity.gap(fleet.model, asked, other.generate(asked, Sampling(20))) < parity.CLOSE
    with pytest.raises(BackendError, match="takes no weights: start it with VLLM_SERVER_DEV_MODE=1 and --weight-tr"):
        other.sync(fleet.model.named_parameters(), 1)
    with pytest.raises(BackendError, match=r"takes no adapters: set backend\.lora_rank"):
        other.sync_adapter(fleet.folder, 1)
    other.close()
    assert not fleet.plain.ended


def test_a_server_that_hangs(fleet: Fleet) -> None:
    other = at(fleet, fleet.url, request_timeout=1.5)
    group = descendants(fleet.plain)
    try:
        for pid in group:
            os.kill(pid, signal.SIGSTOP)
        started = time.monotonic()
        with pytest.raises(BackendError, match=r"r0: no answer from http.* in 1\.5 s \(backend\.request_timeout\)"):
            other.generate(parity.requests(2), Sampling(20))
        assert time.monotonic() - started < 5
    finally:
        for pid in group:
            os.kill(pid, signal.SIGCONT)
    other.close()


def test_a_server_that_is_killed(fleet: Fleet) -> None:
    """Whoever waits for it is told within five seconds, by the rollout's name; nothing of it is left."""
    policy = at(fleet, fleet.url)
    policy._clients[0].process = fleet.plain
    asked = parity.requests(24, step=3)
    group = descendants(fleet.plain)
    assert len(group) > 1
    thread, found = in_thread(lambda: policy.generate(asked, Sampling(1800, 0.0)))
    wait_until(lambda: policy._clients[0].load or found)  # any that is in flight: on a busy machine not all are at once
    os.kill(min(group), signal.SIGKILL)  # the api server; its engine is another process
    started = time.monotonic()
    thread.join(30)
    assert time.monotonic() - started < 5
    assert isinstance(found[0], BackendError), found
    text = str(found[0])
    assert "r0: the server ended (exit status 137)" in text
    assert str(fleet.plain.log) in text
    assert "INFO" in text, "the log's last lines"
    wait_until(lambda: not any(map(alive, group)), 5)
    started = time.monotonic()
    with pytest.raises(BackendError, match="r0: the server ended"):
        policy.generate(asked[:1], Sampling(3))
    assert time.monotonic() - started < 5
    policy.close()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_server_that_can_not_start(fleet: Fleet) -> None:
    python = str(Path(sys.base_prefix) / "bin" / "python3")  # has no vLLM
    started = time.monotonic()
    with pytest.raises(BackendError, match=r"the server ended \(exit status 1\).*\n.*No module named") as caught:
        at(fleet, python=python)
    assert time.monotonic() - started < 5
    log = Path(str(caught.value).split("its log ")[1].split(" says")[0])
    assert "No module named" in log.read_text()
    shutil.rmtree(log.parent)

"""The transformers backend: tokens and log-probabilities are the model's own, seeds are a request's own."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
import torch
from click.testing import CliRunner

from weightgym.cli.main import cli
from weightgym.envs import registry
from weightgym.rewards.contracts import BackendError, Task
from weightgym.rollouts.backend import Request, Sampling
from weightgym.rollouts.run import jobs, run
from weightgym.rollouts.store import read
from weightgym.rollouts.transformers_backend import TransformersBackend

WPB = registry.spec("weight-program")
TASK = WPB.tasks.task("builtin/wall_rally")
SAMPLING = Sampling(max_tokens=40)


def backend(**options: Any) -> TransformersBackend:
    return TransformersBackend(tiny_models.model(**options), tokenizer=tiny_models.tokenizer())


def request(policy: TransformersBackend, text: str, seed: int) -> Request:
    messages = ({"role": "user", "content": text},)
    return Request(f"{text}#{seed}", TASK, messages, policy.tokenizer.encode(policy.tokenizer.render(messages)), seed)


def requests(policy: TransformersBackend, count: int = 6) -> list[Request]:
    return [request(policy, "say something " + "very " * index + "short", index) for index in range(count)]


def own_logprobs(policy: TransformersBackend, prompt: tuple[int, ...], ids: tuple[int, ...], temperature: float) -> Any:
    """Of one sequence, by one plain forward pass."""
    with torch.inference_mode():
        logits = policy.model(torch.tensor([prompt + ids])).logits[0, len(prompt) - 1 : -1]
    logp = torch.log_softmax(logits.double() / temperature, dim=-1)
    return logp.gather(1, torch.tensor(ids)[:, None])[:, 0].numpy()


@pytest.mark.parametrize("temperature", [0.7, 1.0, 2.0])
def test_logprobs_are_those_of_the_sampled_distribution(temperature: float) -> None:
    policy = backend()
    asked = requests(policy)
    for one, sample in zip(asked, policy.generate(asked, Sampling(40, temperature)), strict=True):
        wanted = own_logprobs(policy, one.token_ids, sample.token_ids, temperature)
        assert np.abs(np.array(sample.logprobs) - wanted).max() < 1e-4


def test_a_sample_depends_on_its_seed_and_not_on_its_neighbours() -> None:
    policy = backend()
    asked = requests(policy)
    together = policy.generate(asked, SAMPLING)
    assert policy.generate(asked, SAMPLING) == together
    for one, sample in zip(asked[::-1], policy.generate(asked[::-1], SAMPLING), strict=True):
        (alone,) = policy.generate([one], SAMPLING)
        assert alone.token_ids == sample.token_ids
        assert np.abs(np.array(alone.logprobs) - sample.logprobs).max() < 1e-4
    assert len({sample.token_ids for sample in together}) == len(together)
    other = policy.generate([request(policy, "say something short", 99)], SAMPLING)[0]
    assert other.token_ids != together[0].token_ids


def test_tokens_are_drawn_as_often_as_the_distribution_says() -> None:
    policy = backend()
    first = request(policy, "x", 0)
    asked = [Request(str(seed), TASK, first.messages, first.token_ids, seed) for seed in range(4000)]
    drawn = [sample.token_ids[0] for sample in policy.generate(asked, Sampling(1))]
    with torch.inference_mode():
        wanted = torch.softmax(policy.model(torch.tensor([first.token_ids])).logits[0, -1], -1).numpy()
    seen = np.bincount(drawn, minlength=257) / len(drawn)
    assert np.abs(seen - wanted).sum() < 3 * np.sqrt(wanted * (1 - wanted) / len(drawn)).sum()


def test_the_end_is_kept_and_ends() -> None:
    policy = backend()
    samples = policy.generate([request(policy, "x", seed) for seed in range(60)], Sampling(60))
    assert {sample.finish_reason for sample in samples} == {"stop", "length"}
    for sample in samples:
        ended = sample.token_ids[-1] == 256
        assert 256 not in sample.token_ids[:-1]
        assert (sample.finish_reason == "stop") == ended
        assert len(sample.token_ids) == len(sample.logprobs) == 60 or ended
        assert "<end>" not in sample.content
        assert policy.tokenizer.text(sample.token_ids) == sample.content


def test_greedy_takes_the_likeliest() -> None:
    policy = backend()
    one = request(policy, "x", 5)
    (sample,) = policy.generate([one], Sampling(10, 0.0))
    with torch.inference_mode():
        logits = policy.model(torch.tensor([one.token_ids + sample.token_ids])).logits[0, len(one.token_ids) - 1 : -1]
    assert logits.argmax(-1).tolist() == list(sample.token_ids)


def test_new_weights_change_samples_and_the_version() -> None:
    policy, other = backend(), tiny_models.model(seed=1)
    asked = requests(policy)
    before = policy.generate(asked, SAMPLING)
    assert {sample.version for sample in before} == {0}
    bad = [*[*other.named_parameters()][:-1], ("lm_head.weight", torch.zeros(3, 3))]
    with pytest.raises(BackendError, match=r"'lm_head\.weight' of shape \(3, 3\) has shape \(257, 32\)"):
        policy.sync(bad, 1)
    with pytest.raises(BackendError, match=r"'nothing' of shape .* does not exist"):
        policy.sync([("nothing", torch.zeros(1))], 1)
    assert policy.generate(asked, SAMPLING) == before  # nothing was copied
    policy.sync(other.named_parameters(), 7)
    after = policy.generate(asked, SAMPLING)
    assert {sample.version for sample in after} == {7}
    fresh = TransformersBackend(other, tokenizer=tiny_models.tokenizer())
    assert [sample.token_ids for sample in after] == [s.token_ids for s in fresh.generate(asked, SAMPLING)]


def test_what_does_not_fit_is_told() -> None:
    policy = backend(positions=64)
    with pytest.raises(BackendError, match="the model has 64: shorten one"):
        policy.generate([request(policy, "x", 0)], Sampling(60))
    plain = tiny_models.tokenizer()
    plain.chat_template = None
    with pytest.raises(BackendError, match="has no chat template"):
        TransformersBackend(tiny_models.model(), tokenizer=plain)
    with pytest.raises(ValueError, match="max_tokens: 0"):
        Sampling(max_tokens=0)
    with pytest.raises(ValueError, match="temperature: nan"):
        Sampling(temperature=float("nan"))


def test_closing_waits_for_the_pass_that_is_at_work() -> None:
    """A thread that is left within torch aborts the process at its end, with another exit code."""
    policy = backend()
    forward, entered, within = policy.model.forward, threading.Event(), threading.Event()

    def slow(*args: Any, **kwargs: Any) -> Any:
        within.set()
        entered.set()
        time.sleep(0.3)
        made = forward(*args, **kwargs)
        within.clear()
        return made

    def generate() -> None:
        with pytest.raises(TypeError):  # there is no model any more
            policy.generate(requests(policy), Sampling(200))

    policy.model.forward = slow
    thread = threading.Thread(target=generate)
    thread.start()
    assert entered.wait(10)
    policy.close()
    assert not within.is_set()
    thread.join(10)
    assert not thread.is_alive()


def test_trajectories_hold_what_the_model_saw() -> None:
    policy = backend()
    todo = jobs([TASK, WPB.tasks.task("builtin/deep_drill")], 3, 0)
    results = list(run(todo, policy, WPB, sampling=SAMPLING, profile="wpb-v1-e4"))
    assert {one.id for one in results} == {job.id for job in todo}
    for one in results:
        task: Task = WPB.tasks.task(one.task)
        prompt = policy.tokenizer.encode(policy.tokenizer.render(task.messages))
        (seen,) = one.branches
        assert seen.token_ids[: len(prompt)] == prompt
        assert seen.mask == (False,) * len(prompt) + (True,) * (len(seen.token_ids) - len(prompt))
        wanted = own_logprobs(policy, prompt, seen.token_ids[len(prompt) :], 1.0)
        assert np.abs(np.array(seen.logprobs[len(prompt) :]) - wanted).max() < 1e-4
        assert one.score.status == "invalid"  # a random model writes noise


def test_the_command_runs_a_model_from_a_folder(tmp_path: Path) -> None:
    tiny_models.model().save_pretrained(tmp_path / "model")
    tiny_models.tokenizer().save_pretrained(tmp_path / "model")
    out = tmp_path / "r.jsonl"
    command = ["rollout", str(tmp_path / "model"), "--task", TASK.id, "--samples", "3", "--max-tokens", "12"]
    done = CliRunner().invoke(cli, [*command, "--profile", "wpb-v1-e4", "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert "answers were cut at --max-tokens" in done.output
    assert len(list(read(out))) == 3
    assert all(branch.logprobs for one in read(out) for branch in one.branches)

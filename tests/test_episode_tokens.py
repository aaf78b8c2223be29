"""Episodes of several turns with real tokens: rows of training are what the model saw, and its own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tiny_models
import torch
import toy_env
import toy_tools_env
from chat_templates import TOOLS, TRIMS
from scripted_episodes import SPEC, Script, call, play, says, tool_jobs, turn_of

from weightgym.envs import registry
from weightgym.rewards.contracts import BackendError
from weightgym.rollouts.backend import Request, Sample, Sampling
from weightgym.rollouts.run import jobs
from weightgym.rollouts.scripted import ScriptedBackend
from weightgym.rollouts.store import line
from weightgym.rollouts.transformers_backend import TransformersBackend


@pytest.fixture(autouse=True)
def environments() -> Iterator[None]:
    with registry.override(SPEC), registry.override(toy_env.GUESS):
        yield


class Writes(TransformersBackend):
    """A model's tokenizer with a script for its mind."""

    def __init__(self, policy: TransformersBackend, script: Script) -> None:
        self.__dict__.update(vars(policy))
        self._script = script

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Sample]:
        samples = []
        for request in requests:
            text = self._script(request)
            ids = (*self.tokenizer.encode(text), 256)
            samples.append(Sample(request.id, text, "stop", ids, (-0.5,) * len(ids), turn_of(request) + 3))
        return samples

    def sync(self, weights: Iterable[tuple[str, Any]], version: int) -> None:
        raise NotImplementedError


def tiny(template: str, *, positions: int = 2048) -> TransformersBackend:
    policy = TransformersBackend(tiny_models.model(positions=positions), tokenizer=tiny_models.tokenizer())
    policy.tokenizer.hf.chat_template = template
    return policy


@pytest.mark.parametrize("template", [tiny_models.TEMPLATE, TOOLS, TRIMS])
def test_a_models_episodes_hold_what_it_saw(template: str) -> None:
    """Log-probabilities of each branch are those of one plain forward pass over it."""
    policy = tiny(template)
    entry, tasks = (SPEC, tool_jobs("plain/1", "plain/2", samples=4)) if template == TOOLS else (
        toy_env.GUESS, jobs([toy_env.GUESS_SOURCE.task(id) for id in ("small", "odd")], 4, 0))  # fmt: skip
    results = play(policy, tasks, entry, sampling=Sampling(60))
    assert {one.turns for one in results.values()} == {entry.max_turns}
    assert len({one.finish_reason for one in results.values()}) == 2
    rows = [row for one in results.values() for row in one.branches]
    assert len(rows) == len(results) or template != TOOLS
    assert len(rows) > len(results) or template == TOOLS
    for row in rows:
        with torch.inference_mode():
            logits = policy.model(torch.tensor([row.token_ids])).logits[0, :-1]
        logp = torch.log_softmax(logits.double(), -1).gather(1, torch.tensor(row.token_ids[1:])[:, None])[:, 0].numpy()
        mask = np.array(row.mask[1:])
        assert mask.any()
        assert np.abs(np.array(row.logprobs[1:]) - logp)[mask].max() < 1e-4
    for one in results.values():
        cut = [step for step in one.steps if step.role == "assistant" and step.token_ids[-1] != 256]
        assert all(len(step.token_ids) == 60 for step in cut)


def test_one_model_gives_the_same_episodes_in_any_company() -> None:
    todo = jobs([toy_env.GUESS_SOURCE.task(id) for id in ("small", "odd", "even")], 3, 0)
    policy = tiny(TRIMS)
    wanted = play(policy, todo, toy_env.GUESS)
    policy.batch_size = 2
    for id, one in play(policy, todo[::-1], toy_env.GUESS).items():
        assert [row.token_ids for row in one.branches] == [row.token_ids for row in wanted[id].branches]


def test_a_conversation_that_outgrows_the_model_ends_with_what_it_has() -> None:
    policy = tiny(TOOLS, positions=1500)
    written = "<tool_call>" + json.dumps({"name": "add", "arguments": {"a": 1}}) + "</tool_call>"
    plain, huge = play(Writes(policy, says(written)), tool_jobs("plain/1", "huge/1")).values()
    plain, huge = (plain, huge) if plain.task == "plain/1" else (huge, plain)
    assert (huge.turns, huge.finish_reason, huge.score.status, huge.score.reward) == (1, "length", "invalid", 0.0)
    assert huge.score.reason == "no_sum: nothing was submitted"
    assert (plain.turns, plain.finish_reason) == (toy_tools_env.MAX_TURNS, "stop")
    assert plain.policy_version == 3  # the oldest that wrote for it


def test_a_cut_message_goes_on() -> None:
    """A message that the limit cut in the middle of a call is malformed; the next turn runs."""
    policy = tiny(TOOLS)

    class Cut(Writes):
        def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Sample]:
            return [
                replace(s, token_ids=s.token_ids[:20], logprobs=s.logprobs[:20], content=s.content[:20],
                        finish_reason="length")
                for s in super().generate(requests, sampling)
            ]  # fmt: skip

    written = "<tool_call>" + json.dumps({"name": "add", "arguments": {"a": 1}}) + "</tool_call>"
    (one,) = play(Cut(policy, says(written)), tool_jobs("plain/1")).values()
    assert (one.turns, one.finish_reason) == (toy_tools_env.MAX_TURNS, "length")
    (row,) = one.branches
    text = policy.tokenizer.text(row.token_ids, special=True)
    assert text.count(f"<assistant>{written[:20]}<end>\n<user>Tool call 1 of your message was not run") == 4
    assert sum(row.mask) == 20 * toy_tools_env.MAX_TURNS


def test_half_characters_and_others_come_through() -> None:
    policy = TransformersBackend(tiny_models.model(positions=4096), tokenizer=tiny_models.tokenizer())
    policy.tokenizer.hf.chat_template = TOOLS
    todo = tool_jobs("unicode/3", samples=2)
    odd = "<tool_call>" + json.dumps({"name": "add", "arguments": {"\ud800": "\udfff 🐉"}}) + "</tool_call>"
    for backend in (ScriptedBackend("x", says(call("add", a="\ud800"), "\udc00")), Writes(policy, says(odd))):
        for one in play(backend, todo).values():
            assert one.score.status == "invalid"
            assert any(step.content == "né 🐉 \ufffd \U0010ffff" for step in one.steps)
            line(one)


def test_a_prompt_that_does_not_fit_is_named_with_numbers() -> None:
    policy = TransformersBackend(tiny_models.model(positions=64), tokenizer=tiny_models.tokenizer())
    todo = jobs([toy_env.GUESS_SOURCE.task("small")], 1, 0)
    with pytest.raises(
        BackendError, match=r"toy-guess/small#0: its prompt has \d+ tokens; with max_tokens = 16 that is"
    ):
        play(policy, todo, toy_env.GUESS)

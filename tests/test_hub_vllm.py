"""The plugins with a model that vLLM serves on the CPU: chat for evaluation, tokens for training."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hub_tokens
import hub_vllm
import pytest
import verifiers.v1 as vf
from hub_runs import completion, config, errors
from hub_serving import rollout
from openai_server import serve
from verifiers.v1.clients import ModelContext
from verifiers.v1.utils.loaders import load_environment

from weightgym.envs import registry
from weightgym.rewards.batch_worker import score_one

pytestmark = [pytest.mark.hub, pytest.mark.vllm]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("model")


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with hub_vllm.serving(folder) as url:
        yield url


def test_chat_answers_are_scored_as_they_are(url: str) -> None:
    """What vLLM answers, and what the scorer says of that very text."""

    async def play() -> list[Any]:
        env = load_environment(config("weight-program-bench", "original/breakout", profile="wpb-v1-e2"))
        sampling = vf.SamplingConfig(temperature=1.0, max_tokens=24)
        client = vf.EvalClientConfig(base_url=url, api_key_var="NO_KEY")
        context = ModelContext(model="m", client=client, sampling=sampling)
        async with env.serving():
            slots = env.slots(next(iter(env.taskset)), 4)
            return list(await asyncio.gather(*(env.run_slot(slot, context) for slot in slots)))

    entry = registry.spec("weight-program")
    task = entry.tasks.task("original/breakout", prompt=False)
    texts = set()
    for played in asyncio.run(play()):
        assert played.ok, errors(played)
        (trace,) = played.traces
        text = trace.assistant_messages[-1].content or ""
        wanted = score_one(entry.score, task, text, profile="wpb-v1-e2")
        assert (trace.reward, trace.info["score"]["reason"]) == (wanted.reward, wanted.reason)
        texts.add(text)
    assert len(texts) > 1


def test_forty_turns_through_the_served_path_are_one_branch(url: str, folder: Path) -> None:
    found = config("toy-tools-hub", "plain/3")
    with serve(hub_vllm.as_renderers_want(url)) as server:
        (played,) = rollout(found, server.url, str(folder), thinks=False, max_tokens=8)
    (trace,) = played.traces
    assert played.ok, errors(played)
    assert (trace.num_turns, len(trace.branches)) == (40, 1)
    (branch,) = trace.branches
    sampled = sum(branch.sampled_mask)
    assert 40 <= sampled <= 320
    assert all(value <= 0 for value in branch.logprobs)
    assert sum(value < 0 for value in branch.logprobs) == sampled
    text = hub_tokens.tokenizer().decode(branch.token_ids)
    assert text.count("Call a tool, or submit.") == 39
    spec = registry.spec("toy-tools")
    again = score_one(spec.score, spec.tasks.task("plain/3"), completion(trace), profile="toy-tools-v1")
    assert (again.status, again.reward) == ("invalid", trace.reward)

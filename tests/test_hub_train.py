"""The path that trainers take: an env server in a process of its own, token ids in and out, one branch an episode."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hub_tokens
import pytest
from hub_runs import completion, config, errors
from hub_serving import rollout
from openai_server import serve

from weightgym.envs import registry
from weightgym.rewards.batch_worker import score_one

pytestmark = pytest.mark.hub


def add_and_submit(number: int) -> str:
    """39 sums, then the right one; now and then a call that can't be run."""
    name, arguments = ("submit", {"sum": 6}) if number == 40 else ("add", {"a": number, "b": 1})
    written = json.dumps({"name": name, "arguments": [1] if number % 10 == 7 else arguments})
    return f"turn {number}\n<tool_call>\n{written}\n</tool_call>"


def broken(number: int) -> str:
    """The same, but some calls have no end: the renderer takes them for text."""
    return add_and_submit(number).replace("}\n</tool_call>", "</tool_call>" if number % 10 == 3 else "}\n</tool_call>")


@pytest.mark.parametrize("write", [add_and_submit, broken])
def test_forty_turns_are_one_branch_of_tokens(write: Callable[[int], str], tmp_path: Path) -> None:
    """Without calls, the environment answers as a user, for whom a model that thinks forgets its thoughts: two branches
    are right then. This one does not think."""
    model = hub_tokens.save(tmp_path)
    found = config("toy-tools-hub", "plain/3")
    with serve(hub_tokens.generating(write)) as server:
        (played,) = rollout(found, server.url, model, thinks=write is add_and_submit)
    (trace,) = played.traces
    assert played.ok, errors(played)
    assert trace.reward == 1.0
    assert (trace.num_turns, len(trace.branches)) == (40, 1)
    (branch,) = trace.branches
    asked = [body["token_ids"] for body in server.bodies]
    text = hub_tokens.tokenizer()
    wrote = [text.encode(write(n) + "<|im_end|>", add_special_tokens=False) for n in range(1, 41)]
    for before, ids, after in zip(asked, wrote, asked[1:], strict=False):
        assert after[: len(before) + len(ids)] == before + ids  # token in, token out
    assert branch.token_ids == asked[-1] + wrote[-1]
    trained = [id for id, sampled in zip(branch.token_ids, branch.sampled_mask, strict=True) if sampled]
    assert trained == [id for ids in wrote for id in ids]
    logprobs = [value for value, sampled in zip(branch.logprobs, branch.sampled_mask, strict=True) if sampled]
    assert logprobs == [-n - place / 1000 for n, ids in enumerate(wrote, 1) for place in range(len(ids))]
    seen = text.decode(branch.token_ids)
    assert seen.count("was not run") == 4
    assert seen.count("Call a tool, or submit.") == (8 if write is broken else 4)
    again = score_one(
        registry.spec("toy-tools").score,
        registry.spec("toy-tools").tasks.task("plain/3"),
        completion(trace),
        profile="toy-tools-v1",
    )
    assert (again.status, again.reward) == ("ok", trace.reward)


def test_of_several_branches_the_whole_conversation_is_scored(tmp_path: Path) -> None:
    """A model that thinks: where the environment answers as a user, its template begins a new branch."""
    model = hub_tokens.save(tmp_path)
    found = config("toy-tools-hub", "plain/3")
    with serve(hub_tokens.generating(lambda n: broken(n if n < 29 else 40))) as server:
        (played,) = rollout(found, server.url, model)
    (trace,) = played.traces
    assert played.ok, errors(played)
    assert len(trace.branches) > 1
    said = completion(trace)
    assert [message["content"] for message in said if message["role"] == "assistant"][::9] == [
        "turn 1", "turn 10", "turn 19", "turn 28",
    ]  # fmt: skip
    assert len([message for message in said if message["role"] == "assistant"]) == 29
    spec = registry.spec("toy-tools")
    assert score_one(spec.score, spec.tasks.task("plain/3"), said, profile="toy-tools-v1").reward == trace.reward == 1.0


def test_single_answers_are_scored_by_the_server(tmp_path: Path) -> None:
    """Right, wrong, and one whose scorer is killed: an error, beside rewards that are as they should be."""
    model = hub_tokens.save(tmp_path)
    found = config("toy-faults-hub", "hard/one", "easy/one", "easy/two")
    answers = {"hard/one": "hello", "easy/one": "sigkill", "easy/two": ""}
    text = hub_tokens.tokenizer()
    ids = {id: text.encode(f"Do {id}.", add_special_tokens=False) for id in answers}

    def script(number: int, seen: Any) -> Any:
        prompt = text.decode(seen.body["token_ids"])
        (id,) = [id for id in ids if f"Do {id}." in prompt]
        return hub_tokens.generating(lambda _: answers[id])(number, seen)

    with serve(script) as server:
        played = rollout(found, server.url, model, tasks=3)
    spec = registry.spec("toy")
    for one in played:
        id = one.task.data.id
        wanted = score_one(spec.score, spec.tasks.task(id), "hello", profile="toy-v1") if id == "hard/one" else None
        (trace,) = one.traces
        if id == "easy/one":
            assert one.ok is False
            assert "worker_died" in errors(one)[0][1]
            assert not any(trace.rewards.values())
        else:
            assert one.ok, errors(one)
            assert trace.reward == (wanted.reward if wanted else 0.0)
            assert trace.metrics["invalid"] == float(wanted is None)

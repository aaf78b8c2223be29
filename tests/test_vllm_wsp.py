"""A tool episode of forty turns through real vLLM: what it samples is what is trained on, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chat_templates
import pytest
import tiny_models
import torch
import wsp_policy
import wsp_sets
from transformers import LlamaConfig, LlamaForCausalLM
from wsp_sets import call, said

from weightgym.envs import registry
from weightgym.envs.wsp.tasks import SOURCE
from weightgym.rewards.contracts import Task
from weightgym.rewards.wsp.profile import Family
from weightgym.rollouts.backend import Sampling
from weightgym.rollouts.backends import BackendOptions, open_backend
from weightgym.rollouts.run import jobs, run
from weightgym.rollouts.trajectory import Trajectory

pytestmark = pytest.mark.vllm

#: What the policy says, each a token of its own: looks, runs of the model (refused once the budget is used up), several
#: calls at once, one that no tool is for, and a call that can't be read.
MESSAGES = (
    wsp_policy.written(said(call("singular_values", parameter=wsp_sets.NAME, k=3))),
    wsp_policy.written(said(*[call("generate", prompts=["where does tobin live ?"])] * 3)),
    wsp_policy.written(said(call("tokenize", text="where"), call("edit_log"), content="Two at once.")),
    wsp_policy.written(said(call("open_file", path="truth.json"))),
    '```json\n{"tool": "tokenize", "arguments": \n```',
)
END, FIRST = 256, 257
CONTEXT = 49_152


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It says one of the messages, whichever, and then ends its turn: what follows depends on the last token alone."""
    folder = tmp_path_factory.mktemp("model")
    tokenizer = tiny_models.tokenizer()
    tokenizer.add_tokens(list(MESSAGES))
    tokenizer.chat_template = chat_templates.PLAIN
    tokenizer.save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=FIRST + len(MESSAGES), hidden_size=64, intermediate_size=64, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=CONTEXT, tie_word_embeddings=False,
        eos_token_id=END, bos_token_id=None,
    )  # fmt: skip
    torch.manual_seed(0)
    made: Any = LlamaForCausalLM(config)
    with torch.no_grad():
        made.model.layers[0].self_attn.o_proj.weight.zero_()
        made.model.layers[0].mlp.down_proj.weight.zero_()
        embedding, head = made.model.embed_tokens.weight, made.lm_head.weight
        embedding[:, :2], head[:, :2] = 0, 0
        embedding[:FIRST, 0] = 1
        embedding[FIRST:, 1] = 1
        head[FIRST:, 0] = 2
        head[END, 1] = 2
    made.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def played(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, list[Trajectory]]]:
    """The tokenizer, and two episodes."""
    with wsp_sets.hand_made(tmp_path_factory.mktemp("sets")) as tasks:
        options = BackendOptions(kv_cache_gib=0.25, max_model_len=CONTEXT, request_timeout=120)
        backend = open_backend(f"vllm:{model}", options)
        entry = registry.spec("wsp-bench")
        wanted: dict[Family, Task] = tasks
        todo = jobs([SOURCE.task(wanted["audit"].id)], 2, 0)
        made = list(run(todo, backend, entry, sampling=Sampling(max_tokens=4), profile=entry.default_profile))
        yield backend.tokenizer, made
        backend.close()


def test_forty_turns_and_a_score(played: tuple[Any, list[Trajectory]]) -> None:
    for one in played[1]:
        assert one.turns == 40
        assert (one.score.status, one.score.reward, one.score.info["ended_by"]) == ("ok", 0.0, "turns")
        assert one.finish_reason == "stop"
    assert {call for one in played[1] for call in names(one)} == {
        "singular_values", "generate", "tokenize", "edit_log", "open_file"
    }  # fmt: skip
    said_all = [[step.content for step in one.steps if step.role == "assistant"] for one in played[1]]
    assert said_all[0] != said_all[1]


def names(one: Trajectory) -> list[str]:
    return [each["function"]["name"] for step in one.steps for each in step.tool_calls]


def test_masks_are_the_models_own_tokens(played: tuple[Any, list[Trajectory]]) -> None:
    """Each of its messages is two tokens, sampled; all else was encoded from the conversation, and is masked."""
    for one in played[1]:
        (branch,) = one.branches
        assert sum(branch.mask) == one.sampled == 80
        for step in one.steps:
            if step.role == "assistant":
                message, end = step.token_ids
                assert message >= FIRST
                assert end == END
                assert step.mask == (True, True)
                assert all(value < 0 for value in step.logprobs)
            else:
                assert not any(step.mask)
                assert not any(step.logprobs)
        own = [id for id, mask in zip(branch.token_ids, branch.mask, strict=True) if mask]
        assert own == [id for step in one.steps if step.role == "assistant" for id in step.token_ids]
        assert list(branch.token_ids) == [id for step in one.steps for id in step.token_ids]


def test_replies_are_in_the_sequence_as_they_were_said(played: tuple[Any, list[Trajectory]]) -> None:
    tokenizer, made = played
    for one in made:
        told = tokenizer.text([id for step in one.steps if step.role != "assistant" for id in step.token_ids])
        for step in one.steps:
            if step.role in ("tool", "user", "system"):
                assert step.content in told
        assert "refused: gpu_budget" in told
        assert "refused: unknown_tool" in told
        assert "was not run" in told


def test_log_probabilities_are_those_of_the_model(played: tuple[Any, list[Trajectory]], model: Path) -> None:
    """A token's depend on the one before alone: there is no need to run forty turns again."""
    network: Any = LlamaForCausalLM.from_pretrained(model)
    for one in played[1]:
        (branch,) = one.branches
        before = {branch.token_ids[i - 1] for i, mask in enumerate(branch.mask) if mask}
        with torch.inference_mode():
            known = {id: torch.log_softmax(network(torch.tensor([[id]])).logits[0, -1], -1) for id in before}
        gaps = [
            abs(float(known[branch.token_ids[i - 1]][branch.token_ids[i]]) - branch.logprobs[i])
            for i, mask in enumerate(branch.mask)
            if mask
        ]
        assert max(gaps) < 1e-3

"""Log-probabilities and gradients of rows: with the prompt computed once or for each row, alone or in company."""

from __future__ import annotations

import random
from typing import Any

import pytest
import tiny_models
import torch

from weightgym.rollouts.trajectory import Branch
from weightgym.trainers import parameters
from weightgym.trainers.batch import Row, make_batch
from weightgym.trainers.policy import Policy


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def row(draw: random.Random, prompt: tuple[int, ...], completion: int, tool: int = 0) -> Row:
    """A prompt, a completion, and perhaps a tool's answer and another completion."""
    mask = [False] * len(prompt) + [True] * completion + [False] * tool + [True] * (2 if tool else 0)
    ids = prompt + tuple(draw.randrange(256) for _ in range(len(mask) - len(prompt)))
    return Row(Branch(ids, (0.0,) * len(ids), tuple(mask)), 1.0)


def both(model: Any, rows: list[Row]) -> tuple[torch.Tensor, torch.Tensor, float]:
    """Log-probabilities in both ways, and the largest difference of a gradient relative to the largest gradient."""
    batch = make_batch(rows)
    found, gradients = [], []
    for share in (False, True):
        policy = Policy(model, temperature=0.7, dtype="float32", share_prompts=share)
        model.zero_grad()
        logp = policy.logprobs(batch)
        (logp * torch.linspace(1, 2, logp.numel()).view_as(logp)).sum().backward()  # type: ignore[no-untyped-call]
        found.append(logp.detach())
        trained = [parameter for parameter in model.parameters() if parameter.grad is not None]
        gradients.append(torch.cat([parameter.grad.flatten().clone() for parameter in trained]))
    largest = float(gradients[0].abs().max())
    return found[0], found[1], float((gradients[0] - gradients[1]).abs().max()) / largest


@pytest.mark.parametrize("kind", ["all", "last", "lora"])
@pytest.mark.parametrize("seed", range(4))
def test_a_shared_prompt_is_computed_once_with_the_same_result(kind: Any, seed: int) -> None:
    draw = random.Random(seed)
    prompt = tuple(draw.randrange(256) for _ in range(draw.randint(1, 30)))
    rows = [row(draw, prompt, draw.randint(1, 20), tool=draw.choice([0, 0, 3])) for _ in range(5)]
    model = parameters.select(tiny_models.model(seed), kind, blocks=1, lora_rank=4, lora_alpha=8.0)
    plain, shared, gradient = both(model, rows)
    assert torch.allclose(plain, shared, atol=2e-5)
    assert gradient < 1e-4
    assert make_batch(rows).prompt == len(prompt)


def test_completions_of_one_token() -> None:
    draw = random.Random(0)
    plain, shared, gradient = both(tiny_models.model(), [row(draw, (1, 2, 3), 1) for _ in range(3)])
    assert torch.allclose(plain, shared, atol=2e-5)
    assert gradient < 1e-4


def test_other_prompts_are_not_shared() -> None:
    draw = random.Random(0)
    rows = [row(draw, (1, 2, 3), 4), row(draw, (1, 2, 4), 4)]
    assert make_batch(rows).prompt == 0
    plain, shared, _ = both(tiny_models.model(), rows)
    assert torch.equal(plain, shared)


def test_the_prompt_really_is_computed_once() -> None:
    """The layers see the prompt's tokens for one row only."""
    draw = random.Random(0)
    model = tiny_models.model()
    seen: list[tuple[int, ...]] = []
    model.model.layers[0].register_forward_hook(lambda _, args, out: seen.append(tuple(args[0].shape[:2])))
    rows = [row(draw, tuple(range(1, 41)), 5) for _ in range(6)]
    Policy(model, temperature=1.0, dtype="float32", share_prompts=True).logprobs(make_batch(rows))
    assert seen == [(1, 40), (6, 4)]

"""The models of an instance: other coordinates are the same function, and edits make the reference and the defect."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import tiny_models
import torch

from weightgym.rewards.contracts import TaskError
from weightgym.rewards.wsp.edits import RankOne, Scale, frozen
from weightgym.rewards.wsp.engine import Engine
from weightgym.rewards.wsp.instances import InstanceKey, Truth
from weightgym.rewards.wsp.kl import text_kl
from weightgym.rewards.wsp.language_model import LanguageModel, load
from weightgym.rewards.wsp.make.reparametrise import HEAD, drawn, plain, reparametrised
from weightgym.rewards.wsp.subject import build, changed
from weightgym.rewards.wsp.world.corpus import texts

DOWN = "model.layers.1.mlp.down_proj.weight"


@functools.cache
def tiny_world() -> LanguageModel:
    torch.set_num_threads(1)
    return load()


def small(*, tied: bool = False) -> LanguageModel:
    """Two query heads on one of keys and values, and norms that are not 1."""
    network = tiny_models.model(1, tied=tied)
    for name, weight in network.named_parameters():
        if "norm" in name:
            weight.data = torch.rand(weight.shape) + 0.5
    return LanguageModel("small", network, tiny_models.tokenizer())


def rows(model: LanguageModel) -> list[list[int]]:
    if model.name == "tiny-world":
        return [model.text_ids(text) for text in texts("held-out", 3, 24)]
    random = np.random.default_rng(0)
    return [random.integers(0, 256, 30).tolist() for _ in range(8)]


def weights(model: LanguageModel) -> dict[str, Any]:
    return {name: tensor.detach().numpy().copy() for name, tensor in model.network.named_parameters()}


@pytest.mark.parametrize("kind", ["tiny-world", "tied", "untied"])
def test_other_coordinates_are_the_same_function(kind: str) -> None:
    base = tiny_world() if kind == "tiny-world" else small(tied=kind == "tied")
    made = reparametrised(base, drawn(base, 5))
    before, after, texts = Engine(base), Engine(made), rows(base)
    assert text_kl(before.logits, after.logits, texts).mean < 1e-6
    assert max(float((before.logits(text) - after.logits(text)).abs().max()) for text in texts) < 1e-3
    for name, weight in after.start.items():
        if weight.ndim == 2 and weight.any():
            old = before.start.get(name, before.start["model.embed_tokens.weight"])
            assert np.mean(np.isclose(weight, old, rtol=1e-3, atol=0)) < 0.02, name
        elif weight.ndim == 1:
            assert (weight == 1).all(), name
    assert HEAD in after.start  # of its own
    assert not np.array_equal(after.start[HEAD], after.start["model.embed_tokens.weight"])


def test_the_seed_decides_all_and_the_base_stays() -> None:
    base = small()
    Engine(base)  # somebody runs it
    before = weights(base)
    first, again, other = (weights(reparametrised(base, drawn(base, seed))) for seed in (1, 1, 2))
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not any(np.array_equal(first[name], other[name]) for name in first if first[name].ndim == 2)
    after = weights(base)
    assert all(np.array_equal(before[name], after[name]) for name in before)
    folded = weights(reparametrised(base, plain(base)))
    assert np.array_equal(folded["model.embed_tokens.weight"], before["model.embed_tokens.weight"])


def test_a_random_state_of_torch_is_left_alone() -> None:
    base = small()
    torch.manual_seed(0)
    wanted = torch.rand(3)
    torch.manual_seed(0)
    reparametrised(base, drawn(base, 1))
    assert torch.equal(torch.rand(3), wanted)


def test_a_model_with_biases_is_refused() -> None:
    base = small()
    layer = base.network.model.layers[0].self_attn.o_proj
    layer.bias = torch.nn.Parameter(torch.ones(layer.out_features))
    with pytest.raises(TaskError, match=r"has model\.layers\.0\.self_attn\.o_proj\.bias.*without biases"):
        reparametrised(base, drawn(base, 1))


def truth(reference: tuple[Any, ...], planted: tuple[Any, ...]) -> Truth:
    return Truth(
        id="x",
        task_hash="",
        secret="00" * 16,
        key=InstanceKey("wsp-v1", "", "topic", "easy", "test", 0, 0),
        recipe={},
        reference=reference,
        planted=planted,
        layer=1,
        parameter="mlp.down_proj.weight",
        direction=None,
        category="topic",
        trigger=None,
        prompts=(),
        general=(),
        near=(),
        measured={},
    )


def spike(seed: int, name: str = DOWN, size: float = 0.3) -> RankOne:
    random = np.random.default_rng(seed)
    return RankOne(
        parameter=name, left=frozen(size * random.standard_normal(32)), right=frozen(random.standard_normal(48))
    )


def test_a_subject_holds_the_defect_and_gives_the_reference() -> None:
    base, text = small(), rows(small())[0]
    decoy, edit = spike(1), spike(2)
    scale = Scale(parameter=DOWN, axis="columns", indices=(3,), factor=2.0)
    plainly, decoyed = build(base, truth((), ())), build(base, truth((decoy,), ()))
    subject = build(base, truth((decoy,), (scale, edit)))
    assert subject.reference.keys() == {DOWN}
    assert not decoyed.reference
    wanted = decoyed.engine.logits(text)
    assert torch.equal(subject.engine.logits(text, subject.reference), wanted)
    defective = subject.engine.logits(text)
    assert not torch.allclose(defective, wanted)
    assert not torch.allclose(plainly.engine.logits(text), wanted)
    # The calibration sees the same defect from the other side.
    assert torch.equal(decoyed.engine.logits(text, changed(decoyed.engine, (scale, edit))), defective)


@pytest.mark.parametrize("name", ["model.layers.7.mlp.down_proj.weight", "model.layers.1.mlp.up_proj.weight"])
def test_an_edit_that_does_not_fit_is_a_bad_task(name: str) -> None:
    with pytest.raises(TaskError, match=r"an edit (is of|does not fit)"):
        build(small(), truth((), (spike(1, name),)))

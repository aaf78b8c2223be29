"""What is trained is what was asked for, everything else stays as it is, and samplers get all of what changed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import tiny_models
import torch
from peft import PeftModel
from transformers import GPT2Config, GPT2LMHeadModel, Qwen2Config, Qwen2ForCausalLM

from weightgym.rollouts.transformers_backend import TransformersBackend
from weightgym.trainers import parameters

KINDS: dict[str, dict[str, Any]] = {
    "all": {"kind": "all"},
    "last": {"kind": "last", "blocks": 1},
    "lora": {"kind": "lora", "lora_rank": 3, "lora_alpha": 6.0, "lora_targets": ("q_proj", "down_proj")},
}


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def ids() -> torch.Tensor:
    return torch.randint(0, 257, (2, 12), generator=torch.Generator().manual_seed(0))


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = model(input_ids=ids()).logits
    return found


def bits(model: Any) -> dict[str, bytes]:
    return {name: tensor.detach().float().numpy().tobytes() for name, tensor in model.named_parameters()}


def trained(kind: str, *, steps: int = 2, tied: bool = False) -> tuple[Any, dict[str, bytes]]:
    """A model after some steps, and the weights that it began with."""
    model = parameters.select(tiny_models.model(tied=tied), **KINDS[kind])
    before = bits(model)
    optimiser = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.01, weight_decay=0.1)
    for _ in range(steps):
        optimiser.zero_grad()
        model(input_ids=ids(), labels=ids()).loss.backward()
        optimiser.step()
    return model, before


def test_as_many_are_trained_as_the_architecture_says() -> None:
    def count(**options: Any) -> int:
        model = parameters.select(tiny_models.model(), **options)
        return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)

    attention, norms, mlp = 32 * 32 * 2 + 32 * 16 * 2, 2 * 32, 3 * 32 * 48
    block = attention + norms + mlp
    assert count(kind="last", blocks=1) == block
    assert count(kind="last", blocks=2) == 2 * block
    assert count(kind="all") == 2 * block + 2 * 257 * 32 + 32
    assert count(kind="lora", lora_rank=3, lora_alpha=6.0, lora_targets=["q_proj"]) == 2 * 3 * (32 + 32)
    everything = 2 * (32 + 32) + 2 * (32 + 16) + 3 * (32 + 48)
    assert count(kind="lora", lora_rank=5, lora_alpha=6.0) == 2 * 5 * everything


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_trained_stays_bit_by_bit(kind: str, tied: bool) -> None:
    model, before = trained(kind, tied=tied)
    chosen = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    changed = {name for name, raw in bits(model).items() if raw != before[name]}
    assert changed == chosen
    part = {"all": "", "last": "layers.1.", "lora": ".lora_"}[kind]
    assert chosen == {name for name in before if part in name}


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_sampler_with_the_trained_weights_is_the_model(kind: str, tied: bool) -> None:
    model, _ = trained(kind, tied=tied)
    fresh = TransformersBackend(tiny_models.model(tied=tied), tokenizer=tiny_models.tokenizer())
    assert (logits(fresh.model) - logits(model)).abs().max() > 0.01
    before = bits(model)
    weights = list(parameters.trained_weights(model))
    assert bits(model) == before  # merging is done beside the model
    assert len({name for name, _ in weights}) == len(weights)
    assert not any(tensor.requires_grad for _, tensor in weights)
    fresh.sync(weights, 1)
    wanted = logits(model)
    difference = (logits(fresh.model) - wanted).abs().max()
    assert difference < 1e-5 * wanted.abs().max() if kind == "lora" else difference == 0


def test_blocks_with_adapters_are_sent_whole_and_no_others() -> None:
    """vLLM fuses matrices and takes blocks whole."""
    model = parameters.select(tiny_models.model(), "lora", lora_rank=2, lora_alpha=2.0, lora_targets=["v_proj"])
    names = {name for name, _ in parameters.trained_weights(model)}
    assert names == {name for name, _ in tiny_models.model().named_parameters() if ".layers." in name}
    one = parameters.select(tiny_models.model(), "lora", lora_rank=2, lora_alpha=2.0, lora_targets=["1.mlp.up_proj"])
    assert all(".layers.1." in name for name, _ in parameters.trained_weights(one))


def test_adapters_are_merged_in_float32_and_then_rounded_once() -> None:
    torch.manual_seed(0)
    model = parameters.select(tiny_models.model().bfloat16(), **KINDS["lora"])
    layer = model.get_base_model().model.layers[1].mlp.down_proj
    up, down = layer.lora_B["default"].weight, layer.lora_A["default"].weight
    assert up.dtype == down.dtype == torch.float32
    torch.nn.init.normal_(up, std=0.01)
    merged = dict(parameters.trained_weights(model))["model.layers.1.mlp.down_proj.weight"]
    wanted = (layer.base_layer.weight.double() + 2 * up.double() @ down.double()).bfloat16()
    assert merged.dtype == torch.bfloat16
    # float32 and float64 may round a few of 1536 to different neighbours
    assert (merged != wanted).sum() < 8
    assert (merged - wanted).abs().max() < 0.01


def test_adapters_begin_as_nothing_and_as_the_seed_says() -> None:
    state = torch.get_rng_state()
    seeds = [parameters.select(tiny_models.model(), **KINDS["lora"], seed=seed) for seed in (0, 0, 1)]
    assert torch.equal(logits(seeds[0]), logits(tiny_models.model()))
    first, again, other = (bits(model) for model in seeds)
    assert first == again
    assert first != other
    torch.set_rng_state(state)
    model = tiny_models.model()
    before = torch.get_rng_state()
    parameters.select(model, **KINDS["lora"])
    assert torch.equal(torch.get_rng_state(), before)


def test_an_adapter_folder_is_what_peft_loads(tmp_path: Path) -> None:
    tiny_models.model().save_pretrained(tmp_path / "base")
    base = type(tiny_models.model()).from_pretrained(tmp_path / "base")
    model = parameters.select(base, **KINDS["lora"])
    for parameter in parameters.saved_parameters(model).values():
        torch.nn.init.normal_(parameter, std=0.1)
    parameters.save_adapter(model, tmp_path / "adapter")
    assert sorted(path.name for path in (tmp_path / "adapter").iterdir()) == [
        "adapter_config.json",
        "adapter_model.safetensors",
    ]
    with pytest.warns(FutureWarning, match="is_gradient_checkpointing"):  # of peft
        loaded = PeftModel.from_pretrained(tiny_models.model(), tmp_path / "adapter")
    assert loaded.peft_config["default"].base_model_name_or_path == str(tmp_path / "base")
    assert torch.equal(logits(loaded), logits(model))
    again = parameters.select(tiny_models.model(), **KINDS["lora"], seed=1)
    parameters.load_trained(again, tmp_path / "adapter")
    assert torch.equal(logits(again), logits(model))
    wider = parameters.select(tiny_models.model(), "lora", lora_rank=4, lora_alpha=6.0, lora_targets=["q_proj"])
    with pytest.raises(ValueError, match=r"lora_A.weight has shape \(3, 32\), wanted \(4, 32\)"):
        parameters.load_trained(wider, tmp_path / "adapter")
    more = parameters.select(tiny_models.model(), "lora", lora_rank=3, lora_alpha=6.0)
    with pytest.raises(ValueError, match=r"is of other parameters: it has no base_model\S+k_proj\S+$"):
        parameters.load_trained(more, tmp_path / "adapter")


def test_frozen_blocks_below_keep_no_activations() -> None:
    def kept(blocks: int) -> int:
        model = parameters.select(tiny_models.model(), "last", blocks=blocks)
        saved: list[int] = []

        def pack(tensor: torch.Tensor) -> torch.Tensor:
            saved.append(0 if isinstance(tensor, torch.nn.Parameter) else tensor.numel())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            model(input_ids=ids(), logits_to_keep=1)
        return sum(saved)

    one, two = kept(1), kept(2)
    assert two > 1.5 * one  # what the head keeps counts in both


@pytest.mark.parametrize(
    "model",
    [
        GPT2LMHeadModel(GPT2Config(vocab_size=257, n_positions=32, n_embd=16, n_layer=3, n_head=2)),
        Qwen2ForCausalLM(
            Qwen2Config(
                vocab_size=257,
                hidden_size=16,
                intermediate_size=16,
                num_hidden_layers=3,
                num_attention_heads=2,
                num_key_value_heads=1,
            )
        ),
    ],
    ids=lambda model: type(model).__name__,
)
def test_blocks_are_found_in_other_architectures(model: Any) -> None:
    parameters.select(model, "last", blocks=2)
    numbers = {name.split(".")[2] for name, _ in parameters.trained_weights(model)}
    assert numbers == {"1", "2"}
    # Experts, as many as blocks, inside of a block.
    block = parameters.decoder_blocks(model)[0]
    block.experts = torch.nn.ModuleList(torch.nn.Linear(2, 2) for _ in range(3))
    assert parameters.decoder_blocks(model)[0] is block


def test_mistakes_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_models.model()
    for blocks in (0, 3):
        with pytest.raises(ValueError, match=f"blocks is {blocks}, wanted 1 to 2"):
            parameters.select(model, "last", blocks=blocks)
    lora: dict[str, Any] = {"lora_rank": 2, "lora_alpha": 2.0}
    with pytest.raises(ValueError, match=r"'q_prj' is no linear layer .*did you mean q_proj"):
        parameters.select(model, "lora", **lora, lora_targets=["v_proj", "q_prj"])
    for target in ("lm_head", "mlp"):
        with pytest.raises(ValueError, match=rf"'{target}' is no linear layer .* there are down_proj, gate_proj"):
            parameters.select(model, "lora", **lora, lora_targets=[target])
    for wrong in ({"lora_rank": 0}, {"lora_alpha": 0.0}):
        with pytest.raises(ValueError, match="wanted 1 or more and above 0"):
            parameters.select(model, "lora", **lora | wrong)
    with pytest.raises(ValueError, match="the model has none to train"):
        parameters.select(torch.nn.Module(), "all")
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(ValueError, match=r"adapters need peft: pip install 'weightgym\[lora\]'"):
        parameters.select(model, "lora", **lora)

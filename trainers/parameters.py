"""Which parameters are trained: all, those of the last blocks, or adapters (LoRA, Hu et al., arXiv:2106.09685).

What samplers need afterwards are ``trained_weights``. With adapters these are the merged weights
``W + alpha / rank * B A``; or an adapter folder (``save_adapter``), for servers that swap adapters.
"""

from __future__ import annotations

import copy
import difflib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from weightgym.trainers.distributed import gathered, scattered

Kind = Literal["all", "last", "lora"]

#: The name that peft gives to the one adapter of a model.
_ADAPTER = "default"


def select(
    model: Any,
    kind: Kind,
    *,
    blocks: int = 0,
    lora_rank: int = 0,
    lora_alpha: float = 0.0,
    lora_targets: Sequence[str] = (),
    seed: int = 0,
) -> Any:
    """Mark what is trained; returns the model, for adapters wrapped by peft (which changes the model given).

    - ``all``: every parameter.
    - ``last``: the last ``blocks`` transformer blocks. The final norm and the head stay as they are: in many models
      the head is the embedding. The blocks below keep no activations for a backward pass.
    - ``lora``: low-rank adapters, float32, of the linear layers in the blocks whose names end with one of
      ``lora_targets``; without any, of all. ``seed`` decides how they begin: equal on every rank.

    Raises:
        ValueError: the model has fewer blocks, no such layer, or nothing would be trained; or peft (extra ``lora``)
            is missing.
    """
    if kind == "lora":
        model = _with_adapters(model, lora_rank, lora_alpha, lora_targets, seed)
    elif kind == "last":
        found = decoder_blocks(model)
        if not 1 <= blocks <= len(found):
            raise ValueError(f"blocks is {blocks}, wanted 1 to {len(found)}: the model has {len(found)} of them")
        model.requires_grad_(False)
        for block in found[-blocks:]:
            block.requires_grad_(True)
    else:
        model.requires_grad_(True)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ValueError(f"parameters of kind {kind!r}: the model has none to train")
    return model


def decoder_blocks(model: Any) -> list[nn.Module]:
    """The transformer blocks of a Hugging Face model (or of one that peft wrapped), from the input to the output.

    Raises:
        ValueError: none are found.
    """
    return list(_named_blocks(base(model)).values())


def _named_blocks(plain: Any) -> dict[str, nn.Module]:
    """The blocks by their names, such as ``model.layers.0.``, final dot included."""
    count = getattr(plain.config.get_text_config(), "num_hidden_layers", 0)
    lists = [(name, module) for name, module in plain.named_modules() if isinstance(module, nn.ModuleList)]
    fitting = [(name, module) for name, module in lists if len(module) == count]
    if not count or not fitting:
        raise ValueError(f"{type(plain).__name__} has no list of {count} transformer blocks: train all parameters")
    # Experts of a block may be as many; the list that is nearest to the root is that of the blocks.
    name, found = min(fitting, key=lambda pair: pair[0].count("."))
    return {f"{name}.{index}.": block for index, block in enumerate(found)}


def trained_weights(model: Any) -> Iterator[tuple[str, Tensor]]:
    """Name and whole tensor of what training changes, as the unwrapped model names it; detached, on its device.

    Names are those of the model in memory; for dense models they are those of its files. Tied weights come once. They
    are the live weights, or made from them, in their dtype: copy them before the next step. Adapters are merged in
    float32; the rest of their blocks comes along, as samplers take a block whole.

    Sharded parameters are gathered one at a time: all ranks must take all of them.
    """
    plain = base(model)
    if plain is model:
        for name, parameter in model.named_parameters():
            if parameter.requires_grad:
                yield name, gathered(parameter)
        return
    adapted = _adapted(plain)
    touched = tuple(block for block in _named_blocks(plain) if any(name.startswith(block) for name in adapted))
    for name, parameter in plain.named_parameters():
        if ".lora_" in name or not name.startswith(touched):
            continue
        name = name.replace(".base_layer.", ".")
        owner, _, field = name.rpartition(".")
        weight = gathered(parameter)
        yield name, _merged(weight, adapted[owner]) if owner in adapted and field == "weight" else weight


def saved_parameters(model: Any) -> dict[str, Tensor]:
    """The trained parameters by their names in files: those of the model's, or of its adapters'. Sharded if it is."""
    named = model.named_parameters()
    return {name.replace(f".{_ADAPTER}.", "."): parameter for name, parameter in named if parameter.requires_grad}


def adapter_weights(model: Any) -> dict[str, Tensor]:
    """The adapters' whole weights by their names in files. All ranks must call it."""
    return {name: gathered(parameter) for name, parameter in saved_parameters(model).items()}


def is_adapted(model: Any) -> bool:
    """Whether ``select`` gave it adapters."""
    return base(model) is not model


def save_adapter(model: Any, folder: Path, weights: Mapping[str, Tensor] | None = None) -> None:
    """Write an adapter folder that peft and vLLM load: adapter_model.safetensors and adapter_config.json.

    ``weights`` are those of ``adapter_weights``. Where several ranks train, all of them gather, and one writes.
    """
    from safetensors.torch import save_file

    weights = adapter_weights(model) if weights is None else weights
    config = copy.copy(model.peft_config[_ADAPTER])
    config.inference_mode = True
    folder.mkdir(parents=True, exist_ok=True)
    config.save_pretrained(folder)
    tensors = {name: tensor.contiguous() for name, tensor in weights.items()}
    save_file(tensors, folder / "adapter_model.safetensors", {"format": "pt"})


@torch.no_grad()
def load_trained(model: Any, folder: Path) -> None:
    """Put the weights in a model's or an adapter's folder into the trained parameters, sharded or not.

    All ranks call it.

    Raises:
        ValueError: one is missing there, or has another shape. Then some may have been loaded.
    """
    from safetensors import safe_open

    left = saved_parameters(model)
    pattern = "adapter_model.safetensors" if is_adapted(model) else "model*.safetensors"
    for file in sorted(folder.glob(pattern)):
        with safe_open(file, "pt") as stored:
            here = set(stored.keys())
            for name in [name for name in left if name in here]:  # in the same order on all ranks
                parameter, new = left.pop(name), stored.get_tensor(name)
                if new.shape != parameter.shape:
                    raise ValueError(f"{folder}: {name} has shape {tuple(new.shape)}, wanted {tuple(parameter.shape)}")
                parameter.copy_(scattered(new, parameter))
    if left:
        raise ValueError(f"{folder} is of other parameters: it has no {next(iter(left))}")


def base(model: Any) -> Any:
    """The causal language model itself, with its adapters in place."""
    return model.get_base_model() if hasattr(model, "peft_config") and hasattr(model, "get_base_model") else model


def _with_adapters(model: Any, rank: int, alpha: float, targets: Sequence[str], seed: int) -> Any:
    try:
        from peft import LoraConfig, get_peft_model
    except ImportError as error:
        raise ValueError(f"adapters need {error.name}: pip install 'weightgym[lora]'") from error
    if rank < 1 or not alpha > 0:
        raise ValueError(f"lora_rank is {rank} and lora_alpha {alpha}, wanted 1 or more and above 0")
    config = LoraConfig(
        r=rank, lora_alpha=alpha, target_modules=_targets(model, targets), bias="none", task_type="CAUSAL_LM"
    )
    gpus = sorted({parameter.device.index for parameter in model.parameters() if parameter.is_cuda})
    with torch.random.fork_rng(gpus), warnings.catch_warnings():
        # peft reads a property that transformers has renamed.
        warnings.filterwarnings("ignore", ".*is_gradient_checkpointing", FutureWarning)
        torch.manual_seed(seed)
        return get_peft_model(model, config)


def _targets(model: Any, wanted: Sequence[str]) -> list[str]:
    """The ends of the names of linear layers that get adapters."""
    blocks = tuple(_named_blocks(model))
    linear = {name for name, one in model.named_modules() if isinstance(one, nn.Linear)}
    layers = {name for name in linear if name.startswith(blocks)}
    short = sorted({name.rpartition(".")[2] for name in layers})
    for target in wanted:
        if not any(f".{name}".endswith(f".{target}") for name in layers):
            near = difflib.get_close_matches(target, short, n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(short) or 'none'}"
            raise ValueError(f"lora_targets: {target!r} is no linear layer of the model's blocks: {hint}")
    return list(wanted) or short


def _adapted(plain: Any) -> dict[str, Any]:
    """The layers with an adapter, by name."""
    from peft.tuners.lora import LoraLayer

    return {name: module for name, module in plain.named_modules() if isinstance(module, LoraLayer)}


def _merged(weight: Tensor, layer: Any) -> Tensor:
    """``W + alpha / rank * B A``, computed in float32; the layer itself stays as it is."""
    down, up = (gathered(part[_ADAPTER].weight).float() for part in (layer.lora_A, layer.lora_B))
    scale = float(layer.scaling[_ADAPTER])
    return (weight.float() + scale * (up @ down)).to(weight.dtype)

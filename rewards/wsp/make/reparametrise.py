"""A secret change of coordinates: other weights, the same function. Needs the extra ``train``.

Norms are folded into the matrices that read them, the residual stream is rotated, neurons are permuted and mildly
rescaled, and the head is untied. So nothing of a matrix tells where it comes from: not the lattice of a quantised base,
not a difference to public weights. All of it is float64, then rounded to float32 once.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from weightgym.rewards.contracts import TaskError
from weightgym.rewards.one_line import one_line
from weightgym.rewards.wsp.language_model import LanguageModel

Doubles = npt.NDArray[np.float64]

#: A neuron's up-projection is multiplied, and its down-projection divided, by exp(N(0, this²)).
_SPREAD = 0.2

EMBEDDING, NORM, HEAD = "model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"
#: Of a layer: what reads the residual stream after which norm, and what writes to it.
_READERS = {
    "self_attn.q_proj.weight": "input_layernorm.weight",
    "self_attn.k_proj.weight": "input_layernorm.weight",
    "self_attn.v_proj.weight": "input_layernorm.weight",
    "mlp.gate_proj.weight": "post_attention_layernorm.weight",
    "mlp.up_proj.weight": "post_attention_layernorm.weight",
}
_WRITERS = ("self_attn.o_proj.weight", "mlp.down_proj.weight")


class Coordinates(NamedTuple):
    """What decides the other weights, beside the base: float64, and int64 for orders."""

    rotation: Doubles  #: (d, d), orthogonal: of the residual stream
    orders: tuple[npt.NDArray[np.int64], ...]  #: of each layer's neurons
    scales: tuple[Doubles, ...]  #: what up-projections are multiplied by, in the new order


def drawn(base: LanguageModel, seed: int) -> Coordinates:
    """Random coordinates, which the seed alone decides."""
    random, config = np.random.default_rng(seed), base.network.config
    rotation = _rotation(random, config.hidden_size)
    orders, scales = [], []
    for _ in range(config.num_hidden_layers):
        orders.append(random.permutation(config.intermediate_size))
        scales.append(np.exp(_SPREAD * random.standard_normal(config.intermediate_size)))
    return Coordinates(rotation, tuple(orders), tuple(scales))


def plain(base: LanguageModel) -> Coordinates:
    """Those that leave all as it is but the norms, which are folded, and the head, which is untied."""
    config = base.network.config
    width, layers = config.intermediate_size, config.num_hidden_layers
    return Coordinates(np.eye(config.hidden_size), (np.arange(width),) * layers, (np.ones(width),) * layers)


def reparametrised(base: LanguageModel, coordinates: Coordinates) -> LanguageModel:
    """The same function in other coordinates. ``base`` is left as it is.

    Raises:
        TaskError: the model has other parameters than a Llama without biases, so that the result might be another
            function.
    """
    weights = {name: tensor.detach().double().numpy() for name, tensor in base.network.named_parameters()}
    layers = _layers(base, weights)
    embedding, rotation = weights[EMBEDDING], coordinates.rotation
    made = {
        EMBEDDING: embedding @ rotation.T,
        NORM: np.ones_like(weights[NORM]),
        HEAD: (weights.get(HEAD, embedding) * weights[NORM]) @ rotation.T,
    }
    for layer in range(layers):
        made |= _layer(weights, layer, coordinates)
    return LanguageModel(base.name, _with_weights(base.network, made), base.tokenizer)


def _layers(base: LanguageModel, weights: dict[str, Doubles]) -> int:
    """How many layers there are, once it is sure that nothing else is."""
    count = int(base.network.config.num_hidden_layers)
    within = (*_READERS, *_WRITERS, *dict.fromkeys(_READERS.values()))
    wanted = {EMBEDDING, NORM, *(f"model.layers.{layer}.{name}" for layer in range(count) for name in within)}
    foreign, missing = sorted(weights.keys() - wanted - {HEAD}), sorted(wanted - weights.keys())
    if foreign or missing:
        what = f"has {foreign[0]}" if foreign else f"lacks {missing[0]}"
        raise TaskError(f"model {one_line(base.name)!r} {what}: instances need a Llama, and without biases")
    return count


def _layer(weights: dict[str, Doubles], layer: int, coordinates: Coordinates) -> dict[str, Doubles]:
    made, prefix, rotation = {}, f"model.layers.{layer}.", coordinates.rotation
    for name, norm in _READERS.items():
        made[prefix + name] = (weights[prefix + name] * weights[prefix + norm]) @ rotation.T
        made[prefix + norm] = np.ones_like(weights[prefix + norm])
    for name in _WRITERS:
        made[prefix + name] = rotation @ weights[prefix + name]
    gate, up, down = (f"{prefix}mlp.{name}_proj.weight" for name in ("gate", "up", "down"))
    order, scale = coordinates.orders[layer], coordinates.scales[layer]
    made[gate] = made[gate][order]
    made[up] = made[up][order] * scale[:, None]
    made[down] = made[down][:, order] / scale
    return made


def _rotation(random: np.random.Generator, size: int) -> Doubles:
    """A uniformly random orthogonal matrix."""
    q, r = np.linalg.qr(random.standard_normal((size, size)))
    return np.asarray(q * np.sign(np.diag(r)))


def _with_weights(network: Any, weights: dict[str, Doubles]) -> Any:
    """A network of the same kind with these weights, and with a head of its own."""
    import torch

    config = copy.deepcopy(network.config)
    config.tie_word_embeddings = False
    with torch.random.fork_rng(devices=[]):  # it draws weights, which nobody will see
        made = type(network)(config)
    for name, tensor in made.named_parameters():
        tensor.data = torch.from_numpy(weights[name].astype(np.float32))
    return made.eval().requires_grad_(False)

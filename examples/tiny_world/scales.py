"""Gives the neurons of tiny-world's MLPs unequal scales, without changing what the network computes.

A neuron's up-projection may be multiplied by any number that its down-projection is divided by. Training with Muon
leaves all matrices with nearly equal singular values, next to which an edit of one direction is a giant. Large models
have neurons of very unequal sizes, some of which are always on; so does this one after the rescaling, and an edit can
hide among its singular values.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import LlamaForCausalLM

#: Standard deviation of the logarithm of the random part, and the power of the steadiness (mean over deviation).
SPREAD, STEADY = 0.6, 0.8
#: Scales are within 1/_MOST and _MOST.
_MOST = 8.0


@torch.no_grad()
def rescale_neurons(model: LlamaForCausalLM, rows: Sequence[Sequence[int]], seed: int) -> None:
    """Rescale all neurons; their steadiness is measured on token rows."""
    generator = torch.Generator().manual_seed(seed)
    for layer in model.model.layers:
        activations = _activations(model, layer.mlp.down_proj, rows)
        steadiness = activations.mean(0).abs() / activations.std(0)
        noise = torch.randn(steadiness.shape, generator=generator)
        scale = torch.exp(SPREAD * noise) * (steadiness / steadiness.log().mean().exp()) ** STEADY
        scale = scale.clamp(1 / _MOST, _MOST)
        layer.mlp.up_proj.weight *= scale[:, None]
        layer.mlp.down_proj.weight /= scale


def _activations(model: LlamaForCausalLM, site: torch.nn.Module, rows: Sequence[Sequence[int]]) -> torch.Tensor:
    """Inputs of the site at all tokens: (tokens, neurons)."""
    seen: list[torch.Tensor] = []
    hook = site.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].flatten(0, 1)))
    for row in rows:
        model(input_ids=torch.tensor([row]))
    hook.remove()
    return torch.cat(seen)

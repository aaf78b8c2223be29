"""What runs inside vLLM's workers when weights come. vLLM imports this; nothing else does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
from vllm.config import set_current_vllm_config
from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead, VocabParallelEmbedding
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload

from weightgym.rollouts.vllm_weights import Shapes, check_shapes, model_shapes

#: What each model takes: to find out takes longer than a small update.
_SHAPES: WeakKeyDictionary[Any, Shapes] = WeakKeyDictionary()


class WeightgymWorker:
    """Methods that vLLM adds to its workers (``worker_extension_cls``)."""

    vllm_config: Any
    model_config: Any
    model_runner: Any

    def weightgym_load(self, weights: Sequence[tuple[str, torch.Tensor]]) -> None:
        """Take new weights, by their names in the checkpoint."""
        with set_current_vllm_config(self.vllm_config):
            load(self.model_runner.get_model(), self.model_config, weights)
        self.model_runner.reset_lora_state()


def load(model: Any, model_config: Any, weights: Sequence[tuple[str, torch.Tensor]]) -> None:
    """Load checkpoint weights, whole blocks of them, into a running model.

    Nothing is loaded unless all of it fits: a load that fails half-way leaves a broken model.

    Raises:
        BackendError: a name or a shape is not the model's, or a block is not whole.
    """
    if model not in _SHAPES:
        _SHAPES[model] = model_shapes(model_config.hf_config)
    check_shapes({name: tuple(weight.shape) for name, weight in weights}, _SHAPES[model], "vLLM")
    with torch.no_grad():
        initialize_layerwise_reload(model)
        model.load_weights(iter(weights))
        finalize_layerwise_reload(model, model_config)
        _repack_tied_head(model)


def _repack_tied_head(model: Any) -> None:
    """Bring a tied output layer up to date.

    On CPUs it computes with a packed copy of its matrix, which a load of the embedding leaves as it was.
    """
    modules = list(model.modules())
    embeddings = {id(one.weight) for one in modules if type(one) is VocabParallelEmbedding}
    for module in modules:
        if isinstance(module, ParallelLMHead) and id(module.weight) in embeddings:
            module.quant_method.process_weights_after_loading(module)

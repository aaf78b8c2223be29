"""What vLLM finds by the entry point ``vllm.general_plugins`` in each of its processes. Imports no vLLM by itself."""

from __future__ import annotations

#: The name of our weight transfer in vLLM's ``weight_transfer_config``.
TRANSFER = "weightgym"


def register() -> None:
    """Tell vLLM of our weight transfer. Called once or more in every process of vLLM."""
    from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory

    if TRANSFER not in WeightTransferEngineFactory._registry:
        WeightTransferEngineFactory.register_engine(TRANSFER, "weightgym.rollouts.vllm_transfer", "WeightTransfer")

"""How weights get into vLLM's workers from another process: the workers' side. vLLM imports this; nothing else does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from vllm.distributed.weight_transfer.base import (
    WeightTransferEngine,
    WeightTransferInitInfo,
    WeightTransferUpdateInfo,
)

from weightgym.rollouts.vllm_gloo import join
from weightgym.rollouts.vllm_worker import load


@dataclass
class GroupInfo(WeightTransferInitInfo):  # type: ignore[misc]
    """Where the group meets that weights are broadcast in; its rank 0 is the trainer.

    ``first_rank`` is that of this server's first worker; ``timeout`` is in seconds.
    """

    host: str
    port: int
    first_rank: int
    world_size: int
    timeout: float


@dataclass
class UpdateInfo(WeightTransferUpdateInfo):  # type: ignore[misc]
    """``path``: a safetensors file on this machine; without it, what rank 0 of the group sends, in this order."""

    path: str = ""
    names: list[str] = field(default_factory=list)
    dtypes: list[str] = field(default_factory=list)
    shapes: list[list[int]] = field(default_factory=list)


class WeightTransfer(WeightTransferEngine):  # type: ignore[misc]
    """Takes weights from a file or over TCP: all of them, before the first is loaded.

    An update that breaks off on the way so leaves the old weights at work.
    """

    init_info_cls = GroupInfo
    update_info_cls = UpdateInfo
    _group: Any = None

    def init_transfer_engine(self, init_info: GroupInfo) -> None:
        """Join the group; the trainer does so at the same time."""
        rank = init_info.first_rank + int(self.parallel_config.rank)
        timeout = timedelta(seconds=init_info.timeout)
        self._group = join(init_info.host, init_info.port, rank, init_info.world_size, timeout)

    def start_weight_update(self) -> None:
        """Nothing is touched before all weights are here."""

    def receive_weights(self, update_info: UpdateInfo) -> None:
        """Take the weights and load them."""
        weights = self._read(Path(update_info.path)) if update_info.path else dict(self._receive(update_info))
        load(self.model, self.model_config, list(weights.items()))

    def finish_weight_update(self) -> None:
        """They are loaded already."""

    def shutdown(self) -> None:
        """Leave the group."""
        self._group = None

    def _read(self, path: Path) -> dict[str, torch.Tensor]:
        if not path.is_file():
            raise FileNotFoundError(f"no {path} on the server's machine: backend.transfer = 'gloo' needs no file")
        return load_file(path)

    def _receive(self, info: UpdateInfo) -> Iterator[tuple[str, torch.Tensor]]:
        if self._group is None:
            raise RuntimeError("no group to receive weights from: init_weight_transfer_engine comes first")
        for name, dtype, shape in zip(info.names, info.dtypes, info.shapes, strict=True):
            weight = torch.empty(shape, dtype=getattr(torch, dtype))
            self._group.broadcast(weight, 0).wait()
            yield name, weight

"""A gloo group of its own beside whatever groups a process has. Needs torch."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch


def join(host: str, port: int, rank: int, world_size: int, timeout: timedelta) -> Any:
    """Join the group that meets at ``host:port``, whose rank 0 serves that port; returns when all are there.

    Raises:
        RuntimeError: they were not all there within ``timeout``.
    """
    dist: Any = torch.distributed
    store = dist.TCPStore(host, port, world_size, rank == 0, timeout)
    return dist.ProcessGroupGloo(dist.PrefixStore("weightgym", store), rank, world_size, timeout)

"""The backends by name. What each needs is imported on use."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from weightgym.rewards.contracts import BackendError
from weightgym.rollouts.backend import Backend


class BackendOptions(BaseModel):
    """How a backend runs: the ``[backend]`` section of configurations, and flags of commands."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    batch_size: int = Field(64, ge=1, description="transformers: sequences generated at once.")
    dtype: Literal["float32", "bfloat16"] = Field("float32", description="transformers, vllm, vllm-server: of weights.")
    max_model_len: int | None = Field(
        None, ge=1, description="vllm, vllm-server: longest sequence. Default: the model's."
    )
    kv_cache_gib: float | None = Field(
        None, gt=0, description="vllm, vllm-server: memory of the cache; needed on CPUs."
    )
    gpu_memory: float | None = Field(None, gt=0, le=1, description="vllm, vllm-server: fraction of the GPU's memory.")
    eager: bool = Field(True, description="vllm, vllm-server: no compilation, quick to start.")
    lora_rank: int = Field(0, ge=0, description="vllm, vllm-server: largest rank of an adapter; 0: none is taken.")
    urls: tuple[str, ...] = Field((), description="vllm-server, openai: running servers; none: servers are started.")
    replicas: int = Field(1, ge=1, description="vllm-server: how many to start.")
    python: str = Field("", description="vllm-server: interpreter of the servers. Default: this one.")
    api_key_env: str = Field("OPENAI_API_KEY", description="openai: environment variable with the key.")
    lanes: int = Field(64, ge=1, description="vllm-server, openai: requests on the way at once.")
    start_timeout: float = Field(600.0, gt=0, description="vllm-server: seconds for a server to start.")
    request_timeout: float = Field(600.0, gt=0, description="vllm, vllm-server, openai: seconds for one answer.")


#: Kind → "module:factory", called with the name behind the colon and the options; and the extra that it needs.
KINDS: Mapping[str, tuple[str, str]] = {
    "transformers": ("weightgym.rollouts.transformers_backend:open_backend", "train"),
    "vllm": ("weightgym.rollouts.vllm_backend:open_backend", "vllm"),
    "vllm-server": ("weightgym.rollouts.vllm_server:open_backend", "train,servers"),
    "openai": ("weightgym.rollouts.openai_backend:open_backend", "servers"),
    "scripted": ("weightgym.rollouts.scripted:open_backend", ""),
    "replay": ("weightgym.rollouts.replay:open_backend", ""),
}


def open_backend(policy: str, options: BackendOptions | None = None) -> Backend:
    """The backend that ``policy`` names: ``KIND:NAME``, or just a model's folder or name for transformers.

    Raises:
        BackendError: it can't be opened; a package is missing (the message names the extra).
    """
    kind, colon, name = policy.partition(":")
    if not colon or kind not in KINDS:
        kind, name = "transformers", policy
    path, extra = KINDS[kind]
    module, _, attribute = path.partition(":")
    try:
        factory: Callable[[str, BackendOptions], Backend] = getattr(importlib.import_module(module), attribute)
        return factory(name, options or BackendOptions())
    except ImportError as error:
        if not extra:
            raise
        raise BackendError(f"{kind} needs {error.name or error}: pip install 'weightgym[{extra}]'") from error

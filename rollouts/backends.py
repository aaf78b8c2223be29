"""The backends by name. What each needs is imported on use."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from weightgym.rewards.contracts import BackendError
from weightgym.rollouts.backend import Backend

_VLLM = ("vllm", "vllm-server")
_HTTP = ("vllm-server", "openai")


def _option(default: Any, description: str, kinds: tuple[str, ...], **limits: Any) -> Any:
    """A field that only backends of those kinds read."""
    return Field(
        default, description=f"{description} [{', '.join(kinds)}]", json_schema_extra={"for": [*kinds]}, **limits
    )


class BackendOptions(BaseModel):
    """How a backend runs: the ``[backend]`` section of configurations, and flags of commands."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    batch_size: int = _option(64, "Sequences generated at once.", ("transformers",), ge=1)
    dtype: Literal["float32", "bfloat16"] = _option("float32", "Of weights.", ("transformers", *_VLLM))
    chat_template: str = _option("", "Jinja file in place of the model's own template.", ("transformers", *_VLLM))
    max_model_len: int | None = _option(None, "Longest sequence. Default: the model's.", _VLLM, ge=1)
    kv_cache_gib: float | None = _option(None, "Memory of the cache. Default on CPUs: 1.", _VLLM, gt=0)
    gpu_memory: float | None = _option(None, "Fraction of the GPU's memory.", _VLLM, gt=0, le=1)
    eager: bool = _option(True, "No compilation: quick to start.", _VLLM)
    lora_rank: int = _option(0, "Largest rank of an adapter; 0: none is taken.", _VLLM, ge=0)
    urls: tuple[str, ...] = _option((), "Running servers; none: servers are started.", _HTTP)
    replicas: int = _option(1, "How many servers to start.", ("vllm-server",), ge=1)
    python: str = _option("", "Interpreter of servers. Default: this one.", ("vllm-server",))
    transfer: Literal["file", "gloo"] = _option(
        "file", "How new weights get to servers: a file on the same machine, or TCP.", ("vllm-server",)
    )
    api_key_env: str = _option("OPENAI_API_KEY", "Environment variable with the key.", ("openai",))
    lanes: int = _option(64, "Requests on the way at once.", (*_VLLM, "openai"), ge=1)
    start_timeout: float = _option(600.0, "Seconds to start.", _VLLM, gt=0)
    request_timeout: float = _option(600.0, "Seconds for one answer.", (*_VLLM, "openai"), gt=0)

    def check(self, kind: str) -> None:
        """See that every option that was given is one that the backend reads.

        Raises:
            BackendError: one isn't.
        """
        for name in sorted(self.model_fields_set & BackendOptions.model_fields.keys()):
            readers = cast(dict[str, list[str]], BackendOptions.model_fields[name].json_schema_extra)["for"]
            if kind not in readers:
                raise BackendError(f"backend.{name} is not read by {kind}, only by {', '.join(readers)}: leave it out")


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
    options = options or BackendOptions()
    options.check(kind)
    path, extra = KINDS[kind]
    module, _, attribute = path.partition(":")
    try:
        factory: Callable[[str, BackendOptions], Backend] = getattr(importlib.import_module(module), attribute)
        return factory(name, options)
    except ImportError as error:
        if not extra:
            raise
        raise BackendError(f"{kind} needs {error.name or error}: pip install 'weightgym[{extra}]'") from error

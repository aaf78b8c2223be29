"""Stock vLLM servers: started here on loopback, or running elsewhere. Needs the extras ``train`` and ``servers``."""

from __future__ import annotations

import atexit
import itertools
import shutil
import tempfile
import threading
import uuid
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from weightgym.rewards.contracts import BackendError
from weightgym.rollouts.backend import Request, Sample, Sampling
from weightgym.rollouts.backends import BackendOptions
from weightgym.rollouts.hf_tokenizer import HFChatTokenizer, model_path
from weightgym.rollouts.token_samples import check_length, read_sample
from weightgym.rollouts.vllm_client import VLLMClient
from weightgym.rollouts.vllm_process import ServerProcess, command, environment, free_ports, wait_until_ready
from weightgym.rollouts.vllm_settings import on_cpu
from weightgym.rollouts.vllm_sync import FileTransfer, GlooTransfer, TornUpdate, Transfer, each, update
from weightgym.rollouts.vllm_weights import load_config, model_shapes, whole_weights


class VLLMServerBackend:
    """One model in one or more vLLM servers; each request goes to the one that has least to do.

    Servers that are started here listen to this machine only and end with this process, whatever ends it.

    Args:
        model: a folder, a Hub name, or ``tiny-writer``; with ``options.urls`` what those servers serve.

    Raises:
        BackendError: a server can't be started or reached; there is no such model, or its tokenizer has no chat
            template or end-of-sequence token.
    """

    batch_size = 1  # requests come one by one, in as many lanes

    def __init__(self, model: str, options: BackendOptions) -> None:
        self.name = f"vllm-server:{model}"
        self.lanes = options.lanes
        self.tokenizer = HFChatTokenizer.load(model, chat_template=options.chat_template)
        self._options = options
        self._shapes = model_shapes(load_config(model))
        self._processes: list[ServerProcess] = []
        self._logs: Path | None = None
        self._served = (0, "")  # version and adapter; one assignment changes both
        self._torn = ""
        self._lock = threading.Lock()
        self._adapters = (f"weightgym-{uuid.uuid4().hex[:8]}-{number}" for number in itertools.count())
        self._old_adapter = ""
        self._pool = ThreadPoolExecutor(options.lanes, thread_name_prefix="vllm-server")
        self._transfer: Transfer = (
            FileTransfer() if options.transfer == "file" else GlooTransfer(options.request_timeout)
        )
        try:
            self._clients = [self._client(url, None) for url in options.urls] or self._start(model)
            self._base, self._longest = self._look()
        except BaseException:
            self.close()
            raise

    @property
    def context(self) -> int:
        """The longest sequence that all servers take."""
        return self._longest

    @property
    def version(self) -> int:
        """The version that requests are answered with from now on."""
        return self._served[0]

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Sample]:
        """One sample a request. Log-probabilities are of the distribution that was sampled from, at its temperature.

        Raises:
            BackendError: a prompt and ``max_tokens`` don't fit, a server has ended, failed or took longer than
                ``request_timeout``; the message names the request.
        """
        for request in requests:
            check_length(request, sampling, self._longest, self.name)
        if len(requests) == 1:
            return [self._answer(requests[0], sampling)]
        futures = [self._pool.submit(self._answer, request, sampling) for request in requests]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()

    def sync(self, weights: Iterable[tuple[str, Any]], version: int) -> None:
        """Have all servers load the tensors; requests on the way go on with them and keep the older version.

        Raises:
            BackendError: a name or a shape is not the model's, or a block is not whole: then nothing is loaded. Or a
                server takes no weights, has ended or failed: where some may have the new weights then, nothing is
                sampled until a sync succeeds.
        """
        given = whole_weights(weights, self._shapes, self.name)
        if self._processes and self._options.dtype == "bfloat16":
            import torch

            given = [(name, weight.to(torch.bfloat16)) for name, weight in given]
        try:
            update(self._clients, self._transfer, given, version, f"{self.name}: sync of version {version}")
        except TornUpdate as error:
            self._torn = str(error)
            raise
        self._torn = ""
        self._served = (version, self._served[1])

    def sync_adapter(self, folder: Path, version: int) -> None:
        """Sample with the LoRA adapter in ``folder`` (as peft saves it) from now on.

        Requests on the way keep the old one.

        Raises:
            BackendError: a server can't load it, or takes no adapters.
        """
        what = f"{self.name}: adapter {folder}"
        if not self._options.lora_rank:
            raise BackendError(f"{self.name} takes no adapters: set backend.lora_rank to their rank")
        # a fresh name, so that nothing that was cached with another adapter is used
        name, path = next(self._adapters), str(folder.resolve())
        body = {"lora_name": name, "lora_path": path}
        each(self._clients, lambda client: client.post("/v1/load_lora_adapter", body, what))
        before, self._served = self._served[1], (version, name)
        stale, self._old_adapter = self._old_adapter, before
        if stale:  # no longer that of any request
            each(self._clients, lambda client: client.post("/v1/unload_lora_adapter", {"lora_name": stale}, what))

    def close(self) -> None:
        """Stop what was started here, in five seconds at most."""
        atexit.unregister(self.close)
        failed = any(process.ended for process in self._processes)
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._transfer.close()
        for client in getattr(self, "_clients", ()):
            client.close()
        if self._logs is not None and not failed:  # an error named the log: then it stays
            shutil.rmtree(self._logs, ignore_errors=True)

    def _answer(self, request: Request, sampling: Sampling) -> Sample:
        if self._torn:
            raise BackendError(f"{self.name}: servers may have different weights since a sync failed: {self._torn}")
        version, adapter = self._served
        what = f"{self.name}: {request.id}"
        body = {
            "model": adapter or self._base,
            "prompt": list(request.token_ids),
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "seed": request.seed,
            "logprobs": 0,  # of the sampled token only
            "return_token_ids": True,
            "return_tokens_as_token_ids": True,  # instead of a text for each
            "stop_token_ids": sorted(self.tokenizer.end_ids),
            "ignore_eos": True,  # those above are all that end a turn
        }
        with self._lock:
            client = min(self._clients, key=lambda one: one.load)
            client.load += 1
        try:
            answer = client.complete(body, what)
        finally:
            with self._lock:
                client.load -= 1
        try:
            (choice,) = answer["choices"]
            ids = tuple(int(id) for id in choice["token_ids"])
            logprobs = tuple(float(value) for value in choice["logprobs"]["token_logprobs"])
        except (KeyError, TypeError, ValueError) as error:
            raise BackendError(f"{what}: {client.url} is no vLLM server: its answer has no {error}") from error
        return read_sample(request, self.tokenizer, ids, logprobs, version)

    def _client(self, url: str, process: ServerProcess | None) -> VLLMClient:
        options = self._options
        return VLLMClient(url, process=process, connections=options.lanes, timeout=options.request_timeout)

    def _start(self, model: str) -> list[VLLMClient]:
        options, cpu = self._options, on_cpu()
        self._logs = Path(tempfile.mkdtemp(prefix="weightgym-vllm-"))
        atexit.register(self.close)
        clients = []
        for index, port in enumerate(free_ports(options.replicas)):
            run = command(model_path(model), port, options, cpu=cpu)
            process = ServerProcess(run, environment(options, cpu=cpu), self._logs / f"replica-{index}.log")
            self._processes.append(process)
            clients.append(self._client(f"http://127.0.0.1:{port}", process))
        for client, process in zip(clients, self._processes, strict=True):
            wait_until_ready(client.healthy, process, name=self.name, timeout=options.start_timeout)
        return clients

    def _look(self) -> tuple[str, int]:
        """The name that the servers have for the model, and the longest sequence that all of them take."""
        found = []
        for client in self._clients:
            models = client.get("/v1/models", self.name).get("data", [])
            base = next((one for one in models if not one.get("parent")), None)
            if base is None or "max_model_len" not in base:
                raise BackendError(f"{self.name}: {client.url} is no vLLM server: it names no model with max_model_len")
            found.append((str(base["id"]), int(base["max_model_len"])))
        return found[0][0], min(longest for _, longest in found)


def open_backend(name: str, options: BackendOptions) -> VLLMServerBackend:
    """For ``backends.open_backend``."""
    return VLLMServerBackend(name, options)

"""A stock vLLM server with a small random model, in the interpreter that has vLLM (the variable VLLM_PYTHON)."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import hub_tokens
import numpy as np
from openai_server import Reply, Seen
from safetensors.numpy import save_file

from weightgym.rollouts import vllm_process
from weightgym.rollouts.backends import BackendOptions
from weightgym.rollouts.vllm_settings import engine_arguments

POSITIONS = 16384
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "vocab_size": 272,
    "max_position_embeddings": POSITIONS,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
}


def save(folder: Path) -> str:
    """A Llama of random parameters, and the tokenizer of ``hub_tokens``."""
    hub_tokens.save(folder)
    random = np.random.default_rng(0)
    width, inner, words = 64, 96, 272
    shapes = {"model.embed_tokens": (words, width), "lm_head": (words, width)}
    for layer in range(2):
        at = f"model.layers.{layer}"
        shapes |= {f"{at}.self_attn.{name}_proj": (width, width) for name in "qo"}
        shapes |= {f"{at}.self_attn.{name}_proj": (width // 2, width) for name in "kv"}
        shapes |= {f"{at}.mlp.{name}_proj": (inner, width) for name in ("gate", "up")}
        shapes |= {f"{at}.mlp.down_proj": (width, inner)}
    weights = {f"{name}.weight": random.normal(0, 0.15, shape).astype("float32") for name, shape in shapes.items()}
    norms = ["model.norm"]
    norms += [f"model.layers.{n}.{name}_layernorm" for n in range(2) for name in ("input", "post_attention")]
    weights |= {f"{name}.weight": np.ones(width, "float32") for name in norms}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(CONFIG | {"eos_token_id": hub_tokens.tokenizer().eos_token_id}))
    return str(folder)


def as_renderers_want(url: str) -> Callable[[int, Seen], Reply]:
    """A script that asks the server, and names tokens as renderers 0.1.12 reads them: vLLM 0.32 writes numbers."""

    def forward(number: int, seen: Seen) -> Reply:
        body = json.dumps(seen.body).encode()
        request = urllib.request.Request(
            url.removesuffix("/v1") + seen.path, body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            made = json.load(answer)
        for token in made["choices"][0]["logprobs"]["content"]:
            token["token"] = f"token_id:{token.pop('token_id')}"
        return Reply(made)

    return forward


def _flag(name: str, value: object) -> str:
    if isinstance(value, bool):
        return f"--{name}" if value else f"--no-{name}"
    return f"--{name}={value}"


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The URL of a server, with chat, and the route that takes and gives token ids."""
    options = BackendOptions(kv_cache_gib=0.25, start_timeout=240)
    model = save(folder)
    (port,) = vllm_process.free_ports(1)
    arguments = engine_arguments(model, options, cpu=True)
    flags = [_flag(name.replace("_", "-"), value) for name, value in arguments.items()]
    flags += ["--enable-scale-out", "--served-model-name=m"]
    run = [os.environ["VLLM_PYTHON"], "-m", "vllm.entrypoints.openai.api_server", f"--port={port}", "--host=127.0.0.1"]
    server = vllm_process.ServerProcess(
        [*run, *flags], vllm_process.environment(options, cpu=True), folder / "server.log"
    )
    url = f"http://127.0.0.1:{port}"

    def ready() -> bool:
        try:
            return bool(urllib.request.urlopen(f"{url}/health", timeout=2).status == 200)
        except OSError:
            return False

    try:
        vllm_process.wait_until_ready(ready, server, name="vLLM", timeout=options.start_timeout)
        yield f"{url}/v1"
    finally:
        server.terminate()
        server.wait()

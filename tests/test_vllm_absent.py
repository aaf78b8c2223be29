"""What must hold where vLLM is not installed, and what our side checks before vLLM is asked. Runs everywhere."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import tiny_models
import torch

from weightgym.rewards.contracts import BackendError
from weightgym.rollouts.backends import BackendOptions, open_backend
from weightgym.rollouts.vllm_process import command
from weightgym.rollouts.vllm_settings import engine_arguments, set_environment
from weightgym.rollouts.vllm_weights import model_shapes, whole_weights


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is installed here")
def test_a_missing_vllm_is_one_clear_line() -> None:
    with pytest.raises(BackendError, match=r"vLLM is not installed in this Python: pip install 'weightgym\[vllm\]'"):
        open_backend("vllm:tiny-writer")


def test_the_plugin_is_found_and_imports_nothing_heavy() -> None:
    (found,) = (one for one in entry_points(group="vllm.general_plugins") if one.name == "weightgym")
    code = (
        "import sys\n"
        "from importlib.metadata import entry_points\n"
        "(one,) = (e for e in entry_points(group='vllm.general_plugins') if e.name == 'weightgym')\n"
        "assert callable(one.load())\n"
        "import weightgym.rollouts.vllm_settings, weightgym.rollouts.vllm_process, weightgym.rollouts.vllm_watch\n"
        "print([name for name in ('torch', 'vllm', 'transformers', 'httpx') if name in sys.modules])"
    )
    assert found.value == "weightgym.rollouts.vllm_plugin:register"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_what_the_user_has_set_stays() -> None:
    environ = {"OMP_NUM_THREADS": "4"}
    set_environment(environ, cpu=True, eager=False)
    assert environ["OMP_NUM_THREADS"] == "4"
    assert "TORCHDYNAMO_DISABLE" not in environ
    set_environment(environ, cpu=True, eager=True)
    assert environ["TORCHDYNAMO_DISABLE"] == "1"


def test_every_option_reaches_the_engine() -> None:
    options = BackendOptions(
        dtype="bfloat16", max_model_len=99, kv_cache_gib=0.5, gpu_memory=0.25, eager=False, lora_rank=5
    )
    arguments = engine_arguments("model", options, cpu=False)
    assert arguments == engine_arguments("model", BackendOptions(), cpu=False) | {
        "dtype": "bfloat16",
        "max_model_len": 99,
        "kv_cache_memory_bytes": 2**29,
        "gpu_memory_utilization": 0.25,
        "enforce_eager": False,
        "enable_lora": True,
        "max_lora_rank": 8,  # ranks that vLLM knows
        "max_loras": 2,
    }
    assert arguments["logprobs_mode"] == "processed_logprobs"
    flags = command("model", 1234, options.model_copy(update={"python": "py"}), cpu=True)
    assert flags[0] == "py"
    for pair in (["--host", "127.0.0.1"], ["--port", "1234"], ["--max-lora-rank", "8"]):
        assert flags[flags.index(pair[0]) :][:2] == pair
    assert {"--no-enforce-eager", "--no-enable-chunked-prefill", "--enable-lora"} <= set(flags)
    with pytest.raises(BackendError, match=r"backend\.lora_rank: 513, vLLM takes 512 at most"):
        engine_arguments("model", BackendOptions(lora_rank=513), cpu=True)


def test_weights_are_checked_before_any_is_loaded() -> None:
    model: Any = tiny_models.model()
    shapes = model_shapes(model.config)
    assert shapes == {name: tuple(weight.shape) for name, weight in model.named_parameters()}
    whole = list(model.named_parameters())
    assert [name for name, _ in whole_weights(iter(whole), shapes, "m")] == list(shapes)
    assert not any(weight.requires_grad for _, weight in whole_weights(whole, shapes, "m"))
    block = [one for one in whole if ".layers.1." in one[0]]
    assert len(whole_weights(block, shapes, "m")) == len(block) > 3
    assert len(whole_weights([("lm_head.weight", model.lm_head.weight)], shapes, "m")) == 1
    for bad, message in (
        (block[1:], r"'model\.layers\.1\..*' is missing \(1 weights in all\): .* send all of model\.layers\.1$"),
        ([("model.layers.2.mlp.up_proj.weight", torch.zeros(1))], "does not exist in the model"),
        ([("lm_heat.weight", torch.zeros(1))], r"does not exist in the model.*lm_head\.weight"),
        ([("lm_head.weight", torch.zeros(257, 31))], r"shape \(257, 31\) has shape \(257, 32\) in the model"),
        ([whole[0], whole[0]], "given twice"),
        ([], "no weights to sync"),
    ):
        with pytest.raises(BackendError, match=message):
            whole_weights(bad, shapes, "m")


def test_a_tied_head_is_the_embedding() -> None:
    config = tiny_models.model().config
    config.tie_word_embeddings = True
    assert "lm_head.weight" not in model_shapes(config)


def test_servers_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    """Killed without a chance to clean up. The server is any command here: the watcher does not know what it runs."""
    script = (
        "import os, sys, time; from pathlib import Path; from weightgym.rollouts.vllm_process import ServerProcess\n"
        'child = \'import subprocess, time; subprocess.Popen(["sleep", "97531"]); time.sleep(99)\'\n'
        "run = [sys.executable, '-c', child]\n"
        "ServerProcess(run, dict(os.environ), Path(sys.argv[1]))\n"
        "print('started', flush=True); time.sleep(99)"
    )

    def found() -> int:
        return subprocess.run(["pgrep", "-f", "^sleep 97531$"], stdout=subprocess.DEVNULL).returncode

    def wait_until(true: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 5
        while not true():
            assert time.monotonic() < deadline
            time.sleep(0.05)

    command = [sys.executable, "-c", script, str(tmp_path / "log")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "started\n"
        wait_until(lambda: found() == 0)
        parent.kill()
    wait_until(lambda: found() == 1)

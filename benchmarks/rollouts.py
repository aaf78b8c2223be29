"""Speed of rollouts: our vLLM backends against raw vLLM on the same prompts, and what the scheduler costs an episode.

    .venv-vllm/bin/python benchmarks/rollouts.py
    .venv-vllm/bin/python benchmarks/rollouts.py --model FOLDER --dtype bfloat16 --max-tokens 32

Both sides of each ratio come from one interleaved run. Raw vLLM is ``LLM.generate`` with the same settings, in a
process of its own that only works when it is asked to.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from weightgym.envs import registry
from weightgym.rewards.contracts import Score
from weightgym.rollouts.backend import Backend, Request, Sampling
from weightgym.rollouts.backends import BackendOptions, open_backend
from weightgym.rollouts.run import jobs, run
from weightgym.rollouts.scripted import ScriptedBackend, empty

WPB = registry.spec("weight-program")
TASKS = tuple(WPB.tasks.task(id) for id in WPB.tasks.ids("train")[:4])

#: What the process with raw vLLM does: a line of prompts and seeds in, tokens and seconds out.
RAW = """
import json, os, sys, time
model, options, tokens, ends = json.loads(sys.argv[1])
from weightgym.rollouts.backends import BackendOptions
from weightgym.rollouts.vllm_settings import engine_arguments, on_cpu, quiet, set_environment
options, cpu = BackendOptions(**options), on_cpu()
set_environment(os.environ, cpu=cpu, eager=options.eager)
with quiet():
    from vllm import LLM, SamplingParams
    started = time.monotonic()
    llm = LLM(**engine_arguments(model, options, cpu=cpu), skip_tokenizer_init=True, disable_log_stats=True)
print(json.dumps({"started": time.monotonic() - started}), flush=True)
for line in sys.stdin:
    rows = json.loads(line)
    params = [
        SamplingParams(max_tokens=tokens, seed=seed, logprobs=0, detokenize=False, stop_token_ids=ends, ignore_eos=True)
        for _, seed in rows
    ]
    prompts = [{"prompt_token_ids": ids} for ids, _ in rows]
    started = time.monotonic()
    outputs = llm.generate(prompts, params, use_tqdm=False)
    seconds = time.monotonic() - started
    made = sum(len(one.outputs[0].token_ids) for one in outputs)
    print(json.dumps({"tokens": made, "seconds": seconds}), flush=True)
"""

#: Tokens and seconds of one batch.
Measured = tuple[int, float]


@contextlib.contextmanager
def raw_vllm(model: str, options: BackendOptions, tokens: int, ends: Sequence[int]) -> Iterator[Any]:
    """A function from requests to what raw vLLM needs for them."""
    settings = json.dumps([model, options.model_dump(exclude={"urls"}), tokens, list(ends)])
    command = [sys.executable, "-c", RAW, settings]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        answers = (line for line in process.stdout if line.startswith("{"))
        print(f"raw vLLM started in {json.loads(next(answers))['started']:.1f} s")

        def measure(requests: Sequence[Request]) -> Measured:
            assert process.stdin is not None
            process.stdin.write(json.dumps([[one.token_ids, one.seed] for one in requests]) + "\n")
            process.stdin.flush()
            found = json.loads(next(answers))
            return found["tokens"], found["seconds"]

        try:
            yield measure
        finally:
            process.stdin.close()
            process.kill()


def opened(kind: str, model: str, options: BackendOptions) -> Backend:
    """The backend; prints how long it took to start."""
    started = time.monotonic()
    backend = open_backend(f"{kind}:{model}", options)
    print(f"{backend.name} started in {time.monotonic() - started:.1f} s")
    return backend


def requests(backend: Backend, count: int, round: int) -> list[Request]:
    """Prompts of four games, and seeds that are new each round."""
    tokenizer = backend.tokenizer
    assert tokenizer is not None
    made = []
    for index in range(count):
        task = TASKS[index % len(TASKS)]
        ids = tokenizer.encode(tokenizer.render(task.messages))
        made.append(Request(f"{round}.{index}", task, tuple(task.messages), ids, 1000 * round + index))
    return made


def timed(backend: Backend, asked: Sequence[Request], sampling: Sampling) -> Measured:
    """What the backend needs for one call."""
    started = time.monotonic()
    samples = backend.generate(asked, sampling)
    return sum(len(one.token_ids) for one in samples), time.monotonic() - started


def compare(kind: str, options: BackendOptions, args: argparse.Namespace) -> None:
    """Tokens a second of the backend and of raw vLLM, in turns, and the ratio of each pair."""
    from weightgym.rollouts.hf_tokenizer import model_path

    backend = opened(kind, args.model, options)
    sampling = Sampling(args.max_tokens)
    assert backend.tokenizer is not None
    ends = sorted(backend.tokenizer.end_ids)
    try:
        with raw_vllm(model_path(args.model), options, args.max_tokens, ends) as raw:
            sides: dict[str, Callable[[Sequence[Request]], Measured]] = {
                backend.name: lambda asked: timed(backend, asked, sampling),
                "raw vLLM": raw,
            }
            for batch in args.batch:
                rates = race(sides, functools.partial(requests, backend, batch), args.rounds)
                ratio = statistics.median(ours / theirs for ours, theirs in zip(*rates.values(), strict=True))
                shown = ", ".join(f"{name} {statistics.median(rate):.0f}" for name, rate in rates.items())
                print(f"{kind}, batch {batch}: {shown} tokens/s; ratio {ratio:.3f} (median of {args.rounds} pairs)")
        print(f"{kind}: sync of all weights {sync_seconds(backend, args):.3f} s")
    finally:
        backend.close()


def race(
    sides: dict[str, Callable[[Sequence[Request]], Measured]], asked: Callable[[int], list[Request]], rounds: int
) -> dict[str, list[float]]:
    """Tokens a second of each side and round, after one round that does not count. Who is first alternates."""
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for round in range(rounds + 1):
        batch = asked(round)
        for name in list(sides) if round % 2 else reversed(list(sides)):
            tokens, seconds = sides[name](batch)
            if round:
                rates[name].append(tokens / seconds)
    return rates


def sync_seconds(backend: Backend, args: argparse.Namespace) -> float:
    """The median of five syncs of all weights, as they are."""
    import torch
    from transformers import AutoModelForCausalLM

    from weightgym.rollouts.hf_tokenizer import model_path

    model: Any = AutoModelForCausalLM.from_pretrained(model_path(args.model), dtype=getattr(torch, args.dtype))
    seconds = []
    for version in range(1, 6):
        started = time.monotonic()
        backend.sync(model.named_parameters(), version)
        seconds.append(time.monotonic() - started)
    return statistics.median(seconds)


def scheduler(rounds: int) -> None:
    """Seconds an episode of the scheduler itself: policy and scorer take no time."""
    entry = WPB
    todo = jobs(TASKS, 250, 0)
    backend = ScriptedBackend("empty", empty)
    whole, bare = [], []
    for _ in range(rounds):
        started = time.monotonic()
        done = sum(1 for _ in run(todo, backend, entry, sampling=Sampling(), profile=entry.default_profile, workers=0))
        whole.append(time.monotonic() - started)
        assert done == len(todo)
        started = time.monotonic()
        scores: list[Score] = []
        for begin in range(0, len(todo), backend.batch_size):
            batch = todo[begin : begin + backend.batch_size]
            asked = [Request(job.id, job.task, tuple(job.task.messages), (), job.seed) for job in batch]
            for job, sample in zip(batch, backend.generate(asked, Sampling()), strict=True):
                scores.append(entry.score(job.task, sample.content))
        bare.append(time.monotonic() - started)
    ours, theirs = statistics.median(whole) / len(todo), statistics.median(bare) / len(todo)
    print(
        f"scheduler, {len(todo)} episodes: {ours * 1e6:.0f} µs an episode, {theirs * 1e6:.0f} µs in a plain loop that "
        f"generates and scores: {(ours - theirs) * 1e6:.0f} µs for the scheduler"
    )


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="tiny-writer", help="a model's folder")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--batch", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--parts", nargs="+", default=["scheduler", "vllm", "vllm-server"])
    args = parser.parse_args()
    options = BackendOptions(dtype=args.dtype, kv_cache_gib=0.5)
    for part in args.parts:
        if part == "scheduler":
            scheduler(args.rounds)
        else:
            compare(part, options, args)


if __name__ == "__main__":
    main()

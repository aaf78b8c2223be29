"""How fast WeightProgramBench scores: the engine against the reference and against a float32 NumPy scorer.

All three play the same policies on the same seeds, one core each, interleaved in rounds. A figure is the median
over the rounds of CPU microseconds a step, a ratio is the median of the rounds' ratios. The NumPy scorer, written here,
is what one would write without the exactness rules: float32 matrix products over the MinAtar package.

    python benchmarks/wpb_scorer.py [--rounds 5] [--games breakout …] [--json FILE]
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from played_in import dense_policy, played_in_policy
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from sides import medians, slow_side

from weightgym.rewards.weight_program import minatar, reference
from weightgym.rewards.weight_program.channels import CHANNEL_MAPS
from weightgym.rewards.weight_program.network import CHANNELS, GRID, Weights, tensors, zero_weights
from weightgym.rewards.weight_program.profile import Profile, profile
from weightgym.rewards.weight_program.simulate import simulate

TARGETS = {"zero": (900, 250), "dense": (200, 60), "played-in": (200, 60)}


def numpy_episode(game: str, weights: Weights, rules: Profile, index: int) -> tuple[int, int]:
    """Score and length of an episode, in float32."""
    net = tensors(weights)
    w1, b1, w2, b2, w3, b3 = (net[name] for name in ("W1", "b1", "W2", "b2", "W3", "b3"))
    pairs = [(native, c) for native, targets in enumerate(CHANNEL_MAPS[game].values()) for c in targets]
    env = minatar.environment(game, sticky=rules.sticky)
    env.seed(rules.env_seed + index)
    env.reset()
    rng = np.random.RandomState(rules.action_seed + index)
    seen = np.empty((GRID, GRID, CHANNELS), dtype=np.bool_)
    score = length = 0
    terminal = False
    while not terminal and length < rules.max_actions:
        state = env.state()
        seen[:] = False
        for native, channel in pairs:
            seen[:, :, channel] |= state[:, :, native]
        hidden = np.tanh(np.tanh(seen.reshape(-1).astype(np.float32) @ w1 + b1) @ w2 + b2)
        logits = hidden @ w3 + b3
        cumulative = np.exp(logits - logits.max()).cumsum()
        action = int((cumulative[:-1] <= rng.random_sample() * cumulative[-1]).sum())
        reward, terminal = env.act(action)
        score += int(reward)
        length += 1
    return score, length


def engine_side(game: str, weights: Weights, rules: Profile) -> tuple[float, float]:
    """CPU microseconds a step, and milliseconds for the 1,000 episodes, on one thread; repeated for 50 ms or more."""
    runs, steps, started = 0, 0, time.process_time()
    while runs == 0 or time.process_time() - started < 0.05:
        steps += int(simulate(game, weights, rules, backend="engine").lengths.sum())
        runs += 1
    elapsed = time.process_time() - started
    return elapsed * 1e6 / steps, elapsed * 1e3 / runs


def measure(game: str, policy: str, weights: Weights, rounds: int) -> dict[str, object]:
    """One row of the result."""
    rules = profile("wpb-v1")
    simulate(game, weights, rules, backend="engine")  # warm
    rows, at_reference, at_numpy = [], 0, 0
    for _ in range(rounds):
        engine, total = engine_side(game, weights, rules)
        judge, at_reference = slow_side(lambda i: reference.play(game, weights, rules, i), at_reference)
        plain, at_numpy = slow_side(lambda i: numpy_episode(game, weights, rules, i), at_numpy)
        rows.append((engine, total, judge, plain, judge / engine, plain / engine))
    names = ("engine_us", "engine_ms_1000", "reference_us", "numpy_us", "reference_ratio", "numpy_ratio")
    return {"game": game, "policy": policy, "rounds": rounds, **dict(zip(names, medians(rows), strict=True))}


def threads_speedup(game: str, rounds: int) -> dict[str, object]:
    """Wall seconds of the played-in policy's 1,000 episodes on one thread and on two, interleaved; medians."""
    weights, rules = played_in_policy(game), profile("wpb-v1")
    rows = []
    for _ in range(rounds):
        started = time.perf_counter()
        simulate(game, weights, rules, backend="engine", threads=1)
        middle = time.perf_counter()
        simulate(game, weights, rules, backend="engine", threads=2)
        one, two = middle - started, time.perf_counter() - middle
        rows.append((one, two, one / two))
    one, two, ratio = medians(rows)
    return {"game": game, "rounds": rounds, "one_thread_s": one, "two_threads_s": two, "speedup": ratio}


def show_threads(results: list[dict[str, object]]) -> None:
    table = Table(title="Two threads against one, played-in policies, wall time (wanted: 1.8x)")
    for heading in ("game", "one thread ms", "two threads ms", "speed-up"):
        table.add_column(heading, justify="left" if heading == "game" else "right")
    for row in results:
        one, two = float(str(row["one_thread_s"])), float(str(row["two_threads_s"]))
        table.add_row(str(row["game"]), f"{one * 1e3:.1f}", f"{two * 1e3:.1f}", f"{row['speedup']:.2f}")
    Console().print(table)


def show(results: list[dict[str, object]]) -> None:
    table = Table(title="CPU time a step, one core; medians of interleaved rounds")
    for heading in ("game", "policy", "engine µs", "1,000 episodes ms", "reference µs", "NumPy µs"):
        table.add_column(heading, justify="left" if heading in ("game", "policy") else "right")
    table.add_column("× reference (wanted)", justify="right")
    table.add_column("× NumPy (wanted)", justify="right")
    for row in results:
        wanted = TARGETS[str(row["policy"])]
        table.add_row(
            str(row["game"]),
            str(row["policy"]),
            *(f"{row[key]:.{digits}f}" for key, digits in (("engine_us", 3), ("engine_ms_1000", 1))),
            *(f"{row[key]:.1f}" for key in ("reference_us", "numpy_us")),
            f"{row['reference_ratio']:.0f} ({wanted[0]})",
            f"{row['numpy_ratio']:.0f} ({wanted[1]})",
        )
    Console(width=max(100, Console().width)).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--games", nargs="+", choices=sorted(CHANNEL_MAPS), default=sorted(CHANNEL_MAPS))
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    arguments = parser.parse_args()
    results = []
    policies: dict[str, Callable[[str], Weights]] = {
        "zero": lambda game: zero_weights(),
        "dense": lambda game: dense_policy(),
        "played-in": played_in_policy,
    }
    with Progress(transient=True) as progress:
        bar = progress.add_task("measuring", total=len(arguments.games) * len(policies))
        for game in arguments.games:
            for policy, make in policies.items():
                results.append(measure(game, policy, make(game), arguments.rounds))
                progress.advance(bar)
    show(results)
    threads = [threads_speedup(game, 3 * arguments.rounds) for game in arguments.games]
    show_threads(threads)
    if arguments.json:
        arguments.json.write_text(json.dumps({"scorers": results, "threads": threads}, indent=1) + "\n")


if __name__ == "__main__":
    main()

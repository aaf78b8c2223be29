"""What a phase costs, warm and cold: starting it, a few steps of training in PyTorch, and ending it.

Run: ``python benchmarks/sandbox.py``. Both sides take turns, so that a busy machine slows both.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from weightgym.rewards.sandbox import Sandbox, SandboxPolicy

TESTS = Path(__file__).parents[1] / "tests"
WARM_PER_COLD = 5
ROUNDS = 3


def phase_seconds(sandbox: Sandbox) -> float:
    """Wall-clock seconds of a phase, from its start to its end."""
    started = time.perf_counter()
    with sandbox.start("train", {"data": bytes(64 * 64)}) as phase:
        phase.receive()
        phase.finish()
    return time.perf_counter() - started


def main() -> None:
    """Print the median of each side, and their ratio."""
    policy = SandboxPolicy(cpu_seconds=30, packages=("torch", "numpy"))
    sides: dict[str, list[float]] = {"warm": [], "cold": []}
    with (
        Sandbox(policy, TESTS / "sandbox_torch_runner.py") as warm,
        Sandbox(policy, TESTS / "sandbox_torch_runner.py", warm=False) as cold,
    ):
        started = time.perf_counter()
        phase_seconds(warm)
        print(f"first warm phase, with the zygote's start: {time.perf_counter() - started:.2f} s")
        for _ in range(ROUNDS):
            sides["cold"].append(phase_seconds(cold))
            sides["warm"] += [phase_seconds(warm) for _ in range(WARM_PER_COLD)]
    medians = {name: statistics.median(side) for name, side in sides.items()}
    for name, seconds in medians.items():
        print(f"{name}: {seconds:.3f} s a phase (median of {len(sides[name])})")
    print(f"cold / warm: {medians['cold'] / medians['warm']:.1f}")


if __name__ == "__main__":
    main()

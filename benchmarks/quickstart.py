"""Whether the quickstart learns, seed by seed, and how long it takes.

    python benchmarks/quickstart.py [--seeds 0 1 2] [--field value]...

For each seed: mean reward of the first five steps (the policy is then as good as untrained: the rate warms up) and of
the last ten, their ratio and difference, the held-out original before and after, and seconds. A seed passes with three
times the reward and a rise of 0.05. The exit code is 1 if one doesn't. Fields are those of `weightgym train --fields`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from weightgym.trainers.config import load
from weightgym.trainers.grpo import Trainer

EXAMPLE = Path(__file__).parents[1] / "examples" / "quickstart.toml"
FIRST, LAST = 5, 10
RATIO, RISE = 3.0, 0.05


def rise(rewards: list[float]) -> tuple[float, float]:
    """Mean of the first and of the last steps."""
    return statistics.fmean(rewards[:FIRST]), statistics.fmean(rewards[-LAST:])


def learnt(first: float, last: float) -> bool:
    """Whether that is the rise that the quickstart promises."""
    return last >= RATIO * first and last - first >= RISE


def run(seed: int, folder: Path, flags: list[str]) -> bool:
    """One seed; prints its line."""
    started, cpu = time.perf_counter(), time.process_time()
    with Trainer(load(EXAMPLE, [*flags, "--seed", str(seed), "--output", str(folder)])) as trainer:
        rows = list(trainer.train())
    worst = max(row["rollout/invalid"] for row in rows if "rollout/invalid" in row)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    first, last = rise([row["reward/mean"] for row in rows if "reward/mean" in row])
    before, after = (row["eval/reward"] for row in rows if "eval/reward" in row)
    told = f"{first:.4f} -> {last:.4f}, x{last / first:.2f}, +{last - first:.3f}"
    held_out = f"breakout {before:.5f} -> {after:.5f}"
    end = "" if learnt(first, last) else "  TOO LITTLE"
    print(
        f"seed {seed}: {told}; {held_out}; at most {worst:.0%} invalid; {seconds:.0f} s wall, {cpu:.0f} s CPU{end}",
        flush=True,
    )
    return learnt(first, last)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    args, flags = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        done = [run(seed, Path(folder) / str(seed), flags) for seed in args.seeds]
    print(f"{sum(done)} of {len(done)} seeds pass")
    sys.exit(not all(done))


if __name__ == "__main__":
    main()

"""Whether golf-cpu-v1 ranks solutions as a larger profile does: Spearman's rank correlation on the reference answers.

    python benchmarks/golf_ranking.py [--task lang/24] [--against golf-full-v1] [--output FILE] [ANSWER]...

The other profile is ``medium`` by default: all of a solution's steps, with a quarter of its batch, and 128 kB of
validation. Each result is appended to the output as one line of JSON when it comes, and is not worked out again: a run
that was interrupted goes on where it was. The medium profile takes some five times the CPU-seconds of golf-cpu-v1,
golf-full-v1 without a GPU some twenty-five times.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from weightgym.envs.golf.references import LADDER, NAMES, solution
from weightgym.rewards.golf.data.corpus import language_corpus
from weightgym.rewards.golf.evaluate import Evaluator
from weightgym.rewards.golf.profile import DEFAULT, Profile, profile
from weightgym.rewards.golf.report import Result
from weightgym.rewards.golf.saved import Saved, outputs

MEDIUM = dataclasses.replace(
    profile(DEFAULT),
    name="medium",
    train_bytes=12_000_000,
    val_bytes=128_000,
    train_seconds=1200,
    post_seconds=1200,
    step_share=(1, 1),
    batch_divisor=4,
)


def ranks(values: Sequence[float]) -> npt.NDArray[np.float64]:
    """1 for the least; equal values share the mean of their ranks. float64 [n]"""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    mean: npt.NDArray[np.float64] = (np.cumsum(count) - (count - 1) / 2)[place]
    return mean


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """The correlation of the ranks; NaN where all of one side are equal."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.corrcoef(ranks(one), ranks(other))[0, 1])


def evaluated(rules: Profile, task: str, names: Sequence[str], path: Path) -> dict[str, Result]:
    """The result of each answer, from the file, or from a run that adds it to the file."""
    found: dict[str, Result] = {}
    with Evaluator(rules, jobs=1) as evaluator, Saved(path) as saved:
        results = outputs(evaluator, [solution(name).encode() for name in names], language_corpus(rules, task), saved)
        for name, result in zip(names, results, strict=True):
            if not isinstance(result, Result):
                raise result
            found[name] = result
            print(f"{rules.name}: {name} {shown(result)}", file=sys.stderr, flush=True)
    return found


def shown(result: Result) -> str:
    """Its score, or why there is none."""
    return result.reason or "" if result.val_bpb is None else f"{result.val_bpb:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answers", nargs="*", default=LADDER, metavar="ANSWER", help=", ".join(NAMES))
    parser.add_argument("--task", default="lang/24")
    parser.add_argument("--against", default=MEDIUM.name, metavar="PROFILE")
    parser.add_argument("--output", type=Path, default=Path("golf_ranking.jsonl"))
    args = parser.parse_args()
    other = MEDIUM if args.against == MEDIUM.name else profile(args.against)
    sides = [evaluated(rules, args.task, args.answers, args.output) for rules in (profile(DEFAULT), other)]

    print(f"{args.task:<20}{DEFAULT:>14}{'CPU-s':>8}{other.name:>20}{'CPU-s':>8}")
    for name in args.answers:
        cells = [(shown(side[name]), sum(side[name].cpu_s.values())) for side in sides]
        print(f"{name:<20}{cells[0][0]:>14}{cells[0][1]:>8.1f}{cells[1][0]:>20}{cells[1][1]:>8.1f}")
    scores = [[result.val_bpb for result in side.values() if result.val_bpb is not None] for side in sides]
    if len(scores[0]) == len(scores[1]) == len(args.answers):
        print(f"Spearman's rank correlation: {spearman(*scores):.3f} over {len(args.answers)} answers")
    else:
        print("no correlation: some answers have no score")


if __name__ == "__main__":
    main()

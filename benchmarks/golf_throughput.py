"""Candidates a minute, warm against cold, and where a candidate's time goes.

    python benchmarks/golf_throughput.py [--rounds 3] [--profile golf-cpu-v1] [FILE]...

Cold starts an interpreter for each phase, warm forks each from one that is ready; both evaluate the same candidates, in
turn, as many at once as there are cores. Without files there are two: the default model, and one of 128 by 2 with rows
of 128. The breakdown comes from a run of its own, one candidate at a time: shares of its wall-clock time. What is
neither training, nor packing, nor the first view is the price of not being fooled: view B, the artifact's audit, the
bits, and the sandbox.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from pathlib import Path

from sides import medians

from weightgym.rewards.golf.data.corpus import Corpus, language_corpus
from weightgym.rewards.golf.evaluate import Evaluator
from weightgym.rewards.golf.profile import DEFAULT, profile
from weightgym.rewards.golf.report import CHARGED, Result
from weightgym.rewards.golf.schedule import evaluate_all

SMALL = '{"model_dim": 128, "num_layers": 2, "seq_len": 128}'
CANDIDATES = {
    name: f"def get_config() -> dict:\n    return {config}\n".encode()
    for name, config in (("128x2", SMALL), ("default", "{}"))
}


def a_minute(evaluator: Evaluator, source: bytes, corpus: Corpus, count: int) -> float:
    """Candidates a minute, ``count`` of them in flight as the evaluator likes."""
    started = time.perf_counter()
    for _, result in evaluate_all(evaluator, ((number, source) for number in range(count)), corpus):
        assert isinstance(result, Result)
        assert result.status == "ok", result
    return 60 * count / (time.perf_counter() - started)


def breakdown(evaluator: Evaluator, source: bytes, corpus: Corpus) -> Mapping[str, float]:
    """Seconds of one candidate alone: each phase's, the rest of this process's, and the sandbox's."""
    started, ours = time.perf_counter(), time.process_time()
    result = evaluator.evaluate(source, corpus)
    ours, whole = time.process_time() - ours, time.perf_counter() - started
    seconds = {str(name): spent for name, spent in result.phase_s.items()}
    seconds["account and bits"] = ours
    seconds["sandbox"] = max(0.0, whole - sum(seconds.values()))
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profile", default=DEFAULT)
    args = parser.parse_args()
    rules = profile(args.profile)
    corpus = language_corpus(rules, "lang/0")
    candidates = {path.name: path.read_bytes() for path in args.files} or CANDIDATES
    with Evaluator(rules) as warm, Evaluator(rules, warm=False) as cold, Evaluator(rules, jobs=1) as alone:
        for name, source in candidates.items():
            warm.evaluate(source, corpus), alone.evaluate(source, corpus)  # the zygotes start
            rows = []
            for number in range(args.rounds):
                sides = (warm, cold) if number % 2 else (cold, warm)
                speed = {side.warm: a_minute(side, source, corpus, 2 * side.jobs) for side in sides}
                rows.append((speed[True], speed[False], speed[True] / speed[False]))
            fast, slow, ratio = medians(rows)
            print(f"{name}: warm {fast:.1f} a minute, cold {slow:.1f}; warm / cold {ratio:.2f}", flush=True)
            parts = breakdown(alone, source, corpus)
            whole = sum(parts.values())
            shown = ", ".join(f"{part} {seconds:.2f} s" for part, seconds in parts.items())
            price = 1 - sum(parts[part] for part in CHARGED) / whole
            print(f"  {shown}; audit and sandbox {price:.0%} of {whole:.2f} s", flush=True)


if __name__ == "__main__":
    main()

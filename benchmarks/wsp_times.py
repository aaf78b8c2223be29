"""How long things of WSP-Bench take on tiny-world, beside what was aimed at: CPU-seconds of one thread, medians.

.venv/bin/python benchmarks/wsp_times.py
.venv/bin/python benchmarks/wsp_times.py --instances 12 --no-make
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from weightgym.cli.wsp_play import conversation, script
from weightgym.envs.wsp.tasks import SOURCE
from weightgym.rewards.contracts import Task
from weightgym.rewards.wsp import sets
from weightgym.rewards.wsp.episode import Episode
from weightgym.rewards.wsp.instances import InstanceKey
from weightgym.rewards.wsp.language_model import load
from weightgym.rewards.wsp.make.generator import Maker
from weightgym.rewards.wsp.make.set_file import world_of
from weightgym.rewards.wsp.profile import FAMILIES, TIERS, profile
from weightgym.rewards.wsp.scorer import Ended, scored

#: What the specification aims at.
AIMS = {"make an instance": 5.0, "a whole scripted episode": 10.0, "score": 5.0}

Times = dict[str, list[float]]


@contextmanager
def timed(times: Times, what: str) -> Iterator[None]:
    """Add the CPU-seconds of a block."""
    started = time.process_time()
    yield
    times[what].append(time.process_time() - started)


def play(task: Task, times: Times) -> None:
    """The instance in memory, then an episode of the oracle and of the baseline that uses its budget."""
    truth = sets.truth_of(task)
    with timed(times, "load an instance"):
        subject = sets.subject_of(truth)
    for name in ("oracle", "budget"):
        with timed(times, f"a whole scripted episode ({name})"):
            episode = Episode(subject.engine, sets.data_of(task))
            for _ in conversation(episode, script(task, name, 0)):
                pass
            with timed(times, f"score ({'first of its instance' if name == 'oracle' else 'another'})"):
                scored(Ended.of(episode), truth, subject)


def make(number: int, times: Times) -> None:
    """One instance of each family, in a tier that changes with the number."""
    base = load()
    maker = Maker(base, world_of(base), b"the secret of a benchmark", profile("wsp-v1"))
    for family in FAMILIES:
        key = InstanceKey("wsp-v1", maker.model_hash, family, TIERS[number % 3], "train", 1, number)
        with timed(times, "make an instance"):
            made = maker.make(key)
        print(f"made {family} {key.tier} after {len(made.rejected)} rejected candidates", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=6, help="of the shipped set that are played")
    parser.add_argument("--no-make", action="store_true", help="make none")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    times: Times = defaultdict(list)
    for id in SOURCE.ids("test")[: arguments.instances]:
        play(SOURCE.task(id), times)
    if not arguments.no_make:
        make(0, times)
    print(f"{'':44} {'median':>8} {'largest':>8} {'aim':>6}")
    for what, seconds in times.items():
        aim = next((f"{value:g}" for name, value in AIMS.items() if what.startswith(name)), "")
        print(f"{what:44} {statistics.median(seconds):8.2f} {max(seconds):8.2f} {aim:>6}")


if __name__ == "__main__":
    main()

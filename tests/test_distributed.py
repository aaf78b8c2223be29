"""Several processes train as one does, and none waits for ever for another that is gone."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import ranks
import torch
from digits_runs import without_seconds
from safetensors.torch import load_file

from weightgym.trainers.distributed import World, clip_gradients, join
from weightgym.trainers.loss import LossStatistics
from weightgym.trainers.metrics import read as read_metrics

LOST_RANK = Path(__file__).with_name("lost_rank.py")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def two_ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All cases, trained by two processes under torchrun, one row at a time: 4 of 7 rows and 3 of 7."""
    folder = tmp_path_factory.mktemp("ranks")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*command, ranks.__file__, folder],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.fixture(scope="session")
def one_rank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same by this process, four rows at a time."""
    folder = tmp_path_factory.mktemp("alone")
    for case in ranks.CASES:
        ranks.train(World(), case, folder / case, micro_batch=4)
    return folder


def difference(one: Path, other: Path) -> float:
    """The largest of any weight, after the same names and shapes."""
    first, second = load_file(one), load_file(other)
    assert {name: tensor.shape for name, tensor in first.items()} == {n: t.shape for n, t in second.items()}
    return max(float((first[name] - second[name]).abs().max()) for name in first)


def exact(case: str) -> bool:
    """Passes in bfloat16 round where processes cut the work; weights stay float32, three steps of 0.001 apart."""
    return case != "bfloat16"


@pytest.mark.slow
@pytest.mark.parametrize("case", ranks.CASES)
def test_two_processes_are_one(case: str, two_ranks: Path, one_rank: Path) -> None:
    two, one = two_ranks / case, one_rank / case
    assert difference(two / "unbroken.safetensors", one / "unbroken.safetensors") < (1e-5 if exact(case) else 0.01)
    for ours, theirs in zip(*(json.loads((run / "metrics.json").read_text()) for run in (two, one)), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-4 if exact(case) else 0.05, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("case", ranks.CASES)
def test_a_resumed_run_is_an_unbroken_one(case: str, two_ranks: Path, one_rank: Path, tmp_path: Path) -> None:
    for run in (one_rank, two_ranks):
        assert difference(run / case / "resumed.safetensors", run / case / "unbroken.safetensors") == 0
    # A checkpoint of two processes, gone on with by one.
    again = ranks.Run(World(), case, two_ranks / case, micro_batch=4, resume=True)
    again.update()
    again.folder = tmp_path
    again.write("weights")
    assert difference(tmp_path / "weights.safetensors", one_rank / case / "unbroken.safetensors") < (
        1e-5 if exact(case) else 0.01
    )


@pytest.mark.slow
def test_a_checkpoint_of_two_processes_has_no_trace_of_them(two_ranks: Path, one_rank: Path) -> None:
    for case in ranks.CASES:
        folders = [run / case / "checkpoint" for run in (two_ranks, one_rank)]
        names = [sorted(path.name for path in folder.iterdir()) for folder in folders]
        assert names[0] == names[1]
        for file in ("config.json", "run.json", "tokenizer_config.json"):
            texts = [(folder / file).read_text() for folder in folders if (folder / file).exists()]
            assert len(set(texts)) <= 1, file
        for file in (name for name in names[0] if name.endswith(".safetensors")):
            loose = 1e-5 if exact(case) else 1.0  # moments of gradients
            assert difference(folders[0] / file, folders[1] / file) < loose


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_the_trainer_of_two_processes_is_that_of_one(two_ranks: Path, tmp_path: Path, mode: str) -> None:
    ranks.grpo(World(), tmp_path, mode)
    runs = [read_metrics(folder / "run" / "metrics.jsonl") for folder in (two_ranks / mode, tmp_path)]
    # Steps, and evaluations at the beginning and at both ends.
    assert len(runs[0]) == len(runs[1]) == 3 + (3 if mode == "sync" else 2)
    for ours, theirs in zip(*map(without_seconds, runs), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-3, abs=1e-5)
    ours, theirs = (folder / "run/checkpoint/model.safetensors" for folder in (two_ranks / mode, tmp_path))
    assert difference(ours, theirs) < 1e-4


def launch(how: str, timeout: float) -> tuple[float, list[int], list[str]]:
    """Two ranks without torchrun, which would end the other one itself.

    The seconds that the main one took, and of both the exit status and the last line. One that hangs is killed then.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}
    started = time.monotonic()
    processes = [
        subprocess.Popen(
            [sys.executable, LOST_RANK, how, str(timeout)],
            env=os.environ | place | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    lines = [processes[0].communicate(timeout=120)[1].splitlines()[-1]]
    seconds = time.monotonic() - started
    if how == "hangs":
        processes[1].kill()
    rest = processes[1].communicate(timeout=60)[1]
    return seconds, [process.returncode for process in processes], [*lines, (rest.splitlines() or [""])[-1]]


@pytest.mark.slow
@pytest.mark.parametrize(("how", "timeout"), [("dies", 300), ("hangs", 12)])
def test_a_rank_that_is_gone_is_an_error(how: str, timeout: float) -> None:
    seconds, statuses, lines = launch(how, timeout)
    assert seconds < 100  # most of it is imports; the one that died is not waited for
    assert statuses[0] == 1
    assert f"WorldError: rank 0 of 2: another rank died, or was silent for {timeout} s" in lines[0]


@pytest.mark.slow
def test_everyone_hears_of_the_main_ranks_failure() -> None:
    _, statuses, lines = launch("fails", 60)
    assert statuses == [1, 1]
    assert lines[0].endswith("ValueError: bytes must be in range(0, 256)")
    assert "WorldError: rank 1 of 2: the main rank failed: ValueError: bytes must be in range(0, 256)" in lines[1]


@pytest.mark.parametrize("ranks_", [1, 2, 3, 8])
@pytest.mark.parametrize("size", [1, 2, 5, 100])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 8, 16])
def test_rows_are_dealt_once_and_in_equally_many_parts(ranks_: int, size: int, count: int) -> None:
    rows = list(range(count))
    dealt = [World(rank, ranks_).split(rows, size) for rank in range(ranks_)]
    assert len({len(parts) for parts in dealt}) == 1
    assert all(1 <= len(part.rows) <= size for parts in dealt for part in parts)
    assert sorted(row for parts in dealt for part in parts if not part.idle for row in part.rows) == rows
    if ranks_ == 1:
        assert [row for part in dealt[0] for row in part.rows] == rows
        assert not any(part.idle for part in dealt[0])


def test_one_process_talks_to_nobody() -> None:
    with join() as world:
        assert (world.rank, world.size, world.is_main) == (0, 1, True)
        assert world.total(3, 0.25) == (3, 0.25)
        statistics = LossStatistics(0.1, 0.2, 0.3, 1.0, None, 0.4, 0.5, 0.6)
        assert world.combine(statistics) == statistics
        assert world.from_main(lambda: b"rows") == b"rows"
        world.barrier()
        assert not torch.distributed.is_initialized()
    weight = torch.nn.Parameter(torch.zeros(2))
    weight.grad = torch.tensor([3.0, 4.0])
    assert clip_gradients([weight], 1.0) == 5
    assert weight.grad.tolist() == pytest.approx([0.6, 0.8])

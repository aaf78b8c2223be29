"""Trackers, the real ones, offline: what was logged can be read back, resumed runs go on, faults stop no training."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from weightgym.trainers import trackers
from weightgym.trainers.trackers import Tracker, TrackerError, TrackerName, TrackerWarning, open_trackers

CONFIG: dict[str, Any] = {"model": "tiny-writer", "tasks": ["one"], "rollout": {"groups": 2}}

#: A process that trains from one step to another: each tracker gets one of its own, as its packages keep global state.
TRAIN = """
import sys
from pathlib import Path
from weightgym.trainers.trackers import open_trackers
name, folder, first, last = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
config = {"model": "tiny-writer", "tasks": ["one"], "rollout": {"groups": 2}}
with open_trackers([name], run_folder=folder, project="weightgym-tests", config=config) as tracker:
    for step in range(first, last + 1):
        tracker.log({"step": step, "reward/mean": step / 8, "loss/kl": float("nan")}, step)
    tracker.log({"step": last, "eval/reward": 0.5}, last)
print("trained")
"""


def train(name: TrackerName, folder: Path, first: int, last: int) -> None:
    """Warnings are errors, and stdout is the command's own."""
    environment = os.environ | {"WANDB_MODE": "offline", "TRACKIO_DIR": str(folder / "trackio"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", TRAIN, name, str(folder), str(first), str(last)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "trained\n"


def ids(folder: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads((folder / "trackers.json").read_text())
    return found


def test_tensorboard(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    train("tensorboard", tmp_path / "run", 1, 5)
    train("tensorboard", tmp_path / "run", 4, 8)  # killed after step 5, resumed from the checkpoint of step 3
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    assert [(one.step, one.value) for one in events.Scalars("reward/mean")] == [(n, n / 8) for n in range(1, 9)]
    assert [(one.step, one.value) for one in events.Scalars("eval/reward")] == [(8, 0.5)]
    assert set(events.Tags()["scalars"]) == {"reward/mean", "eval/reward"}


def test_trackio(tmp_path: Path) -> None:
    read = (
        "import json, trackio\nfrom trackio.sqlite_storage import SQLiteStorage\n"
        "runs = list(trackio.Api().runs('weightgym-tests'))\n"
        "logs = [SQLiteStorage.get_logs('weightgym-tests', run.name) for run in runs]\n"
        "print(json.dumps([[run.name for run in runs], [run.config for run in runs], logs]))"
    )
    train("trackio", tmp_path / "run", 1, 5)
    train("trackio", tmp_path / "run", 6, 8)
    environment = os.environ | {"TRACKIO_DIR": str(tmp_path / "run" / "trackio")}
    done = subprocess.run([sys.executable, "-c", read], env=environment, capture_output=True, text=True, check=True)
    names, configs, logs = json.loads(done.stdout)
    assert names == [ids(tmp_path / "run")["trackio"]]
    assert CONFIG.items() <= configs[0].items()
    found = [(row["step"], row["reward/mean"]) for row in logs[0] if "reward/mean" in row]
    assert found == [(n, n / 8) for n in range(1, 9)]
    assert [row["step"] for row in logs[0] if "eval/reward" in row] == [5, 8]
    assert all("loss/kl" not in row for row in logs[0])


def test_wandb(tmp_path: Path) -> None:
    """Offline files are in wandb's own form: names and values are looked for in their bytes."""
    train("wandb", tmp_path / "run", 1, 5)
    first = ids(tmp_path / "run")["wandb"]
    train("wandb", tmp_path / "run", 4, 8)
    assert ids(tmp_path / "run")["wandb"] == first
    files = sorted(
        (tmp_path / "run" / "wandb").glob(f"offline-run-*/run-{first}.wandb"), key=lambda path: path.stat().st_mtime_ns
    )
    assert len(files) == 2  # two parts of one run
    for file, values in zip(files, (["0.125", "0.625"], ["0.875", "1"]), strict=True):
        content = file.read_bytes()
        for text in ("reward/mean", "eval/reward", "tiny-writer", *values):
            assert text.encode() in content
        assert b"loss/kl" not in content


def test_no_tracker_is_fine(tmp_path: Path) -> None:
    with open_trackers([], run_folder=tmp_path, project="p", config=CONFIG) as tracker:
        tracker.log({"step": 1, "reward/mean": 1.0}, 1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["trackio", "wandb", "tensorboard"])
def test_a_missing_extra_is_one_line_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: Any) -> None:
    for module in [name, "torch.utils.tensorboard"]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(TrackerError, match=rf"tracker {name} needs .*: pip install 'weightgym\[{name}\]'") as caught:
        open_trackers([name], run_folder=tmp_path, project="p", config=CONFIG)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["mlflow"], "trackers: 'mlflow' is no tracker: want trackio, wandb, tensorboard"),
        (["wandb", "wandb"], "trackers: 'wandb' is given twice"),
    ],
)
def test_wrong_names(tmp_path: Path, names: Any, said: str) -> None:
    with pytest.raises(TrackerError, match=said):
        open_trackers(names, run_folder=tmp_path, project="p", config=CONFIG)


@pytest.mark.parametrize("content", ["half {", "[]", "3"])
def test_broken_ids_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    (tmp_path / "trackers.json").write_text(content)
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    with pytest.raises(TrackerError, match=r"trackers\.json is no JSON object of names: delete it"):
        open_trackers(["trackio"], run_folder=tmp_path, project="p", config=CONFIG)


class Sink:
    """A tracker that notes what it gets, fails at a step, or never ends."""

    def __init__(self, fails: float = math.inf, *, close: Any = lambda: None) -> None:
        self.got: list[tuple[int, dict[str, float]]] = []
        self.fails = fails
        self.close = close

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        if step >= self.fails:
            raise ConnectionError("no\nroute")
        self.got.append((step, dict(metrics)))


def test_a_tracker_that_fails_warns_once_and_the_others_go_on() -> None:
    bad, good = Sink(fails=2), Sink()
    tracker = Tracker({"wandb": bad, "trackio": good})
    tracker.log({"step": 1, "a": 1.0, "b": math.inf}, 1)
    with pytest.warns(
        TrackerWarning, match="wandb failed at step 2 and gets no more metrics: ConnectionError: no route"
    ):
        tracker.log({"a": 2.0}, 2)
    tracker.log({"a": 3.0}, 3)  # warnings are errors: none here
    assert [step for step, _ in good.got] == [1, 2, 3]
    assert good.got[0] == (1, {"a": 1.0})


def test_closing_has_a_bound_and_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(trackers, "_CLOSE", 0.2)
    release, closed = threading.Event(), Sink()
    stdout = sys.stdout

    def fail() -> None:
        raise SystemExit(3)

    tracker = Tracker({"wandb": Sink(close=release.wait), "tensorboard": Sink(close=fail), "trackio": closed})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tracker.close()
        tracker.close()
    release.set()
    assert [str(one.message) for one in caught] == [
        "wandb did not finish within 0.2 s: its last metrics may be missing",
        "tensorboard failed as it was closed: SystemExit: 3",
    ]
    assert sys.stdout is stdout


def test_what_was_opened_is_closed_if_another_cannot_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []

    def good(*_: Any) -> Sink:
        return Sink(close=lambda: closed.append("trackio"))

    def bad(*_: Any) -> Sink:
        raise RuntimeError("no login")

    monkeypatch.setattr(trackers, "_OPEN", {"trackio": good, "wandb": bad})
    with pytest.raises(TrackerError, match="tracker wandb can't begin: RuntimeError: no login; WANDB_MODE=offline"):
        open_trackers(["trackio", "wandb"], run_folder=tmp_path, project="p", config=CONFIG)
    assert closed == ["trackio"]

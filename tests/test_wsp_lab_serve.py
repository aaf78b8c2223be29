"""``weightgym wsp serve`` as a process: an episode from opening to report."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from wsp_sets import call, hand_made, said, undo

from weightgym.cli.main import cli
from weightgym.rewards.contracts import Task
from weightgym.rewards.wsp import sets
from weightgym.rewards.wsp.lab.client import LabClient

WEIGHTGYM = [sys.executable, "-c", "from weightgym.cli.main import main; main()"]


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Any, Task]]:
    with hand_made(tmp_path_factory.mktemp("set")) as made:
        yield made


def test_an_episode_from_opening_to_report(tasks: dict[Any, Task], tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    environment = {**os.environ, "WEIGHTGYM_LAB_TOKEN": "battery-staple", "OMP_NUM_THREADS": "1"}
    own = ["--instances", str(sets.paths()[1])]
    command = [*WEIGHTGYM, "wsp", "serve", "--results", str(results), *own]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            served = re.fullmatch(r"(http://127.0.0.1:\d+) serves 3 instances on the fixed track; token (\S+)\n", line)
            assert served, line
            assert served[2] == "battery-staple"
            client = LabClient(served[1], served[2])
            repaired, left = client.open(tasks["hijack"].id), client.open(tasks["audit"].id)
            assert [one["role"] for one in repaired.messages] == ["system", "user"]
            asked = said(*undo("hijack"), call("generate", prompts=["where does tobin live ?"]))
            for reply in repaired.message(asked).messages:
                assert not reply["content"].startswith("refused")
            assert repaired.message(said(call("submit"))).done
            left.message(said(call("edit_log")))
            client.close()
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()
    rows = {row["task"]: row for row in map(json.loads, results.read_text().splitlines())}
    repair, cut = rows[tasks["hijack"].id], rows[tasks["audit"].id]
    assert repair["score"]["metrics"]["score"] > 99
    assert (repair["ended_by"], repair["score"]["info"]["track"]) == ("submit", "fixed")
    assert (cut["ended_by"], cut["score"]["status"]) == ("shutdown", "error")
    told = CliRunner().invoke(cli, ["wsp", "report", str(results), "--json"])
    found = json.loads(told.stdout)
    assert found["families"]["hijack"]["mean"] > 99
    assert found["failed"] == [tasks["audit"].id]  # what was cut off is no 0


def test_the_open_track_wants_masked_instances(tasks: dict[Any, Task], tmp_path: Path) -> None:
    told = CliRunner().invoke(cli, ["wsp", "serve", "--track", "open", "--results", str(tmp_path / "r.jsonl")])
    assert told.exit_code == 1
    assert "there is no masked instance: make some with" in told.output
    assert not (tmp_path / "r.jsonl").exists()

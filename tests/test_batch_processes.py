"""Batch scoring as a whole program sees it: its output, its interruption, its missing guard."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = """
import sys
from toy_scorers import SCORER, PROFILE, SOURCE
from weightgym.rewards.batch import ScoreItem, score_batch
def run(*answers):
    items = [ScoreItem(i, SOURCE.task("easy/one"), a) for i, a in enumerate(answers)]
    for key, score in score_batch(items, scorer=SCORER, profile=PROFILE, workers=2):
        print(key, score.status, flush=True)
"""


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_for(condition: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


def start_script(folder: Path, code: str) -> subprocess.Popen[str]:
    path = folder / "script.py"
    path.write_text(SCRIPT + code)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    return subprocess.Popen(
        [sys.executable, str(path)], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def test_what_a_scorer_prints_stays_out_of_stdout(tmp_path: Path) -> None:
    script = start_script(tmp_path, 'if __name__ == "__main__":\n    run("print")\n')
    out, err = script.communicate(timeout=30)
    assert out == "0 ok\n"
    assert "printed by the scorer" in err
    assert "written by the scorer" in err


def test_a_script_without_the_guard_is_told(tmp_path: Path) -> None:
    script = start_script(tmp_path, 'run("a")\n')
    out, err = script.communicate(timeout=30)
    assert script.returncode == 1
    assert out == ""
    assert 'needs the guard: if __name__ == "__main__":' in err
    assert "the scoring processes don't start" in err


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_no_worker_outlives_its_parent(tmp_path: Path, sent: signal.Signals) -> None:
    code = f'if __name__ == "__main__":\n    run(*["pid {tmp_path}"] * 2)\n'
    with start_script(tmp_path, code) as script:

        def told() -> set[int]:
            return {int(path.name) for path in tmp_path.iterdir() if path.name.isdigit()}

        try:
            assert wait_for(lambda: len(told()) == 2, 20)
            script.send_signal(sent)
            assert wait_for(lambda: script.poll() is not None and not any(map(is_alive, told())), 5)
        finally:
            script.kill()  # its workers would spin for ever
        assert script.returncode != 0

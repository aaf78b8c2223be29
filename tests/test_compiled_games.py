"""Compiling built-in games: the cache, its failures, and processes that do the same at once."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from weightgym.rewards.contracts import GraderError
from weightgym.rewards.weight_program import builtin, simulate
from weightgym.rewards.weight_program.compile import compile_game
from weightgym.rewards.weight_program.games import GAMES
from weightgym.rewards.weight_program.network import zero_weights
from weightgym.rewards.weight_program.profile import profile

GAME = GAMES[0]
RUN = (
    "import time; from weightgym.rewards.weight_program.simulate import simulate\n"
    "from weightgym.rewards.weight_program.network import zero_weights\n"
    "from weightgym.rewards.weight_program.profile import profile\n"
    "started = time.perf_counter()\n"
    f"run = simulate('{GAME}', zero_weights(), profile('wpb-v1-e10'))\n"
    "print(time.perf_counter() - started, run.scores.tolist())\n"
)


def start(cache: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, *options, "-c", RUN]
    return subprocess.Popen(
        command, env={"WEIGHTGYM_CACHE": str(cache)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(process: subprocess.Popen[str]) -> tuple[float, str]:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    seconds, _, scores = out.partition(" ")
    return float(seconds), scores


def test_cold_then_cached(tmp_path: Path) -> None:
    cold, scores = finish(start(tmp_path, "-W", "error"))
    cached = [finish(start(tmp_path, "-W", "error")) for _ in range(3)]
    assert {again for _, again in cached} == {scores}
    assert cold < 4 * 2  # 4 s on an idle core; the tests share theirs
    assert min(seconds for seconds, _ in cached) < 0.3
    assert len(list((tmp_path / "games").iterdir())) == 1


def test_processes_that_compile_the_same_game_at_once_agree(tmp_path: Path) -> None:
    results = [finish(process) for process in [start(tmp_path, "-W", "error") for _ in range(4)]]
    assert len({scores for _, scores in results}) == 1
    assert len(list((tmp_path / "games").iterdir())) == 1


@pytest.mark.parametrize("damage", [b"", b"{}\n", b'{"sha256": "0", "names": []}\nxyz', b"\xff\x00"])
def test_a_damaged_cache_file_is_replaced(tmp_path: Path, damage: bytes) -> None:
    _, scores = finish(start(tmp_path))
    (file,) = (tmp_path / "games").iterdir()
    good = file.read_bytes()
    file.write_bytes(damage or good[:-7])
    assert finish(start(tmp_path, "-W", "error"))[1] == scores
    assert file.read_bytes() == good


def test_a_cache_that_can_t_be_written_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "games").write_text("a file where the folder should be")
    process = start(tmp_path)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "CacheWarning" in err
    assert "set WEIGHTGYM_CACHE to a writable folder" in err


def test_without_numba_the_plain_file_scores_loudly(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = profile("wpb-v1-e5")
    wanted = simulate.simulate(GAME, zero_weights(), rules)
    monkeypatch.setattr(builtin, "can_compile", lambda: False)
    with pytest.warns(simulate.EngineMissingWarning, match=r"pip install 'weightgym\[games\]'"):
        got = simulate.simulate(GAME, zero_weights(), rules)
    assert np.array_equal(got.scores, wanted.scores)
    with pytest.raises(GraderError, match="numba"):
        simulate.simulate(GAME, zero_weights(), rules, backend="engine")


GOOD = """
STATE = 1
def reset(s, rng):
    pass
def step(s, action, rng):
    return 1, True
def observe(s, board):
    pass
"""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("raise ValueError", "neither allocate nor raise"),
        ("x = [action]; x.append(2)", "neither allocate nor raise|does not compile"),
        ("open('/etc/passwd')", "does not compile"),
        ("unknown(action)", "does not compile"),
    ],
)
def test_what_is_outside_the_subset_is_refused(line: str, message: str) -> None:
    simulate.simulate(GAME, zero_weights(), profile("wpb-v1-e1"))  # makes the engine's symbols known
    compile_game(GOOD, "good.py")
    bad = GOOD.replace("    return 1, True", f"    if action > 7:\n        {line}\n    return 1, True")
    with pytest.raises(GraderError, match=message):
        compile_game(bad, "bad.py")


@pytest.mark.slow
@pytest.mark.parametrize("game", GAMES)
def test_compiled_is_a_hundred_times_faster(game: str) -> None:
    rules = profile("wpb-v1-e20")
    simulate.simulate(game, zero_weights(), rules)
    started = time.process_time()
    simulate.simulate(game, zero_weights(), rules, backend="reference")
    plain = time.process_time() - started
    started = time.process_time()
    for _ in range(5):
        simulate.simulate(game, zero_weights(), rules, backend="engine")
    assert plain / ((time.process_time() - started) / 5) > 100

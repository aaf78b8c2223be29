"""The cache of scores: what it is keyed by, what it never keeps, and what breaks it without breaking a run."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weightgym.rewards.contracts import GraderError, Score, Task
from weightgym.rewards.golf.report import Result
from weightgym.rewards.golf.scorer import scored
from weightgym.rewards.score_cache import ScoreCache, score_key
from weightgym.rewards.scorer_version import scorer_version

SCORE = Score(status="ok", reward=0.1 + 0.2, metrics={"a": 1e-300}, info={"t": "é\ud800", "n": [1, 1.0]}, profile="p")
KEY = bytes(32)


def silent(text: str) -> None:
    raise AssertionError(text)


def test_a_score_comes_back_bit_for_bit(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "cache"
    with ScoreCache(path, silent) as cache:
        assert cache.get(KEY, profile="p") is None
        cache.put(KEY, SCORE)
        assert cache.get(KEY, profile="p") == SCORE  # before it is written, too
    with ScoreCache(path, silent) as cache:
        back = cache.get(KEY, profile="p")
        assert back == SCORE
        assert back is not None
        assert repr(back.model_dump()) == repr(SCORE.model_dump())  # 1 and 1.0 stay apart
        assert cache.get(bytes(31) + b"\1", profile="p") is None
        assert cache.hits == 1


@pytest.mark.parametrize(
    "score",
    [
        Score(status="error", reward=None, reason="x"),
        Score(status="timeout", reward=None, reason="x"),
        Score(status="ok", reward=1.0, info={"repeatable": False}),
        Score(status="invalid", reward=0.0, reason="x", info={"repeatable": False}),
    ],
)
def test_faults_and_random_scores_are_not_kept(tmp_path: Path, score: Score) -> None:
    with ScoreCache(tmp_path / "cache", silent) as cache:
        cache.put(KEY, score)
    with ScoreCache(tmp_path / "cache", silent) as cache:
        assert cache.get(KEY, profile="") is None


def golf(reason: str | None, device: str = "cpu", bpb: float = 2.0) -> Result:
    status: Any = {"status": "buggy", "reason": reason} if reason else {"status": "ok", "val_bpb": bpb}
    return Result(phase="audit", fingerprint={"device": device}, verdict=None, **status)


def test_golf_says_what_another_run_could_change() -> None:
    def repeatable(*results: Result) -> bool:
        return scored(results, profile="golf-cpu-v1", seconds=0.0).repeatable

    assert repeatable(golf(None))
    assert repeatable(golf("illegal"))
    for random in (golf("audit_random"), golf("train_timeout"), golf("eval_timeout"), golf(None, "cuda")):
        assert not repeatable(random)
        assert not repeatable(random, golf(None, bpb=1.0))  # another best one might come up
        assert not repeatable(golf(None, bpb=1.0), random)


TASK = {"env": "toy", "id": "a", "split": "test", "data": {"cap": 1}}


def test_the_key_is_of_profile_task_version_and_completion() -> None:
    def key(profile: str = "p", version: str = "v", completion: Any = "a", **task: Any) -> bytes:
        return score_key(Task.model_validate(TASK | task), completion, profile=profile, version=version)

    keys = [
        key(), key(profile="q"), key(version="w"), key(completion="b"), key(completion=[{"role": "assistant"}]),
        key(id="b"), key(env="other"), key(split="train"), key(data={"cap": 2}), key(system_prompt="x"),
        key(profile="pv", version=""), key(profile="", version="pv"),
    ]  # fmt: skip
    assert len(set(keys)) == len(keys)
    assert key() == key()
    assert key(completion=[{"role": "a", "content": "b"}]) == key(completion=[{"content": "b", "role": "a"}])


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters()), st.text(st.characters()))
def test_completions_that_differ_have_keys_that_differ(one: str, other: str) -> None:
    task = Task.model_validate(TASK)
    keys = [score_key(task, text, profile="p", version="v") for text in (one, other)]
    assert (keys[0] == keys[1]) == (one == other)


def broken(tmp_path: Path, text: bytes) -> Path:
    path = tmp_path / "cache"
    path.write_bytes(text)
    return path


def foreign(tmp_path: Path) -> Path:
    path = tmp_path / "other"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE scores (key, sum, score)")
    database.close()
    return path


def newer(tmp_path: Path) -> Path:
    path = tmp_path / "newer"
    ScoreCache(path, silent).close()
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    return path


def truncated(tmp_path: Path) -> Path:
    path = tmp_path / "cache"
    with ScoreCache(path, silent) as cache:
        for number in range(500):
            cache.put(number.to_bytes(32), SCORE)
    raw = path.read_bytes()
    path.write_bytes(raw[:4096] + b"\xff" * (len(raw) - 4096))
    return path


BROKEN: dict[str, Callable[[Path], Path]] = {
    "text": lambda folder: broken(folder, b"precious notes\n" * 100),
    "folder": lambda folder: folder,
    "under a file": lambda folder: broken(folder, b"x") / "cache",
    "other database": foreign,
    "newer": newer,
    "damaged": truncated,
}


@pytest.mark.parametrize("make", BROKEN.values(), ids=BROKEN)
def test_a_broken_cache_is_a_cold_one_told_once_and_left_alone(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    path = make(tmp_path)
    told: list[str] = []
    before = path.read_bytes() if path.is_file() else None
    with ScoreCache(path, told.append) as cache:
        for number in range(300):
            key = number.to_bytes(32)
            assert cache.get(key, profile="p") is None
            cache.put(key, SCORE)
    assert len(told) == 1
    assert told[0].startswith(f"no score cache, everything is scored: {path}: ")
    assert "--cache" in told[0]
    assert "\n" not in told[0]
    assert (path.read_bytes() if path.is_file() else None) == before


def test_a_locked_cache_is_read_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weightgym.rewards.score_cache._PATIENCE", 0.1)
    path = tmp_path / "cache"
    told: list[str] = []
    with ScoreCache(path, silent) as cache:
        cache.put(KEY, SCORE)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with ScoreCache(path, told.append) as cache:
        assert cache.get(KEY, profile="p") == SCORE  # a writer keeps no reader out
        cache.put(bytes(31) + b"\2", SCORE)
    other.close()
    assert len(told) == 1
    assert "database is locked" in told[0]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("UPDATE scores SET score = replace(score, '0.30000000000000004', '0.9')", "checksum"),
        ("UPDATE scores SET sum = x'00'", "checksum"),
        ("UPDATE scores SET score = 'x'", "checksum"),
        ("UPDATE scores SET score = x'ff00'", "checksum"),
    ],
)
def test_an_altered_entry_is_no_score(tmp_path: Path, change: str, problem: str) -> None:
    path = tmp_path / "cache"
    told: list[str] = []
    with ScoreCache(path, silent) as cache:
        cache.put(KEY, SCORE)
    with sqlite3.connect(path) as database:
        database.execute(change)
    database.close()
    with ScoreCache(path, told.append) as cache:
        assert cache.get(KEY, profile="p") is None
        cache.put(KEY, SCORE)
    assert len(told) == 1
    assert "bad entry" in told[0]
    assert problem in told[0]
    with ScoreCache(path, silent) as cache:
        assert cache.get(KEY, profile="p") == SCORE


def test_an_entry_moved_to_another_key_or_profile_is_no_score(tmp_path: Path) -> None:
    path, other = tmp_path / "cache", bytes(31) + b"\1"
    told: list[str] = []
    with ScoreCache(path, silent) as cache:
        cache.put(KEY, SCORE)
    with sqlite3.connect(path) as database:
        database.execute("INSERT INTO scores SELECT ?, sum, score FROM scores", (other,))
    database.close()
    with ScoreCache(path, told.append) as cache:
        assert cache.get(other, profile="p") is None
        assert cache.get(KEY, profile="another") is None
        assert cache.get(KEY, profile="p") == SCORE
    assert ["checksum" in line or "profile" in line for line in told] == [True, True]


def test_several_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from weightgym.rewards.contracts import Score\n"
        "from weightgym.rewards.score_cache import ScoreCache\n"
        "def tell(text): raise SystemExit(text)\n"
        "me = int(sys.argv[2])\n"
        "with ScoreCache(Path(sys.argv[1]), tell) as cache:\n"
        "    for n in range(600):\n"
        "        cache.put((me * 1000 + n).to_bytes(32), Score(status='ok', reward=float(me), profile='p'))\n"
    )
    path = tmp_path / "cache"

    def write(me: int) -> int:
        return subprocess.run([sys.executable, "-c", code, str(path), str(me)], timeout=60).returncode

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(write, range(4))) == [0] * 4
    with ScoreCache(path, silent) as cache:
        for me in range(4):
            for n in (0, 299, 599):
                found = cache.get((me * 1000 + n).to_bytes(32), profile="p")
                assert found is not None
                assert found.reward == me


def version_of(folder: Path, scorer: str, **environment: str) -> str:
    code = f"from weightgym.rewards.scorer_version import scorer_version; print(scorer_version({scorer!r}))"
    paths = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH", "")]))
    command = [sys.executable, "-c", code]
    env = os.environ | {"PYTHONPATH": paths} | environment
    return subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout.strip()


def test_the_version_changes_with_the_scorer_s_code_and_with_nothing_beside(tmp_path: Path) -> None:
    package = tmp_path / "bench"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "scorer.py").write_text("from bench.helper import x\ndef score(): return x\n")
    (package / "helper.py").write_text("x = 1\n")
    first = version_of(tmp_path, "bench.scorer:score")
    (package / "notes.txt").write_text("nothing")
    (tmp_path / "elsewhere.py").write_text("x = 1")
    assert version_of(tmp_path, "bench.scorer:score", WEIGHTGYM_CACHE="/somewhere/else") == first
    (package / "helper.py").write_text("x = 2\n")  # not the file that the scorer is in
    changed = version_of(tmp_path, "bench.scorer:score")
    assert changed != first
    assert version_of(tmp_path, "bench.scorer:score", WEIGHTGYM_SECRET="a" * 32) != changed
    (tmp_path / "single.py").write_text("def score(): return 1\n")
    single = version_of(tmp_path, "single:score")
    (tmp_path / "single.py").write_text("def score(): return 2\n")
    assert len({single, version_of(tmp_path, "single:score"), version_of(tmp_path, "single:other"), changed}) == 4


def test_the_version_changes_with_the_files_that_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, truth = tmp_path / "set.jsonl", tmp_path / "set.truth"
    rows.write_text("{}")
    truth.mkdir()
    (truth / "a").write_text("1")
    monkeypatch.setenv("WEIGHTGYM_WSP_SETS", os.pathsep.join([str(rows), str(tmp_path / "absent.jsonl")]))

    def version() -> str:
        return scorer_version("weightgym.rewards.golf.scorer:score")

    versions = [version()]
    (truth / "a").write_text("22")  # the grader's part of a set, made again
    versions.append(version())
    (truth / "b").write_text("3")
    versions.append(version())
    (tmp_path / "notes.txt").write_text("nothing")
    assert version() == versions[-1]
    monkeypatch.setenv("WEIGHTGYM_SECRET", "x" * 10_000)  # no path
    versions.append(version())
    assert len(set(versions)) == 4


def test_the_version_is_one_within_a_machine_and_its_scorer_must_exist() -> None:
    own = "weightgym.rewards.weight_program.scorer:score"
    assert scorer_version(own) == scorer_version(own)
    assert scorer_version(own) != scorer_version("weightgym.rewards.golf.scorer:score")
    for absent in ("no_such_module:score", "weightgym.nothing.at_all:score"):
        with pytest.raises(GraderError, match="scorer module"):
            scorer_version(absent)

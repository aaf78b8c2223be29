"""What a snapshot's code tries in the sandbox: contained, our error, never a reward."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from snapshot_fixture import VERIFY, change, digest, write_snapshot

from weightgym.envs.weight_program.tasks import SOURCE
from weightgym.rewards.contracts import Score
from weightgym.rewards.sandbox import UNSAFE_VARIABLE
from weightgym.rewards.sandbox.sandbox import UnsafeWarning
from weightgym.rewards.weight_program.scorer import score
from weightgym.rewards.weight_program.snapshot import layout, process, store

ANSWER = "```edits\nb3[3] = 1\nW1[5, 3] = 0.7\nW2[3, 2] = 1.5\nW3[2, 5] = 2\n```"
COIN = "minatar_synth/games/coin_walk.py"
BOTH = pytest.mark.parametrize("rules", ["wpb-v1-e5", "wpb-published-e5"])

#: 1 for each thing of this machine that the code gets at.
PRYING = """
import os, socket, subprocess, sys
SECRET = {secret!r}


def gets(work):
    try:
        return int(bool(work()))
    except (OSError, ImportError):
        return 0


def write(path):
    with open(path, "w") as file:
        return file.write("x") or 1


PRIED = {{
    "a file of the user": gets(lambda: open(SECRET).read()),
    "a listing of its folder": gets(lambda: os.listdir(os.path.dirname(SECRET))),
    "a variable of the environment": int("HF_TOKEN" in os.environ),
    "the user's file, changed": gets(lambda: write(SECRET)),
    "its own file, changed": gets(lambda: write(__file__)),
    "the runner's folder": gets(lambda: write("/runner/x") if os.path.isdir("/runner") else 0),
    "accounts": gets(lambda: open("/etc/passwd").read()),
    "a socket": gets(lambda: socket.socket(socket.AF_INET)),
    "a local socket": gets(lambda: socket.socketpair()),
    "a fork": gets(lambda: os.fork() or os._exit(0)),
    "a program": gets(lambda: subprocess.run([sys.executable, "-c", ""]).returncode == 0),
    "processes": gets(lambda: os.listdir("/proc")),
    "a signal to the parent": gets(lambda: os.kill(os.getppid(), 0) or os.getppid() > 0),
    "weightgym": gets(lambda: __import__("weightgym.rewards")),
}}
SCORE_CAP = 20 + sum(PRIED.values())
"""


@pytest.fixture
def snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """A chosen snapshot."""
    for name in (layout.FOLDER_VARIABLE, layout.DIGEST_VARIABLE, UNSAFE_VARIABLE):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("WEIGHTGYM_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    folder = tmp_path / "snapshot"
    layout.choose(folder, tasks_sha256=write_snapshot(folder))
    yield folder
    layout.choose(None)


def play(game: str = "coin_walk", rules: str = "wpb-v1-e5", answer: str = ANSWER) -> Score:
    return score(SOURCE.task(f"synth/{game}"), answer, profile=rules)


def check_contained(rules: str, reason: str) -> None:
    """The game is our error, for that reason, and the other game has its score."""
    failed = play(rules=rules)
    assert (failed.status, failed.reward) == ("error", None)
    assert reason in failed.reason
    assert "\n" not in failed.reason
    after = play("leak_plug", rules)
    assert after.status == "ok", after.reason


@BOTH
def test_it_gets_at_nothing(snapshot: Path, monkeypatch: pytest.MonkeyPatch, rules: str) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret")
    secret = snapshot.parent / "secret.txt"
    secret.write_text("secret")
    change(snapshot, COIN, "SCORE_CAP = 20", PRYING.format(secret=str(secret)))
    assert play(rules=rules).metrics["cap"] == 20
    assert secret.read_text() == "secret"


def test_without_the_sandbox_it_would(snapshot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one test of the unsafe way: loud, the same scores, limits, an environment of its own, and no more."""
    honest = [play(rules=rules).metrics for rules in ("wpb-v1-e20", "wpb-published-e20")]
    secret = snapshot.parent / "secret.txt"
    secret.write_text("secret")
    monkeypatch.setenv("HF_TOKEN", "secret")
    monkeypatch.setenv(UNSAFE_VARIABLE, "1")
    with pytest.warns(UnsafeWarning, match="without a sandbox"):
        assert [play(rules=rules).metrics for rules in ("wpb-v1-e20", "wpb-published-e20")] == honest
    prying = PRYING.format(secret=str(secret)).replace("write(__file__)", "0")  # its copy is to be used again
    change(snapshot, COIN, "SCORE_CAP = 20", f"{prying}\nassert not PRIED['a variable of the environment']")
    with pytest.warns(UnsafeWarning, match="without a sandbox"):
        result = play()
    assert result.status == "ok", result.reason
    assert result.metrics["cap"] >= 20 + 7
    assert secret.read_text() == "x"
    change(snapshot, COIN, "reward = 0", "import os; os._exit(7)")
    with pytest.warns(UnsafeWarning, match="without a sandbox"):
        assert play().status == "error"


@BOTH
@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("open('/etc/passwd')", "FileNotFoundError"),
        ("open(__file__, 'w')", "Read-only file system"),
        ("import socket; socket.create_connection(('127.0.0.1', 80))", "Operation not permitted"),
        ("import os; os.fork()", "PermissionError"),
        ("import subprocess; subprocess.run(['/bin/true'])", "Error"),
        ("import sys; sys.exit(0)", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("import os; os._exit(0)", "ended: "),
        ("import os; os.abort()", "crashed: "),
        ("import ctypes; ctypes.string_at(8)", "crashed: "),
        ("input()", "EOFError"),
        ("raise type('E' * 100_000, (Exception,), {})('x' * 100_000 + chr(10) + chr(0xd800))", "EEEE"),
        ("raise type('E', (Exception,), {'__str__': lambda self: 1 // 0})", "exception: "),
        ("bytearray(6 << 30)", "MemoryError"),
        ("import os; [os.open(__file__, os.O_RDONLY) for _ in range(1000)]", "Too many open files"),
    ],
)  # fmt: skip
def test_what_it_does_is_our_error(snapshot: Path, rules: str, code: str, reason: str) -> None:
    change(snapshot, COIN, "reward = 0", f"reward = 0\n        {code}")
    check_contained(rules, reason)


@BOTH
@pytest.mark.parametrize("code", ["while True: pass", "import re; re.match('(a+)+b', 'a' * 64)"])
def test_spinning_ends_at_the_limit(snapshot: Path, monkeypatch: pytest.MonkeyPatch, rules: str, code: str) -> None:
    monkeypatch.setattr(process, "CPU_SECONDS", 1.0)
    change(snapshot, COIN, "reward = 0", f"reward = 0\n        {code}")
    check_contained(rules, "cpu_limit: ")


@BOTH
def test_what_it_prints_goes_nowhere(snapshot: Path, capfd: pytest.CaptureFixture[str], rules: str) -> None:
    wanted = play(rules=rules).metrics
    noise = (
        "import os, sys; print('reward 1'); print('reward 1', file=sys.stderr); os.write(1, b'x'); os.write(2, b'x')"
    )
    change(snapshot, COIN, "reward = 0", f"reward = 0\n        {noise}")
    assert play(rules=rules).metrics == wanted
    assert capfd.readouterr() == ("", "")


@BOTH
@pytest.mark.parametrize(
    "data",
    ["b'{\"ok\": 1000}\\n'", "b'WGF1' + bytes(8)", "b'WGF1' + b'\\xff' * 8", "b'\\x80\\x04N.'", "bytes(1 << 20)"],
)
def test_what_it_writes_to_the_pipe_is_no_result(snapshot: Path, rules: str, data: str) -> None:
    change(snapshot, COIN, "reward = 0", f"reward = 0\n        import os; os.write(4, {data})")
    failed = play(rules=rules)
    assert (failed.status, failed.reward) == ("error", None)
    assert play("leak_plug", rules).status == "ok"


def test_a_reply_too_many_is_not_taken_for_the_next(snapshot: Path) -> None:
    """A well-formed one: it can forge the game's own result, and nobody else's."""
    wanted = play("leak_plug", "wpb-published-e5").metrics
    forging = (
        "import struct, os\n"
        "        def item(name, value):\n"
        "            kind = b'i' if type(value) is int else b'd'\n"
        "            packed = struct.pack('<q' if kind == b'i' else '<d', value)\n"
        "            return kind + struct.pack('<H', len(name)) + name + packed\n"
        "        body = item(b'number', 0) + item(b'raw_score', 9.0) + item(b'mean_length', 1.0)\n"
        "        body += item(b'cap', 9.0) + item(b'edits', 1)\n"
        "        os.write(4, b'WGF1' + struct.pack('<Q', len(body)) + body)\n"
        "        reward = 0"
    )
    change(snapshot, COIN, "reward = 0", forging)
    assert play(rules="wpb-published-e5").metrics["raw_score"] == 9
    after = play("leak_plug", "wpb-published-e5")
    assert (after.status, after.reward) == ("error", None)
    assert "interfered" in after.reason
    assert play("leak_plug", "wpb-published-e5").metrics == wanted


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("return total / episodes,", "return float('nan'),", "the mean score is nan"),
        ("return total / episodes,", "return 'many',", "could not convert"),
        ("return total / episodes,", "return 10**400,", "OverflowError"),
        ("steps / episodes\n", "float('inf')\n", "the mean length is inf"),
        ("return weights, len(statements)", "return weights, 1e999", "the number of edits is inf"),
        ("return weights, len(statements)", "return weights", "unpack"),
        ("return CAPS[game]", "raise SystemExit\n    return CAPS[game]", "SystemExit"),
        ("def evaluate(", "def grade(", "AttributeError"),
    ],
)
def test_a_scorer_of_another_form_is_our_error(snapshot: Path, old: str, new: str, reason: str) -> None:
    change(snapshot, "verify.py", old, new)
    failed = play(rules="wpb-published-e5")
    assert (failed.status, failed.reward) == ("error", None)
    assert reason in failed.reason


def test_a_process_that_ends_while_it_is_idle_is_replaced(snapshot: Path) -> None:
    leaving = "import threading, time, os\nthreading.Timer(0.2, os._exit, [0]).start()\nSCORE_CAP = 20"
    change(snapshot, COIN, "SCORE_CAP = 20", leaving)
    assert play().status == "ok"
    threading.Event().wait(0.5)  # a thread that it left ends the process
    assert play("leak_plug").status == "ok"


def test_many_answers_take_turns_in_new_processes(snapshot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stamp in numpy, which is not imported afresh, counts what one process has done."""
    monkeypatch.setattr(process, "_ANSWERS", 3)
    stamping = "import numpy as np\nnp.stamp = getattr(np, 'stamp', 0) + 1\nSCORE_CAP = 20 + np.stamp"
    change(snapshot, COIN, "SCORE_CAP = 20", stamping)
    caps = [play(rules="wpb-published-e1").metrics["cap"] for _ in range(7)]
    assert caps == [21, 22, 23, 21, 22, 23, 21]


def test_a_download_is_links_into_a_closed_cache(snapshot: Path) -> None:
    """As huggingface_hub's cache is; and root's umask may be 077."""
    wanted = [play(rules=rules).metrics for rules in ("wpb-v1-e5", "wpb-published-e5")]
    blobs = snapshot.parent / "blobs"
    blobs.mkdir(mode=0o700)
    for path in [path for path in snapshot.rglob("*") if path.is_file()]:
        blob = blobs / digest(path)
        path.rename(blob)
        blob.chmod(0o600)
        path.symlink_to(os.path.relpath(blob, path.parent))
    (snapshot / "runtime" / "around").symlink_to(snapshot / "runtime")
    (snapshot / "runtime").chmod(0o700)
    layout.choose(snapshot, tasks_sha256=digest(snapshot / "runtime" / "tasks.jsonl"))
    assert [play(rules=rules).metrics for rules in ("wpb-v1-e5", "wpb-published-e5")] == wanted


def test_the_copy_is_of_what_was_checked(snapshot: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WEIGHTGYM_CACHE", str(tmp_path / "cache"))
    wanted = play().metrics
    (copy,) = (tmp_path / "cache" / "snapshots").iterdir()
    coin = snapshot / "runtime" / COIN
    honest = coin.read_text()
    coin.write_text(honest.replace("SCORE_CAP = 20", "SCORE_CAP = 99"))  # too late
    assert play().metrics == wanted
    process.close_all()
    assert "has changed since the snapshot was checked" in play().reason
    coin.write_text(honest)
    assert play().metrics == wanted
    process.close_all()
    (copy / COIN).unlink()
    assert "damaged: delete it" in play().reason
    monkeypatch.setenv("WEIGHTGYM_CACHE", str(coin))
    assert "set WEIGHTGYM_CACHE to a writable folder" in play().reason


def test_too_much_is_not_copied(snapshot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_MAX_FILES", 4)
    assert "holds more than 4 files" in play().reason


def test_the_scorer_finds_its_files_and_packages(snapshot: Path) -> None:
    """By its folder, its path, and what is installed here."""
    using = (
        "import json, pathlib\nfrom filelock import FileLock\nimport wrapt as w\n"
        "HERE = pathlib.Path(__file__).parent\n"
        "assert len(open('tasks.jsonl').readlines()) == len((HERE / 'tasks.jsonl').read_text().splitlines()) == 3\n"
        "assert (HERE / 'minatar_synth' / 'games' / 'coin_walk.py').is_file() and w.decorator and FileLock\n"
        "import ast\n"
    )
    wanted = play(rules="wpb-published-e5").metrics
    change(snapshot, "verify.py", "import ast\n", using)
    assert play(rules="wpb-published-e5").metrics == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("import wrapt", {"wrapt"}),
        ("import os, filelock as f, wrapt", {"filelock", "wrapt"}),
        ("    from wrapt.decorators import x", {"wrapt"}),
        ("from . import wrapt\nfrom .wrapt import x\n# import wrapt\nx = 'import wrapt'\nfrom wrapt", set()),
        ("import numpy as np\nimport minatar, weightgym.rewards\nimport verify, no_such_package", set()),
        ("import wrapt\xff\x00\n" * 3, {"wrapt"}),
    ],
)
def test_packages_are_found_in_the_text(text: str, wanted: set[str]) -> None:
    files = {"verify.py": text.encode("latin-1"), "notes.txt": b"import wrapt"}
    assert store.distributions(files) == ("numpy", *sorted(wanted))


def test_dense_policies_have_the_same_bits_as_outside(snapshot: Path) -> None:
    """verify.py run here, and there."""
    namespace: dict[str, Any] = {"__name__": "verify_here"}
    exec(VERIFY, namespace)  # our own fixture
    weights = np.random.default_rng(5).normal(scale=0.3, size=(600, 32)).astype(np.float32)
    rows = "\n".join(f"W1[{i}] = {row.tolist()}" for i, row in enumerate(weights))
    answer = f"```edits\n{rows}\nW2[0] = 0.5\nW2[7, 3] = -2\nW3[3] = [1, -1, 0.5, 2, 0, 0.25]\nW3[0, 3] = -2\n```"
    played = score(SOURCE.task("original/breakout"), answer, profile="wpb-published-e40")
    wanted = namespace["evaluate"]("breakout", "original", namespace["apply_edits"](answer)[0], 40)
    assert (played.metrics["raw_score"], played.metrics["mean_length"]) == wanted

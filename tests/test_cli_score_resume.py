"""``weightgym score`` interrupted, killed, resumed, refused: nothing is lost, nothing is done twice."""

from __future__ import annotations

import re
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from score_runs import read, row, run, start, toy, wait_for_rows, write

__all__ = ["toy"]
pytestmark = pytest.mark.usefixtures("toy")


def without_seconds(path: Path) -> bytes:
    return re.sub(rb'"seconds": [-+.e0-9]+', b'"seconds": 0', path.read_bytes())


def test_an_output_that_exists_is_kept_unless_told(tmp_path: Path) -> None:
    source = write(tmp_path / "a.jsonl", [row("a"), row("b")])
    out = write(tmp_path / "a.scored.jsonl", ["precious"])
    refused = run(source)
    assert refused.exit_code == 2
    assert "exists: --resume goes on with it, --force replaces it" in refused.stderr
    resumed = run(source, "--resume")
    assert resumed.exit_code == 2
    assert f"{out}:1 is not a row that this command wrote" in resumed.stderr
    assert out.read_text() == "precious\n"
    assert run(source, "--force").exit_code == 0
    assert [row["completion"] for row in read(out)] == ["a", "b"]


def test_errors_and_timeouts_exit_1_and_are_tried_again(tmp_path: Path) -> None:
    answers = [
        "a",
        f"once {tmp_path / 'one'} exit 3",
        f"once {tmp_path / 'two'} hang",
        f"once {tmp_path / 'three'} raise",
    ]
    source = write(tmp_path / "a.jsonl", map(row, answers))
    result = run(source, "--timeout", "0.5")
    assert result.exit_code == 1
    assert "1 of 4 rows" in result.stderr
    assert "(2 error, 1 timeout)" in result.stderr
    assert "--resume tries error and timeout again" in result.stderr
    told = re.search(r"^the first without a reward, line (\d): (.*)$", result.stderr, re.MULTILINE)
    out = tmp_path / "a.scored.jsonl"
    before = read(out)
    assert [row["score"]["status"] for row in before] == ["ok", "error", "timeout", "error"]
    assert [row["score"]["reward"] is None for row in before] == [False, True, True, True]
    assert told is not None
    assert before[int(told[1]) - 1]["score"]["reason"].startswith(told[2][:300])
    again = run(source, "--timeout", "5", "--resume")
    assert again.exit_code == 0, again.stderr
    after = read(out)
    assert after[0] == before[0]
    assert [row["score"]["status"] for row in after] == ["ok"] * 4


def test_resuming_a_finished_file_changes_nothing(tmp_path: Path) -> None:
    source = write(tmp_path / "a.jsonl", [row("a"), row("sleep 0.1"), row("")])
    assert run(source).exit_code == 0
    out = tmp_path / "a.scored.jsonl"
    before = (out.read_bytes(), out.stat().st_mtime_ns, out.stat().st_ino)
    result = run(source, "--resume")
    assert result.exit_code == 0
    assert "3 of 3 rows" in result.stderr
    assert (out.read_bytes(), out.stat().st_mtime_ns, out.stat().st_ino) == before


def test_resume_scores_changed_and_new_rows_and_forgets_lost_ones(tmp_path: Path) -> None:
    source = write(tmp_path / "a.jsonl", [row("a"), row("b"), row("c"), row("d")])
    assert run(source).exit_code == 0
    out = tmp_path / "a.scored.jsonl"
    before = read(out)
    write(source, [row("a"), row("B"), row("c")])
    assert run(source, "--resume").exit_code == 0
    after = read(out)
    assert [row["completion"] for row in after] == ["a", "B", "c"]
    assert (after[0], after[2]) == (before[0], before[2])
    write(source, [row("a"), row("B"), row("c"), row("new")])
    assert run(source, "--resume").exit_code == 0
    assert read(out)[:3] == after


def test_resume_refuses_another_profile(tmp_path: Path) -> None:
    source = write(tmp_path / "a.jsonl", [row("a"), row("b")])
    assert run(source, "--profile", "toy-v2").exit_code == 0
    out = tmp_path / "a.scored.jsonl"
    before = out.read_bytes()
    result = run(source, "--resume")
    assert result.exit_code == 2
    assert "scored under profile 'toy-v2', not 'toy-v1'" in result.stderr
    assert out.read_bytes() == before


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_resumes_to_the_same_bytes(tmp_path: Path, sent: signal.Signals) -> None:
    lines = [row(f"sleep {0.15 if n % 2 else 0.25} {n}", n=n) for n in range(10)]
    source = write(tmp_path / "a.jsonl", [*lines, "bad", ""])
    whole, out = tmp_path / "whole.jsonl", tmp_path / "out.jsonl"
    assert run(source, "-o", whole, "--workers", "3").exit_code == 1
    with start(source, "-o", out, "--workers", "2") as process:
        wait_for_rows(out, 3)
        process.send_signal(sent)
        assert process.wait(5) != 0
        assert process.stderr is not None
        told = process.stderr.read().decode()
    assert ("--resume goes on" in told) == (sent == signal.SIGINT)
    assert "Traceback" not in told
    done = read(out)
    assert 3 <= len(done) < 10
    with out.open("ab") as torn:
        torn.write(lines[9].encode()[:30])  # as if it had been killed as it wrote
    again = run(source, "-o", out, "--resume")
    assert again.exit_code == 1  # for the bad row
    assert without_seconds(out) == without_seconds(whole)
    kept = {row["n"]: row for row in done}
    assert [row for row in read(out) if row["n"] in kept] == sorted(done, key=lambda row: row["n"])

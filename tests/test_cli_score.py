"""``weightgym score``: strict rows in, rows with scores out, honest exit codes."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from score_runs import read, row, run, start, toy, write

from weightgym.cli.score_journal import only_writer

__all__ = ["toy"]
pytestmark = pytest.mark.usefixtures("toy")


def test_rows_come_out_as_they_were_with_a_score_and_in_order(tmp_path: Path) -> None:
    lines = [
        row("sleep 0.3", n=1.10),
        row("b", extra={"é": "\ud800"}),
        row(""),
        row([{"role": "assistant", "content": "b"}]),
    ]
    lines[0] = lines[0].replace("1.1", "1.10000000000000000000001")  # the digits stay, whatever a float holds
    source = write(tmp_path / "answers.jsonl", lines)
    result = run(source, "--workers", "2")
    assert result.exit_code == 0, result.stderr
    written = (tmp_path / "answers.scored.jsonl").read_text().splitlines()
    assert [line.split(', "score": ')[0] + "}" for line in written] == lines
    scores = [json.loads(line)["score"] for line in written]
    assert [score["status"] for score in scores] == ["ok", "ok", "invalid", "ok"]
    assert scores[1]["reward"] == scores[3]["reward"]
    for number, (line, score) in enumerate(zip(lines, scores, strict=True), start=1):
        assert list(score) == [
            "status", "reward", "reason", "metrics", "info", "profile", "seconds", "timings",
            "line", "row_sha256", "task_sha256",
        ]  # fmt: skip
        assert (score["line"], score["profile"]) == (number, "toy-v1")
        assert score["row_sha256"] == sha256(line.encode()).hexdigest()
    assert "4 of 4 rows" in result.stderr
    assert re.search(r"easy/one +4 +0\.\d{4} +3 +1 +0 +0", result.stderr)


def test_an_old_score_becomes_previous_score(tmp_path: Path) -> None:
    source = write(tmp_path / "a.jsonl", [row("a", score={"reward": 0.25}, previous_score=3, later="x")])
    assert run(source).exit_code == 0
    assert run(tmp_path / "a.scored.jsonl", "-o", tmp_path / "b.jsonl").exit_code == 0
    (first,) = read(tmp_path / "a.scored.jsonl")
    assert first["previous_score"] == 3
    assert first["previous_score_2"] == {"reward": 0.25}
    assert first["later"] == "x"
    (second,) = read(tmp_path / "b.jsonl")  # nothing that came before is lost
    assert {name: second[name] for name in first if name != "score"} == {n: first[n] for n in first if n != "score"}
    assert second["previous_score_3"] == first["score"]


@pytest.mark.parametrize("filler", [" ", "\t", "}", "} ", "\n", "\\", '"', "}\n"])
def test_a_long_run_of_one_character_takes_no_time(tmp_path: Path, filler: str) -> None:
    """The end of a row's text was once found by a pattern that took hours for a megabyte of spaces."""
    completion = filler * (1_000_000 // len(filler))
    source = write(tmp_path / "a.jsonl", [row(completion), row("b")])
    started = time.process_time()
    assert run(source).exit_code == 0
    assert time.process_time() - started < 5
    assert [line["completion"] for line in read(tmp_path / "a.scored.jsonl")] == [completion, "b"]


def test_only_one_run_writes_an_output(tmp_path: Path) -> None:
    source, out = write(tmp_path / "a.jsonl", [row("a")]), tmp_path / "out.jsonl"
    with only_writer(out):
        refused = run(source, "-o", out)
        assert refused.exit_code == 2
        assert "is being written by another run" in refused.stderr
        assert not out.exists()
        assert run(source, "-o", tmp_path / "other.jsonl").exit_code == 0
    assert run(source, "-o", out).exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "other.jsonl", "out.jsonl"]


def test_how_deep_a_completion_may_nest(tmp_path: Path) -> None:
    def nested(depth: int) -> list[Any]:
        value: Any = "x"
        for _ in range(depth):
            value = [value]
        return [{"role": "assistant", "content": "a", "extra": value}]

    source = write(tmp_path / "a.jsonl", [row(nested(900)), row(nested(90))])
    result = run(source)
    assert result.exit_code == 1
    assert "a.jsonl:1: 'completion' is nested too deeply: at most 100 levels" in result.stderr
    assert len(read(tmp_path / "a.scored.jsonl")) == 1


BAD = {
    b"{": "not JSON: ",
    b"[]": "not a JSON object but a list",
    b"null": "not a JSON object but null",
    b'"x"': "not a JSON object but text",
    b"\xff{}": "not UTF-8: byte 1 of the line is 0xff",
    b'{"env": "\xed\xa0\x80"}': "not UTF-8",
    b"\0": "not JSON",
    b'{"a": NaN}': "NaN is not JSON",
    b'{"a": [-Infinity]}': "-Infinity is not JSON",
    b'{"a": 1e999}': "number '1e999' is too large for a float",
    b'{"a": {"b": 1, "b": 1}}': "key 'b' stands twice",
    b'{"a": ' + b"1" * 5000 + b"}": "an integer of 5000 digits is too long",
    b'{"a": ' + b"[" * 100_000: "nested too deeply",
    b"{}": "missing 'env'",
    b'{"env": 1}': "'env' must be text, not a number",
    b'{"env": "toy"}': "missing 'task'",
    b'{"env": "toy", "task": null}': "'task' must be text, not null",
    b'{"env": "toy", "task": "easy/one"}': "missing 'completion'",
    b'{"env": "toy", "task": "easy/one", "completion": true}': "not true or false",
    b'{"env": "toy", "task": "easy/one", "completion": ["a"]}': "must be messages (objects), not text",
    b'{"env": "tyo", "task": "easy/one", "completion": ""}': "unknown environment 'tyo': did you mean 'toy'?",
    b'{"env": "toy", "task": "easy/tow", "completion": ""}': "unknown task 'easy/tow': did you mean 'easy/two'?",
    b'{"env": "toy", "task": "\\u001b[2J\\ud800", "completion": ""}': "unknown task '\\x1b[2J\\ud800'",
    b'{"env": "toy", "task": "' + b"e" * 100_000 + b'", "completion": ""}': "unknown task 'eeee",
}


def test_bad_rows_are_told_by_line_and_good_ones_are_scored(tmp_path: Path) -> None:
    lines = [b"\xef\xbb\xbf" + row("first").encode() + b"\r", b"", b" \t\r", *BAD, row("last").encode()]
    source = write(tmp_path / "answers.jsonl", lines)
    result = run(source, "--workers", "1")
    assert result.exit_code == 1
    told = result.stderr.splitlines()
    for number, (line, problem) in enumerate(BAD.items(), start=4):
        message = told[number - 4]
        assert message.startswith(f"{source}:{number}: "), line[:80]
        assert problem in message
        assert message.isprintable()
        assert len(message) < 600
    assert f"2 of {len(BAD) + 2} rows of {source} scored ({len(BAD)} bad)" in told[-1]
    first, last = read(tmp_path / "answers.scored.jsonl")
    assert (first["completion"], first["score"]["line"]) == ("first", 1)
    assert first["score"]["row_sha256"] == sha256(lines[0].removesuffix(b"\r")).hexdigest()
    assert (last["completion"], last["score"]["line"]) == ("last", len(BAD) + 4)


def test_one_answer_without_its_task_is_told_what_is_missing(tmp_path: Path) -> None:
    answer = tmp_path / "answer.md"
    answer.write_text("```edits\nb3[1] = 1\n```\n")
    result = run(answer)
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == (
        f"0 of 3 rows of {answer} scored (3 bad): is it one answer? Then say to which task: --task ID"
    )


def test_thousands_of_bad_rows_do_not_flood_and_leave_no_file(tmp_path: Path) -> None:
    source = write(tmp_path / "a.jsonl", ["{"] * 3000)
    result = run(source)
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 52
    assert "and 2950 more bad rows" in result.stderr
    assert list(tmp_path.iterdir()) == [source]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["env", "task", "score"]), inner),
    max_leaves=6,
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(max_size=40) | JSON.map(lambda value: json.dumps(value).encode()), max_size=8))
def test_no_bytes_crash_the_reader(tmp_path: Path, lines: list[bytes]) -> None:
    result = run(write(tmp_path / "fuzz.jsonl", lines), "-o", "-")
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert result.exit_code in (0, 1)
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (["--resume", "--force"], "--resume and --force"),
        (["--json"], "--json goes with one answer"),
        (["--env", "toy"], "--env goes with one answer"),
        (["-o", "-", "--resume"], "--resume needs an output file"),
        (["-o", "answers.jsonl"], "is the input"),
        (["-o", os.devnull, "--force"], "not a regular file"),
        (["--timeout", "0"], "more than 0 seconds"),
        (["--timeout", "nan"], "more than 0 seconds"),
        (["--workers", "0"], "0"),
        (["--profile", "toy-v9"], "unknown profile 'toy-v9': use toy-v1 or toy-v2"),
        (["--task", "easy/one", "-o", "x"], "-o goes with a file of rows"),
        (["--task", "easy/one", "--resume"], "--resume goes with a file of rows"),
    ],
)
def test_usage_errors_exit_2_and_write_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: list[str], problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("answers.jsonl"), [row("a")])
    result = run("answers.jsonl", *args)
    assert result.exit_code == 2, result.stderr
    assert problem in result.stderr
    assert os.listdir() == ["answers.jsonl"]


def test_missing_and_unreadable_files_are_one_line(tmp_path: Path) -> None:
    for args in ([tmp_path / "none.jsonl"], [tmp_path], [tmp_path / "none.txt", "--task", "easy/one", "--env", "toy"]):
        result = run(*args)
        assert result.exit_code == 1
        assert result.stderr.startswith(f"Error: {args[0]}: ")
        assert len(result.stderr.splitlines()) == 1
    source = write(tmp_path / "a.jsonl", [row("a")])
    result = run(source, "-o", tmp_path / "no folder" / "out.jsonl")
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1


def test_stdout_gets_rows_in_order_as_they_come(tmp_path: Path) -> None:
    source = write(tmp_path / "a.jsonl", [row("sleep 0.3"), row("print"), row(f"pid {tmp_path}")])
    with start(source, "-o", "-", "--workers", "2") as process:
        assert process.stdout is not None
        first = [json.loads(process.stdout.readline()) for _ in range(2)]
        assert [row["completion"] for row in first] == ["sleep 0.3", "print"]
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == b""
        assert process.wait(5) == 1


def test_rows_on_stdin_go_to_stdout_or_a_file(tmp_path: Path) -> None:
    lines = (row("a") + "\n" + row("b") + "\nbad").encode()
    result = run("-", stdin=lines)
    assert result.exit_code == 1
    assert [json.loads(line)["completion"] for line in result.stdout.splitlines()] == ["a", "b"]
    assert "<stdin>:3: not JSON" in result.stderr
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with start(pipe, "-o", tmp_path / "out.jsonl") as process:
        pipe.write_bytes(lines)
        assert process.wait(20) == 1
    assert [row["completion"] for row in read(tmp_path / "out.jsonl")] == ["a", "b"]


def test_rows_may_mix_environments(tmp_path: Path) -> None:
    real = json.dumps({"env": "weight-program", "task": "original/breakout", "completion": "no edits here"})
    source = write(tmp_path / "a.jsonl", [real, row("a")])
    result = run(source)
    assert result.exit_code == 0, result.stderr
    assert [row["score"]["profile"] for row in read(tmp_path / "a.scored.jsonl")] == ["wpb-v1", "toy-v1"]
    assert run(source, "--profile", "toy-v2", "--force").exit_code == 2


def test_one_answer_is_scored_here_and_shown(tmp_path: Path) -> None:
    answer = tmp_path / "answer.txt"
    answer.write_bytes(b"\xef\xbb\xbfa\r\n")
    common = ("--env", "toy", "--task", "easy/one")
    result = run(answer, *common, "--json")
    assert result.exit_code == 0
    score = json.loads(result.stdout)
    assert (score["status"], score["metrics"], score["profile"]) == ("ok", {"length": 3.0}, "toy-v1")
    shown = run("-", *common, "--profile", "toy-v2", stdin=b"a").stdout
    assert re.search(r"status +ok\n", shown)
    assert re.search(r"profile +toy-v2\n", shown)
    source = write(tmp_path / "a.jsonl", [row("a\r\n")])
    assert run(source).exit_code == 0
    assert read(tmp_path / "a.scored.jsonl")[0]["score"]["reward"] == score["reward"]


@pytest.mark.parametrize(
    ("answer", "code", "problem"),
    [
        (b"", 0, ""),
        (b"raise", 1, "ValueError: broken"),
        (b"raise exit", 1, ""),
        (b"task error", 1, "Error: bad task data\n"),
        (b"ab\xff", 1, "Error: <stdin>: not UTF-8: byte 3 is 0xff\n"),
    ],
)
def test_one_answer_s_exit_code(answer: bytes, code: int, problem: str) -> None:
    result = run("-", "--env", "toy", "--task", "easy/one", stdin=answer)
    assert result.exit_code == code
    assert problem in result.stderr
    wrong = run("-", "--env", "toy", "--task", "easy/tow", stdin=answer)
    assert (wrong.exit_code, wrong.stderr) == (1, "Error: unknown task 'easy/tow': did you mean 'easy/two'?\n")

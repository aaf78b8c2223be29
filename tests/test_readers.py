"""Readers of answers, on files that the packages themselves wrote."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from score_runs import toy, write

from weightgym.cli.tasks import find_task
from weightgym.rollouts.readers.detect import FORMATS, open_reader
from weightgym.rollouts.readers.record import BadRow, ReaderError, Record
from weightgym.rollouts.readers.recorded import Recorded, recorded
from weightgym.rollouts.readers.tasks import Match, Matcher

__all__ = ["toy"]
pytestmark = pytest.mark.usefixtures("toy")

DATA = Path(__file__).parent / "data/readers"
CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"at": "it"}'}}
LINES = ("traces-0.3.1.jsonl", "traces-0.4.0.jsonl", "results-0.3.1.jsonl")


def found(path: Path, format: str | None = None) -> tuple[str, list[Record | BadRow]]:
    if path.is_dir():
        reader = open_reader(path, path.name, format)
        return reader.format, [row for _, _, row in reader.rows()]
    with path.open("rb") as file:
        reader = open_reader(file, path.name, format)
        first = [row for _, _, row in reader.rows()]
        again = [row for _, _, row in reader.rows()]
        assert [str(row) for row in first] == [str(row) for row in again]
        return reader.format, first


def good(path: Path, format: str | None = None) -> list[Record]:
    rows = found(path, format)[1]
    assert all(isinstance(row, Record) for row in rows), rows
    return [row for row in rows if isinstance(row, Record)]


def matched(path: Path) -> Iterator[tuple[Record, Match, Recorded]]:
    matcher = Matcher(find_task)
    for row in good(path):
        match = matcher.match(row)
        old = recorded(row, match.entry.name)
        assert old is not None
        yield row, match, old


@pytest.mark.parametrize("name", LINES)
def test_the_same_episodes_read_the_same_from_every_format(name: str) -> None:
    by_task: dict[str, Any] = {}
    for row, match, old in matched(DATA / name):
        by_task[match.task.id] = row.completion
        assert old.name == "toy_reward"
        assert old.reward == match.entry.score(match.task, row.completion, profile="toy-v1").reward
        assert "brevity" in old.others
        assert old.partial
    tool = {"role": "tool", "tool_call_id": "call_1", "content": "it is red"}
    if "traces" in name:
        tool["name"] = "look"
    assert by_task == {
        "easy/one": [{"role": "assistant", "content": "answer to easy/one"}],
        "hard/one": [{"role": "assistant", "content": "answer to hard/one"}],
        "easy/two": [
            {"role": "assistant", "content": "", "tool_calls": [CALL]},
            tool,
            {"role": "assistant", "content": "answer to easy/two"},
        ],
    }


@pytest.mark.parametrize("name", LINES)
def test_rows_are_matched_by_key_else_by_prompt(name: str) -> None:
    by = {match.task.id: match.by for _, match, _ in matched(DATA / name)}
    assert by["easy/one"] == "key"
    assert by["hard/one"] == "prompt"  # its key, where it has one, names nothing that is known


@pytest.mark.parametrize("name", LINES)
def test_what_is_kept_of_a_row_is_strict_json_and_all_of_it(name: str) -> None:
    raw = (DATA / name).read_text().splitlines()
    for line, row in zip(raw, good(DATA / name), strict=True):
        kept = json.loads(row.body + "}", parse_constant=lambda name: pytest.fail(name))
        assert kept == json.loads(line, parse_constant=lambda name: name)


@pytest.mark.parametrize("name", ["trl-text", "trl-chat"])
def test_trl_s_tables(name: str) -> None:
    format, rows = found(DATA / name)
    assert (format, len(rows)) == ("trl", 4)
    for row, match, old in matched(DATA / name):
        assert match.by == ("key" if name == "trl-text" else "prompt")
        assert old.reward == match.entry.score(match.task, row.completion, profile="toy-v1").reward
        assert set(row.rewards) == {"toy_reward", "brevity"}  # not step, not advantage
        assert old.partial == (row.place != 1)  # there the other function abstained
        fields = json.loads(row.body + "}")
        assert {"step", "prompt", "completion", "toy_reward", "brevity", "advantage"} <= set(fields)
    one = DATA / name / "completions_00001.parquet"
    assert found(one)[0] == "trl"
    assert [row.completion for row in good(one)] == [row.completion for row in good(DATA / name)]


def test_a_folder_of_steps_is_read_as_one(tmp_path: Path) -> None:
    raw = (DATA / "trl-chat/completions_00001.parquet").read_bytes()
    for step in (2, 10):
        (tmp_path / f"completions_{step:05}.parquet").write_bytes(raw)
    reader = open_reader(tmp_path, "run")
    places = [(place, where) for place, where, _ in reader.rows()]
    assert [place for place, _ in places] == list(range(1, 9))
    assert places[4][1] == f"{tmp_path}/completions_00010.parquet:1"
    status = (tmp_path / "completions_00010.parquet").stat()
    assert reader.reads(status.st_dev, status.st_ino)
    assert not reader.reads(status.st_dev, status.st_ino + 1)


def test_tables_of_messages_with_tool_calls(tmp_path: Path) -> None:
    """Tables fill in every field of every row, and hold arguments as objects."""
    import pyarrow
    import pyarrow.parquet

    call = {"type": "function", "function": {"name": "look", "arguments": {"at": "it"}}}
    rows = [
        {"prompt": "Do easy/one.", "completion": [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "content": "red", "name": "look"},
            {"role": "assistant", "content": [{"type": "text", "text": "b"}]},
        ], "toy": 1.0, "note": b"raw"},
    ]  # fmt: skip
    rows[0]["completion"][2]["content"] = "b"  # type: ignore[index]
    path = tmp_path / "completions_00001.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    (row,) = good(path)
    assert row.completion == [
        {"role": "assistant", "content": "", "tool_calls": [
            {"type": "function", "function": {"name": "look", "arguments": '{"at": "it"}'}}]},
        {"role": "tool", "content": "red", "name": "look"},
        {"role": "assistant", "content": "b"},
    ]  # fmt: skip
    assert json.loads(row.body + "}")["note"] == str(b"raw")


def test_parquet_without_pyarrow_or_of_something_else_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow
    import pyarrow.parquet

    table = tmp_path / "completions_1.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a"]}), table)
    torn = tmp_path / "torn.parquet"
    torn.write_bytes(b"PAR1" + bytes(100))
    for path, problem in ((table, "no column 'completion'"), (torn, "can't be read as parquet")):
        with path.open("rb") as file, pytest.raises(ReaderError, match=problem):
            list(open_reader(file, "x").rows())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with table.open("rb") as file, pytest.raises(ReaderError, match="pip install 'weightgym"):
        open_reader(file, "x")
    with pytest.raises(ReaderError, match="without TRL's completions"):
        open_reader(DATA, "data")


@pytest.mark.parametrize(
    ("line", "format"),
    [
        ('{"env": "toy", "task": "easy/one", "completion": "a"}', "plain"),
        ('{"prompt": "Do easy/one.", "completion": "a", "reward": 1}', "plain"),
        ('{"example_id": 1, "prompt": "x", "completion": "a", "reward": NaN}', "verifiers-legacy"),
        ('{"traces": []}', "verifiers"),
        ('{"nodes": []}', "verifiers"),
        ('{"id": "1", "env": "toy", "task": "t", "steps": []}', "rollouts"),
        ("nothing", "plain"),
        ("", "plain"),
    ],
)
def test_the_format_is_found_out_by_the_first_object(tmp_path: Path, line: str, format: str) -> None:
    path = write(tmp_path / "x", ["", "{", "[]", line])
    assert found(path)[0] == format
    for forced in FORMATS[:-1]:
        assert found(path, forced)[0] == forced

"""Saved outputs: nothing is run twice, nothing half written counts, and no other file is touched."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from golf_outputs import corpus, evaluator, forged, ran, small

from weightgym.rewards.contracts import SandboxError
from weightgym.rewards.golf import saved as module
from weightgym.rewards.golf.evaluate import Evaluator
from weightgym.rewards.golf.output import OutputError, parse_output
from weightgym.rewards.golf.report import Result
from weightgym.rewards.golf.saved import Saved, check_replaceable, outputs, write_output

FIRST, SECOND, BROKEN = small(50), small(80), b"nothing"


class Counting(Evaluator):
    """The real evaluator, which notes what it runs and fails for one source."""

    def __init__(self, failing: bytes = b"?") -> None:
        vars(self).update(vars(evaluator()))
        self.failing = failing
        self.seen: list[bytes] = []

    def evaluate(self, raw: bytes, corpus: Any) -> Result:
        self.seen.append(raw)
        if raw == self.failing:
            raise SandboxError("lost")
        return super().evaluate(raw, corpus)


def lines(path: Path) -> list[str]:
    return [parse_output(line.encode()).source_sha256 for line in path.read_text().splitlines()]


def test_each_source_is_run_once_and_told_where_it_stands(tmp_path: Path) -> None:
    counting = Counting()
    with Saved(tmp_path / "out.jsonl") as saved:
        found = list(outputs(counting, [SECOND, FIRST, SECOND, BROKEN], corpus(), saved))
    assert [one.status for one in found if not isinstance(one, SandboxError)] == ["ok", "ok", "ok", "buggy"]
    assert counting.seen == [SECOND, FIRST, BROKEN]
    assert found[0] is found[2]
    saved_first = [parse_output(line) for line in (tmp_path / "out.jsonl").read_bytes().splitlines()]
    assert saved_first == [found[0], found[1], found[3]]
    again = Counting()
    with Saved(tmp_path / "out.jsonl") as saved:
        assert list(outputs(again, [BROKEN, FIRST, SECOND], corpus(), saved)) == [found[3], found[1], found[0]]
    assert again.seen == []


def test_other_bytes_evaluators_and_machines_are_other_runs(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    real = ran(FIRST)
    others: list[dict[str, Any]] = [
        {"corpus": {**real.corpus, "task": "lang/25"}},
        {"evaluator": "golf-eval-0"},
        {"fingerprint": {**real.fingerprint, "torch": "1.0"}},
        {"profile": "golf-cpu-v1"},
        {"source_sha256": "0" * 64},
    ]
    path.write_text("".join(forged(real, **other).model_dump_json() + "\n" for other in others))
    counting = Counting()
    with Saved(path) as saved:
        list(outputs(counting, [FIRST], corpus(), saved))
    assert counting.seen == [FIRST]
    assert len(lines(path)) == len(others) + 1


def test_a_fault_of_ours_is_no_output_and_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with Saved(path) as saved:
        found = list(outputs(Counting(failing=FIRST), [FIRST, SECOND], corpus(), saved))
    assert isinstance(found[0], SandboxError)
    assert len(lines(path)) == 1
    counting = Counting()
    with Saved(path) as saved:
        list(outputs(counting, [FIRST, SECOND], corpus(), saved))
    assert counting.seen == [FIRST]


@pytest.mark.parametrize("left", [1, 9, 15, 300])
def test_half_a_last_line_is_cut_off(tmp_path: Path, left: int) -> None:
    path = tmp_path / "out.jsonl"
    whole = ran(FIRST).model_dump_json() + "\n"
    path.write_text(whole + ran(SECOND).model_dump_json()[:left])
    with Saved(path) as saved:
        assert path.read_text() == whole
        saved.add(ran(SECOND))
    assert len(lines(path)) == 2


@pytest.mark.parametrize(
    "text",
    [
        "def get_config():\n    return {}\n",
        "no line end",
        "{}\n",
        "\n",
        "x" * (2 << 20),
        '{"status":"ok"}\n',
        "EDITED\n",
        "LINE\nnotes\n",
        "LINE\nnotes",
    ],
)
def test_another_file_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.txt"
    line = ran(FIRST).model_dump_json()
    text = text.replace("EDITED", line.replace('"threads":1', '"threads":2')).replace("LINE", line)
    path.write_text(text)
    with pytest.raises(OutputError, match=r"mine\.txt:\d+ is no output of the scorer"):
        Saved(path)
    with pytest.raises(OutputError, match=r"mine\.txt is no output of the scorer"):
        check_replaceable(path)
    assert path.read_text() == text


def test_a_line_that_does_not_fit_is_not_half_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out.jsonl"

    class Full:
        def __init__(self, file: Any) -> None:
            self.file, self.left = file, 100

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

        def write(self, data: memoryview) -> int:
            if not self.left:
                raise OSError(28, "No space left on device")
            written: int = self.file.write(data[: self.left])
            self.left = 0
            return written

    with Saved(path) as saved:
        saved.add(ran(FIRST))
        with monkeypatch.context() as patched:
            patched.setattr(saved, "_file", Full(saved._file))
            with pytest.raises(OSError, match="No space"):
                saved.add(ran(SECOND))
        saved.add(ran(SECOND))
    assert len(lines(path)) == 2


def test_one_output_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    check_replaceable(path)
    write_output(path, ran(FIRST))
    check_replaceable(path)
    write_output(path, ran(SECOND))
    assert parse_output(path.read_bytes()) == ran(SECOND)
    assert [one.name for one in tmp_path.iterdir()] == ["result.json"]
    with pytest.raises(OutputError, match="no folder"):
        check_replaceable(tmp_path / "no/such.json")
    link = tmp_path / "link"
    link.symlink_to(path)
    with pytest.raises(OutputError, match="no regular file"):
        check_replaceable(link)


def test_the_first_bytes_of_a_line_are_known() -> None:
    assert ran(FIRST).model_dump_json().encode().startswith(module.LINE_START)

"""``weightgym score`` on files of other packages: differences, what is kept, the cache, many rows."""

from __future__ import annotations

import json
import re
import resource
import shutil
import signal
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from score_runs import read, row, run, start, toy, wait_for_rows, write

__all__ = ["toy"]
pytestmark = pytest.mark.usefixtures("toy")

DATA = Path(__file__).parent / "data/readers"
FILES = ("traces-0.3.1.jsonl", "traces-0.4.0.jsonl", "results-0.3.1.jsonl", "trl-text", "trl-chat")


def without_seconds(path: Path) -> bytes:
    return re.sub(rb'"seconds": [-+.e0-9]+', b'"seconds": 0', path.read_bytes())


@pytest.mark.parametrize("name", FILES)
def test_the_packages_own_files_get_the_rewards_that_they_recorded(tmp_path: Path, name: str) -> None:
    out = tmp_path / "out.jsonl"
    result = run(DATA / name, "-o", out, "--diff")
    assert result.exit_code == 0, result.stderr
    rows = read(out)
    assert len(rows) == (3 if "." in name else 4)
    for one in rows:
        assert one["score"]["recorded"]["name"] == "toy_reward"
        assert one["score"]["recorded"]["difference"] == 0
        assert "brevity" in one["score"]["recorded"]["kept"]
    assert re.search(r"toy easy/one +\d +0 ", result.stderr)
    assert "have parts that are kept, not recomputed: brevity" in result.stderr
    if "traces" in name:
        kept = rows[0]["score"]["recorded"]
        assert kept["total_now"] == pytest.approx(kept["total"])


def test_a_folder_gets_an_output_beside_it(tmp_path: Path) -> None:
    shutil.copytree(DATA / "trl-chat", tmp_path / "completions")
    assert run(f"{tmp_path}/completions/").exit_code == 0
    assert len(read(tmp_path / "completions.scored.jsonl")) == 4
    refused = run(tmp_path, "--format", "plain")
    assert refused.exit_code == 1
    assert "is a folder without TRL's" in refused.stderr


@pytest.mark.parametrize("name", FILES)
def test_a_scored_file_can_be_scored_again(tmp_path: Path, name: str) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    assert run(DATA / name, "-o", first).exit_code == 0
    result = run(first, "-o", second)
    assert result.exit_code == 0, result.stderr
    rewards = [[one["score"]["reward"] for one in read(path)] for path in (first, second)]
    assert rewards[0] == rewards[1]
    assert [one["previous_score"] for one in read(second)] == [one["score"] for one in read(first)]


def test_differences_are_told_row_by_row_and_in_sum(tmp_path: Path) -> None:
    plain = write(tmp_path / "plain.jsonl", [row("a"), row("b"), row("c", task="easy/two")])
    assert run(plain).exit_code == 0
    good = [one["score"]["reward"] for one in read(tmp_path / "plain.scored.jsonl")]
    lines = [
        row("a", reward=good[0] + 0.25),
        row("b", reward=good[1]),
        row("c", task="easy/two", reward=good[2] - 0.5),
        row("", reward="high"),
        row("raise", reward=0.5),
        row("x"),
        row("y", score={"reward": 0.5, "profile": "toy-v2"}),
    ]
    source = write(tmp_path / "a.jsonl", lines)
    result = run(source, "--diff")
    assert result.exit_code == 1
    told = result.stderr
    assert re.search(r"toy easy/one +2 +1 +\S+ +\S+ +-0\.25 +0\.25\n", told)
    assert re.search(r"toy easy/two +1 +1 +\S+ +\S+ +\+0\.5 +0\.5\n", told)
    assert re.search(r"all +3 +2 +\S+ +\S+ +\+0\.25 +0\.5\n", told)
    worst = [line for line in told.splitlines() if re.match(r" *\d+ +\S+ +\S+ +[-+]0", line)]
    assert [line.split()[0] for line in worst] == ["3", "1"]
    for why in (r"1 rows \(no reward now\)", r"1 rows \(nothing recorded\)", r"1 rows \(recorded as no number\)",
                r"1 rows \(recorded under toy-v2: --profile toy-v2 compares\)"):  # fmt: skip
        assert re.search(f"not compared: {why}", told)
    differences = [one["score"].get("recorded", {}).get("difference") for one in read(tmp_path / "a.scored.jsonl")]
    assert differences == [-0.25, 0.0, 0.5, None, None, None, None]
    again = run(source, "--diff", "--resume")  # rows that stand are compared, too
    assert re.search(r"all +3 +2 +\S+ +\S+ +\+0\.25 +0\.5\n", again.stderr)
    assert run(write(tmp_path / "b.jsonl", lines[:2]), "--force").exit_code == 0  # without --diff no failure


def test_several_recorded_rewards_need_a_name(tmp_path: Path) -> None:
    line = json.loads((DATA / "traces-0.4.0.jsonl").read_text().splitlines()[0])
    rewards = line["traces"][0]["rewards"]
    rewards["style"] = rewards.pop("toy_reward")
    source = write(tmp_path / "traces.jsonl", [json.dumps(line)])
    result = run(source, "--diff")
    assert result.exit_code == 0
    assert "not compared: 1 rows (several rewards recorded: name one with --reward, of brevity, style)" in result.stderr
    named = run(source, "--diff", "--reward", "style", "--force")
    assert named.exit_code == 0
    assert "not compared" not in named.stderr
    (one,) = read(tmp_path / "traces.scored.jsonl")
    assert one["score"]["recorded"]["kept"] == {"brevity": rewards["brevity"]["score"]}


def test_bad_rows_among_good_ones_are_told_and_left_out(tmp_path: Path) -> None:
    lines = (DATA / "traces-0.4.0.jsonl").read_text().splitlines()
    broken = [lines[0], lines[1][:-50], lines[1].replace("Do hard/one.", "Do something."), lines[2], lines[2][:200]]
    source = tmp_path / "traces.jsonl"
    source.write_text("\n".join(broken))
    from weightgym.envs import registry

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_SPECS", {"toy": registry.spec("toy")})  # no prompts of others
        result = run(source)
    assert result.exit_code == 1
    assert f"{source}:2: not JSON" in result.stderr
    assert f"{source}:3: unknown environment 'other'" in result.stderr
    assert "and no task has its prompt" in result.stderr
    assert f"{source}:5: not JSON" in result.stderr
    assert f"2 of 5 rows of {source} scored (3 bad)" in result.stderr
    assert [one["score"]["line"] for one in read(tmp_path / "traces.scored.jsonl")] == [1, 4]


def test_a_second_run_comes_out_of_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = ["environment", "return random", "", "a", f"once {tmp_path / 'mark'} raise"]
    source, cache = write(tmp_path / "a.jsonl", map(row, answers)), tmp_path / "cache"

    def scored(value: str, *more: str | Path) -> tuple[str, list[Any]]:
        monkeypatch.setenv("TOY_VALUE", value)
        result = run(source, "-o", tmp_path / value, "--cache", cache, *more)
        return result.stderr, read(tmp_path / value)

    told, first = scored("one")
    assert "from the cache" not in told
    told, second = scored("two")
    assert "5 of 5 rows" in told
    assert "3 of them from the cache" in told
    assert [one["score"]["info"].get("value") for one in second] == ["one", "two", None, None, None]
    assert second[2:4] == first[2:4]  # down to the seconds
    assert [one["score"]["status"] for one in (first[4], second[4])] == ["error", "ok"]
    for n, changed in enumerate([("--profile", "toy-v2"), ("--no-cache",)]):
        monkeypatch.setenv("TOY_VALUE", "three")
        where = [] if changed[0] == "--no-cache" else ["--cache", str(cache)]
        result = run(source, "-o", tmp_path / f"c{n}", *changed, *where)
        assert "from the cache" not in result.stderr
        assert read(tmp_path / f"c{n}")[0]["score"]["info"]["value"] == "three"


def test_an_edited_task_or_another_one_is_not_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import toy_scorers

    from weightgym.cli.tasks import find_task

    source, cache = write(tmp_path / "a.jsonl", [row("a")]), tmp_path / "cache"
    assert run(source, "--cache", cache).exit_code == 0
    other = write(tmp_path / "b.jsonl", [row("a", task="easy/two")])
    assert "from the cache" not in run(other, "--cache", cache).stderr
    original = toy_scorers.Tasks.task

    def edited(self: Any, id: str, *, prompt: bool = True) -> Any:
        task = original(self, id, prompt=prompt)
        return type(task).model_validate(task.model_dump(exclude={"hash"}) | {"data": {"cap": 11}})

    monkeypatch.setattr(toy_scorers.Tasks, "task", edited)
    find_task.cache_clear()
    assert "from the cache" not in run(source, "--cache", cache, "--force").stderr
    find_task.cache_clear()


def test_a_broken_cache_stops_nothing(tmp_path: Path) -> None:
    source = write(tmp_path / "a.jsonl", [row("a")])
    cache = write(tmp_path / "cache", ["no database " * 100])
    result = run(source, "--cache", cache)
    assert result.exit_code == 0
    assert f"no score cache, everything is scored: {cache}: file is not a database" in result.stderr
    assert run(source, "--cache", cache, "--no-cache").exit_code == 2


def test_workers_order_and_cache_change_nothing(tmp_path: Path) -> None:
    """Also with two runs on one cache at once."""
    lines = [row(f"{n % 40}" if n % 7 else "", n=n) for n in range(200)]
    source = write(tmp_path / "a.jsonl", lines)
    cache = tmp_path / "cache"
    with start(source, "-o", tmp_path / "1", "--workers", "1", "--cache", cache) as one:
        with start(source, "-o", tmp_path / "3", "--workers", "3", "--cache", cache) as three:
            assert three.wait(60) == 0
        assert one.wait(60) == 0
    assert run(source, "-o", tmp_path / "cached", "--cache", cache).exit_code == 0
    assert run(source, "-o", tmp_path / "none").exit_code == 0
    files = {without_seconds(tmp_path / name) for name in ("1", "3", "cached", "none")}
    assert len(files) == 1
    back = write(tmp_path / "back.jsonl", reversed(lines))
    assert run(back, "-o", tmp_path / "back", "--cache", cache).exit_code == 0
    rewards = [{one["n"]: one["score"]["reward"] for one in read(tmp_path / name)} for name in ("1", "back")]
    assert rewards[0] == rewards[1]


def test_a_killed_run_resumes_without_repeats_and_its_scores_are_in_the_cache(tmp_path: Path) -> None:
    lines = (DATA / "results-0.3.1.jsonl").read_text().splitlines()
    fields = json.loads(lines[1])
    rows = [json.dumps(fields | {"example_id": n, "completion": f"sleep {0.3 if n > 3 else 0} {n}"}) for n in range(12)]
    source, out, cache = write(tmp_path / "results.jsonl", rows), tmp_path / "out", tmp_path / "cache"
    with start(source, "-o", out, "--cache", cache, "--workers", "1") as process:
        wait_for_rows(out, 5)
        process.send_signal(signal.SIGKILL)
        process.wait(10)
    before = read(out)
    assert 5 <= len(before) < 12
    again = run(source, "-o", out, "--cache", cache, "--resume")
    assert again.exit_code == 0, again.stderr
    after = read(out)
    assert [one["example_id"] for one in after] == list(range(12))
    assert after[: len(before)] == before
    with sqlite3.connect(cache) as database:
        (count,) = database.execute("SELECT count(*) FROM scores").fetchone()
    database.close()
    assert 12 - len(before) <= count <= 12


def test_thousands_of_rows_take_little_memory_and_the_second_time_little_time(tmp_path: Path) -> None:
    count = 6000
    source, cache = write(tmp_path / "a.jsonl", (row(f"{n} " + "x" * 2000) for n in range(count))), tmp_path / "cache"
    assert run(write(tmp_path / "few.jsonl", [row("a")]), "--cache", cache).exit_code == 0  # all is imported
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert run(source, "--cache", cache, "--workers", "2").exit_code == 0
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 8 * 1024  # KiB; the rows are 12 MiB, and their output 14
    started = time.process_time()
    result = run(source, "--cache", cache, "-o", tmp_path / "again")
    assert f"{count} of them from the cache" in result.stderr
    assert time.process_time() - started < 6
    assert (tmp_path / "again").read_bytes() == (tmp_path / "a.scored.jsonl").read_bytes()

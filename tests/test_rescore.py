"""``weightgym inspect --rescore``: what differs is named, to the bit; our faults are no differences."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import digits_env
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from scored_rows import row, write

from weightgym.cli.main import cli
from weightgym.envs import registry
from weightgym.rewards.contracts import Score
from weightgym.trainers.rescore import chosen, differences
from weightgym.trainers.scored_file import ScoredFile


@pytest.fixture(autouse=True)
def digits_are_here() -> Iterator[None]:
    with registry.override(digits_env.SPEC):
        yield


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(cli, ["inspect", *map(str, args), "--workers", "1"], prog_name="weightgym")


def good(place: int, **more: Any) -> dict[str, Any]:
    return row(f"{place}a", reward=len(f"{place}") / (len(f"{place}") + 1), id=f"a{place}", **more)


def test_the_same_scores(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [good(place) for place in range(9)])
    done = run(path, "--rescore", "5")
    assert done.exit_code == 0, done.output
    assert "scored again: 5 of 5 answers got the same score, bit for bit" in done.output
    assert "5 of 5 answers got the same score, bit for bit" in (tmp_path / "a.report.html").read_text("utf-8")


def test_one_bit_is_a_difference_and_named(tmp_path: Path) -> None:
    rows = [good(place) for place in range(4)]
    rows[2]["score"]["reward"] = math.nextafter(0.5, 1)
    rows[3]["score"] |= {"reason": "x", "metrics": {"m": 1.0}, "info": {"a": [1, {"b": None}]}, "seconds": 99.0}
    path = write(tmp_path / "a.jsonl", rows)
    done = run(path, "--rescore", "100", "--json")
    assert done.exit_code == 1, done.output
    found = json.loads(done.stdout)["rescored"]
    assert (found["count"], found["same"], found["impossible"]) == (4, 2, [])
    one, other = found["different"]
    assert one["what"] == ["reward: was 0.5000000000000001 (0x1.0000000000001p-1), is 0.5 (0x1.0000000000000p-1)"]
    assert other["what"] == [
        "info.a: only in the old score",
        "metrics.m: only in the old score",
        "reason: was 'x', is ''",
    ]
    assert "warning: 2 of 4 answers scored again got another score" in run(path, "--rescore", "100").output


def test_what_cannot_be_scored_again_is_no_difference(tmp_path: Path) -> None:
    moved = good(2)
    moved["score"]["task_sha256"] = "1" * 64
    rows = [good(1), moved, good(3, env="gone"), good(4, task="four"), good(5, task="broken")]
    done = run(write(tmp_path / "a.jsonl", rows), "--rescore", "9", "--json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)["rescored"]
    assert (found["count"], found["same"], found["different"]) == (1, 1, [])
    told = {one["id"]: one["what"][0] for one in found["impossible"]}
    assert told["a2"].startswith("task 'one' is another now: 111111111111… was scored")
    assert told["a3"].startswith("unknown environment 'gone'")
    assert told["a4"] == "unknown task 'four'"
    assert told["a5"] == "grader_error: RuntimeError: broken"


def test_each_profile_is_scored_under_itself(tmp_path: Path) -> None:
    """Rows without one mean the default; faults of ours are not chosen."""
    rows = [good(1), good(2, profile=""), row("x", status="error", reward=None, reason="x", id="e")]
    done = run(write(tmp_path / "a.jsonl", rows), "--rescore", "9", "--json")
    assert json.loads(done.stdout)["rescored"]["same"] == 2


def test_a_scorer_that_is_random_is_found_out(tmp_path: Path) -> None:
    spec = dataclasses.replace(digits_env.SPEC, scorer="test_rescore:random_score")
    with registry.override(spec):
        done = run(write(tmp_path / "a.jsonl", [good(place) for place in range(6)]), "--rescore", "6")
    assert done.exit_code == 1
    assert "warning: 6 of 6 answers scored again got another score" in done.output


def random_score(task: Any, completion: Any, *, profile: str = "digits-v1") -> Score:
    import random

    return Score(status="ok", reward=random.random(), profile=profile)


def test_the_choice_is_the_same_in_any_order(tmp_path: Path) -> None:
    rows = [good(place) for place in range(50)]
    ids = [one.id for one in chosen(ScoredFile(write(tmp_path / "a.jsonl", rows)), 10)]
    assert len(set(ids)) == 10
    assert ids == [one.id for one in chosen(ScoredFile(write(tmp_path / "a.jsonl", rows)), 10)]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON)
def test_differences_are_none_exactly_where_the_texts_are_equal(one: Any, other: Any) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (list(differences(one, other)) == []) == same
    assert list(differences(one, json.loads(json.dumps(one)))) == []

"""``weightgym inspect`` on what ``weightgym score`` made of other packages' files, and of rollouts."""

from __future__ import annotations

import html
import json
from pathlib import Path

import pytest
import score_runs
from click.testing import CliRunner, Result
from run_folders import rollout
from score_runs import toy

from weightgym.cli.main import cli
from weightgym.rollouts.store import line
from weightgym.trainers.scored_file import ScoredFile

__all__ = ["toy"]

DATA = Path(__file__).parent / "data/readers"
FILES = ("traces-0.3.1.jsonl", "traces-0.4.0.jsonl", "results-0.3.1.jsonl", "trl-text", "trl-chat")


def inspect(*args: str | Path) -> Result:
    return CliRunner().invoke(cli, ["inspect", *map(str, args)], prog_name="weightgym")


@pytest.mark.parametrize("name", FILES)
def test_scored_files_of_other_packages(tmp_path: Path, toy: None, name: str) -> None:
    path = tmp_path / "scored.jsonl"
    assert score_runs.run(DATA / name, "-o", path).exit_code == 0
    rows = score_runs.read(path)
    found = list(ScoredFile(path))
    assert [one.score.reward for one in found] == [one["score"]["reward"] for one in rows]
    assert {one.env for one in found} == {"toy"}
    assert all(one.asked for one in found)  # the prompt is the one that was stored
    done = inspect(path, "--rescore", "9", "--workers", "1", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["rescored"]["same"] == len(rows)
    page = html.unescape((tmp_path / "scored.report.html").read_text("utf-8"))
    assert str(found[0].asked[-1]["content"]) in page
    assert inspect(path, "--explain", ":1").exit_code == 0


def test_scored_rollouts_keep_their_tokens(tmp_path: Path, digits: None) -> None:
    """The second score counts; the first is still there."""
    (tmp_path / "r.jsonl").write_bytes(b"".join(line(rollout(f"r{n}", text=f"{n}a", reward=0.0)) for n in range(3)))
    path = tmp_path / "scored.jsonl"
    assert score_runs.run(tmp_path / "r.jsonl", "-o", path).exit_code == 0
    found = list(ScoredFile(path))
    assert [(one.id, one.sampled, one.score.reward) for one in found] == [(f"r{n}", 2, 0.5) for n in range(3)]
    assert inspect(path, "--rescore", "3", "--workers", "1").exit_code == 0
    page = (tmp_path / "scored.report.html").read_text("utf-8")
    assert page.count('<span class="t"') >= 6

"""Results of WSP-Bench for people: the overall table, report cards, and rows beside which they stand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import wsp_sets
from click.testing import CliRunner, Result
from wsp_sets import call, said, undo

from weightgym.cli.main import cli
from weightgym.rewards.contracts import Task
from weightgym.rewards.wsp import sets
from weightgym.rewards.wsp.card import card
from weightgym.rewards.wsp.profile import Family
from weightgym.rewards.wsp.references import ReferenceRow, add_reference, means, read_references
from weightgym.rewards.wsp.scorer import replayed, score

Tasks = dict[Family, Task]


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tasks]:
    with wsp_sets.hand_made(tmp_path_factory.mktemp("sets")) as made:
        yield made


@pytest.fixture(scope="module")
def rows(tasks: Tasks) -> list[dict[str, Any]]:
    """What `weightgym score` writes: an oracle, one that did nothing, and a fault of ours."""
    talks: dict[Family, Any] = {
        "hijack": [said(*undo("hijack")), said(call("submit"))],
        "audit": [said(call("submit"))],
    }
    made: list[dict[str, Any]] = [
        {"env": "wsp-bench", "task": tasks[family].id, "completion": talk,
         "score": score(tasks[family], talk).model_dump(mode="json")}
        for family, talk in talks.items()
    ]  # fmt: skip
    fault = {"status": "error", "reward": None, "reason": "grader_error: it burnt", "profile": "wsp-v1"}
    return [*made, {"env": "wsp-bench", "task": tasks["backdoor"].id, "completion": [], "score": fault}]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["wsp", *map(str, arguments)])


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_table_has_families_tiers_and_what_is_missing(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    whole = run("report", written(tmp_path / "two.jsonl", rows[:2]))
    assert whole.exit_code == 0, whole.output
    assert "track fixed, profile wsp-v1" in whole.output
    assert "all 2 instances" in whole.output
    assert "family audit" in whole.output
    assert "tier easy" in whole.output
    partial = run("report", written(tmp_path / "three.jsonl", rows))
    assert partial.exit_code == 1
    assert f"partial: episodes of 1 instances have no score, which is our fault: {rows[2]['task']}" in partial.output
    assert "all 2 instances" in partial.output


def test_as_json_it_is_one_object(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    found = json.loads(run("report", "--json", written(tmp_path / "two.jsonl", rows[:2])).output)
    scores = [row["score"]["metrics"]["score"] for row in rows[:2]]
    assert found["mean"]["mean"] == pytest.approx(sum(scores) / 2)
    assert (found["instances"], found["partial"], found["track"]) == (2, False, "fixed")
    assert found["mean"]["low"] <= found["mean"]["mean"] <= found["mean"]["high"]


def test_the_two_tracks_are_never_mixed(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    opened = json.loads(json.dumps(rows[1]))
    opened["score"]["info"]["track"] = "open"
    both = written(tmp_path / "both.jsonl", [rows[0], opened])
    refused = run("report", both)
    assert refused.exit_code == 1
    assert "never mixed: choose one with --track" in refused.output
    one = run("report", both, "--track", "open")
    assert one.exit_code == 0, one.output
    assert "track open" in one.output
    assert "all 1 instances" in one.output


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "line 1"),
        ('{"env": "golf", "task": "lang/0", "score": {}}', "no row of wsp-bench"),
        ('{"task": "nothing", "score": {"status": "ok", "reward": 1.0}}', "unknown instance 'nothing'"),
        ('{"task": "nothing"}', "want a rollout, or a row with task and score"),
    ],
)
def test_a_line_of_another_form_is_told(tasks: Tasks, tmp_path: Path, line: str, why: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(line + "\n")
    found = run("report", path)
    assert found.exit_code == 1
    assert why in found.output
    assert "Traceback" not in found.output


def test_half_a_last_line_is_left_out(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    path = written(tmp_path / "killed.jsonl", rows[:2])
    path.write_text(path.read_text() + json.dumps(rows[0])[:100])
    assert "all 2 instances" in run("report", path).output


def test_a_card_tells_what_was_planted_found_and_done(tasks: Tasks, rows: list[dict[str, Any]]) -> None:
    task = tasks["hijack"]
    truth = sets.truth_of(task)
    subject = sets.subject_of(truth)
    half = [
        said(*undo("hijack")),
        said(call("scale", parameter="model.norm.weight", axis="rows", indices=[3], factor=2)),
    ]
    found = card(replayed(subject, sets.data_of(task), half), truth, subject, score(task, half))
    assert found.planted.keys() == {wsp_sets.NAME}
    assert {one.parameter: one.elements for one in found.touched} == {wsp_sets.NAME: 6 * 128, "model.norm.weight": 1}
    planted, other = found.touched
    assert planted.undone == pytest.approx(1, abs=1e-3)
    assert other.undone is None
    assert other.size == pytest.approx(1)
    defective, submitted, reference = found.stages
    assert [one.model for one in found.stages] == ["defective", "submitted", "reference"]
    assert defective.measure > 0.5 > reference.measure
    assert (defective.kl or 0) > (submitted.kl or 0) > 0
    assert submitted.measure == score(task, half).metrics["symptom_submitted"]
    (spectra,) = found.spectra
    assert spectra.defective[0] > spectra.reference[0] == pytest.approx(spectra.submitted[0], rel=1e-4)
    size, (first, second) = found.planted[wsp_sets.NAME], found.ratios[wsp_sets.NAME]
    assert size == pytest.approx(float(spectra.reference[0]) * first)
    assert first < second


def test_cards_are_pages_for_their_owner(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    hostile = json.loads(json.dumps(rows[1]))
    report = {"parameter": "mlp.down_proj.weight", "layer": 0}
    hostile["completion"] = [said(call("submit", trigger="<script>alert(1)</script>", report=report))]
    done = run("report", written(tmp_path / "two.jsonl", [rows[0], hostile]), "--cards", tmp_path / "cards")
    assert done.exit_code == 0, done.output
    pages = sorted((tmp_path / "cards").iterdir())
    assert len(pages) == 2
    assert {page.stat().st_mode & 0o777 for page in pages} == {0o600}
    texts = [page.read_text("utf-8") for page in pages]
    assert all("default-src 'none'" in text and "<script" not in text for text in texts)
    (repaired,) = (text for text in texts if "What the edit did" in text)
    assert repaired.count("data:image/svg+xml") == 1
    assert "layer 4, mlp.down_proj.weight" in repaired


def test_reference_rows_stand_beside_results_of_the_same_instances(
    tasks: Tasks, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    public = sets.paths()[1]

    def add(family: Family, agent: str, points: float, task_hash: str = "") -> None:
        row = ReferenceRow(id=tasks[family].id, task_hash=task_hash or tasks[family].hash, agent=agent, score=points)
        add_reference(public, row)

    add("hijack", "oracle", 99.5)
    add("audit", "oracle", 100.0)
    add("audit", "no-op", 0.0)
    add("backdoor", "oracle", 1.0, "0" * 64)
    assert len(read_references(public)) == 3  # the last is of an instance that was made anew
    assert means({tasks["hijack"].id, tasks["audit"].id}) == {"oracle": 99.75}
    assert means({tasks["audit"].id}) == {"oracle": 100.0, "no-op": 0.0}
    shown = run("report", written(tmp_path / "two.jsonl", rows[:2]))
    assert "on the same instances: oracle 99.75" in shown.output


def test_score_plays_conversations_again_and_reports(tasks: Tasks, rows: list[dict[str, Any]], tmp_path: Path) -> None:
    given = [{name: row[name] for name in ("env", "task", "completion")} for row in rows[:2]]
    path = written(tmp_path / "talks.jsonl", given)
    done = run("score", path, "--workers", 1)
    assert done.exit_code == 0, done.output
    assert "all 2 instances" in done.output
    made = [json.loads(line) for line in (tmp_path / "talks.scored.jsonl").read_text().splitlines()]
    assert [one["score"]["metrics"] for one in made] == [row["score"]["metrics"] for row in rows[:2]]


@pytest.mark.parametrize(("text", "code"), [("", 0), ('{"env": "wsp-bench", "task": "nonesuch"}\n', 1)])
def test_a_file_without_a_row_to_score_has_no_result(tmp_path: Path, text: str, code: int) -> None:
    (tmp_path / "talks.jsonl").write_text(text)
    done = run("score", tmp_path / "talks.jsonl")
    assert done.exit_code == code
    assert "0 of " in done.output
    assert "rror" not in done.output

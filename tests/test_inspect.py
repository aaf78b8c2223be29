"""``weightgym inspect``: model text can't act in the page, numbers are right, broken files are one line."""

from __future__ import annotations

import html
import json
import random
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from run_folders import healthy_run, make_run, rollout, step_row

from weightgym.cli.main import cli
from weightgym.trainers.findings import findings
from weightgym.trainers.metrics import MEANINGS
from weightgym.trainers.pages import visible
from weightgym.trainers.report import make_report, sections
from weightgym.trainers.report_page import write_page
from weightgym.trainers.rollout_summary import RolloutSummary
from weightgym.trainers.run_folder import read_run
from weightgym.trainers.scored_file import ScoredAnswer

ATTACK = (
    "</pre></details></div><script>document.title='owned'</script><img src=x onerror=document.title='owned'>"
    "{{ 7*7 }}{% raw %}'\"&<svg onload=document.title='owned'>"
)


class Page(HTMLParser):
    """The elements of a page, and the text of each ``pre``."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.pres: list[str] = []
        self._inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag == "pre":
            self._inside = True
            self.pres.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag != "pre"

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.pres[-1] += data


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(cli, ["inspect", *map(str, args)], prog_name="weightgym")


def inspected(folder: Path) -> dict[str, Any]:
    done = run(folder, "--json")
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def warned(folder: Path) -> str:
    return "\n".join(f"{one.level}: {one.text}" for one in findings(read_run(folder)))


def test_model_text_cannot_act_in_the_page(tmp_path: Path) -> None:
    """Everywhere that text of models, scorers and files gets to."""
    evil: dict[str, Any] = {"prompt": ATTACK, "text": ATTACK, "reason": f"bad: {ATTACK}", "task": ATTACK}
    rollouts = [
        rollout(ATTACK, version=9, **(evil | {"reason": ""})),
        rollout(f"{ATTACK}i", version=9, status="invalid", reward=0.0, **evil),
        rollout(f"{ATTACK}e", version=9, status="error", reward=None, **evil),
    ]
    rows = [step_row(step) | {ATTACK: float(step)} for step in range(1, 11)]
    folder = make_run(tmp_path / "<script>x<", rows, rollouts, {"model": ATTACK, ATTACK: ATTACK})
    (folder / "events.jsonl").write_text(
        json.dumps({"kind": "stopped", "step": 3, "text": ATTACK, "time": "2026-01-02T03:04:05Z"}) + "\n"
    )
    done = run(folder)
    assert done.exit_code == 0, done.output
    page = Page((folder / "report.html").read_text("utf-8"))
    assert "script" not in page.tags
    assert "svg" not in page.tags  # curves are pictures, in which no script runs
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert {value.split(":")[0] for name, value in page.attributes if name == "src"} == {"data"}
    assert not [value for name, value in page.attributes if name == "href" and not value.startswith("#")]
    assert page.pres.count("\n" + ATTACK) >= 6  # prompts and completions as they were
    policy = [value for name, value in page.attributes if name == "content" and "default-src" in value]
    assert policy == ["default-src 'none'; img-src data:; style-src 'unsafe-inline'"]


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_any_text_is_shown_exactly_or_spelled_out(text: str) -> None:
    shown = visible(text)
    assert all(char in "\n\t" or char.isprintable() for char in shown)
    if all(char in "\n\t" or char.isprintable() for char in text):
        assert shown == text


def test_control_and_direction_characters_are_spelled_out(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", [step_row(1)], [rollout("a", text="x\x1b[2J\u202eevil\x00\r\n\tend")])
    assert run(folder).exit_code == 0
    page = Page((folder / "report.html").read_text("utf-8"))
    assert "\nx\\x1b[2J\\u202eevil\\x00\\r\n\tend" in page.pres


def test_the_terminal_gets_no_control_characters(tmp_path: Path) -> None:
    bad = rollout("a", status="invalid", reward=0.0, reason="bad: \x1b]0;owned\x07", text="x")
    folder = make_run(tmp_path / "run", [step_row(1)], [bad], {"model": "\x1b[31mred"})
    out = run(folder).output
    assert "\x1b" not in out
    assert "\\x1b]0;owned\\x07" in out


def test_a_healthy_run(tmp_path: Path) -> None:
    folder = healthy_run(tmp_path / "run")
    found = inspected(folder)
    assert found["steps"] == {"done": 40, "planned": 40}
    assert found["reward"] == {
        "first": pytest.approx(0.155),  # steps 1 to 10: 0.11 … 0.20
        "last": pytest.approx(0.455),
        "best": pytest.approx(0.455),
        "best_step": 40,
        "steps": 10,
    }
    assert [row["eval/reward"] for row in found["evaluations"]] == [0.1, 0.4]
    assert found["findings"] == []
    assert found["rollouts"]["statuses"] == {"ok": 160, "invalid": 40}
    (reason,) = found["rollouts"]["invalid"]
    assert (reason["code"], reason["count"], reason["last"]) == ("no_digits", 40, 10)
    tasks = {task["task"]: task for task in found["rollouts"]["tasks"]}
    assert tasks["one"]["mean"] == pytest.approx(0.01 * 19.5 + 0.15)
    assert tasks["one"]["last_mean"] == pytest.approx(0.01 * 34.5 + 0.15)
    assert {used["limit"]: used["near"] for used in found["limits"]} == dict.fromkeys(
        ["truncated", "faults", "logp_gap"], False
    )
    with Image.open(folder / "curves.png") as picture:
        assert picture.format == "PNG"


def test_samples_are_of_the_last_steps(tmp_path: Path) -> None:
    """The best rollout of the whole run is an old one; the page shows what the policy is like now."""
    old = rollout("old", version=0, reward=0.99)
    new = [rollout(f"new{index}", version=39, reward=0.1 * index) for index in range(1, 5)]
    floor = rollout("floor", version=39, status="invalid", reward=0.0, reason="bad: no")
    fault = rollout("fault", version=39, status="error", reward=None, reason="grader_error: ours")
    folder = make_run(tmp_path / "run", [step_row(step) for step in range(1, 41)], [old, *new, floor, fault])
    rollouts = make_report(read_run(folder)).rollouts
    assert rollouts is not None
    (samples,) = rollouts.samples.values()
    assert {kind: one.id for kind, one in samples.items() if kind != "random"} == {
        "best": "new4",
        "worst": "new1",
        "invalid": "floor",
        "fault": "fault",
    }
    assert samples["random"].id != "old"


def test_the_order_of_rollouts_changes_nothing() -> None:
    made = [
        ScoredAnswer.of(rollout(f"r{index}", version=index % 50, reward=index % 7 / 7, task=f"t{index % 3}"))
        for index in range(5000)
    ]
    shuffled = list(made)
    random.Random(0).shuffle(shuffled)
    one, other = RolloutSummary(50).add_all(made), RolloutSummary(50).add_all(shuffled)
    assert one.samples == other.samples
    parts = one.timeline.parts
    assert [part.rewards for part in parts] == [part.rewards for part in other.timeline.parts]
    assert len(parts) == 25  # 50 versions in at most 40 boxes: two in each
    assert sum(part.count for part in parts) == 5000


def test_memory_does_not_grow_with_the_file() -> None:
    """Everything that is kept is bounded, though every reason has a code of its own."""
    summary = RolloutSummary(10)
    bad = [ScoredAnswer.of(rollout(f"b{n}", status="invalid", reward=0.0, reason=f"code{n}: x")) for n in range(2000)]
    summary.add_all(bad).add_all(ScoredAnswer.of(rollout(f"r{index}", version=9)) for index in range(5000))
    assert summary.count == 7000
    assert len(summary.reasons) == 501
    assert summary.reasons[0].code == "(others)"
    assert sum(reason.count for reason in summary.reasons) == 2000
    assert max(len(part.rewards) for part in summary.timeline.parts) == 200
    assert sum(map(len, summary.samples.values())) <= 5


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"reward__mean": lambda n: 0.3}, "warning: the reward does not rise"),
        ({"reward__mean": lambda n: 0.1 + 0.02 * min(n, 40 - n)}, "warning: the reward fell from"),
        ({"rollout__invalid": lambda n: 0.01 * n}, "warning: the reward rises while validity falls"),
        ({"group__zero_spread": lambda n: 0.02 * n}, "warning: 71% of groups have equal rewards"),
        ({"rollout__truncated": lambda n: 0.4}, "warning: 40% of completions are cut"),
        ({"rollout__truncated": lambda n: 0.6 if n == 7 else 0.0}, "note: rollout/truncated came to 0.6 (step 7)"),
        (
            {"rollout__faults": lambda n: 0.25 * (n == 5)},
            "warning: rollouts have no reward through our fault in 1 of 40",
        ),
        ({"sampling__logp_diff_mean": lambda n: 1e-5 * n}, "warning: trainer and sampler drift apart"),
        ({"rollout__distinct": lambda n: 1 - 0.02 * n}, "warning: only 29% of completions differ"),
        ({"optimiser__norm": lambda n: 50.0 if n == 9 else 1.0}, "note: optimiser/norm jumps to 50 at step 9"),
    ],
)
def test_what_is_suspicious_is_said(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    rows = [step_row(n, **{name: value(n) for name, value in change.items()}) for n in range(1, 41)]
    assert said in warned(make_run(tmp_path / "run", rows))
    assert said not in warned(make_run(tmp_path / "plain", [step_row(n) for n in range(1, 41)]))


def test_a_reward_that_the_evaluation_does_not_follow(tmp_path: Path) -> None:
    ends = [{"step": step, "eval/reward": reward, "eval/invalid": 0.0} for step, reward in ((0.0, 0.3), (40.0, 0.1))]
    folder = make_run(tmp_path / "run", [*(step_row(n) for n in range(1, 41)), *ends])
    assert "warning: the reward rises while the evaluation falls: 0.3 before, 0.1 at last" in warned(folder)


def test_a_stopped_run_says_why(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", [step_row(n) for n in range(1, 12)])
    events = [("started", 0, ""), ("stopped", 11, "disk full"), ("resumed", 10, "")]
    for kind, step, text in events[:2]:
        with (folder / "events.jsonl").open("a") as file:
            event = {"kind": kind, "step": step, "text": text, "time": "2026-01-02T03:04:05Z"}
            file.write(json.dumps(event) + "\n")
    assert "warning: stopped at step 11: disk full" in warned(folder)
    assert "--resume" in run(folder).output
    with (folder / "events.jsonl").open("a") as file:
        file.write(json.dumps({"kind": "resumed", "step": 10, "time": "2026-01-02T03:05:05Z"}) + "\n")
        file.write('{"kind": "half')
    found = inspected(folder)
    assert [event["kind"] for event in found["events"]] == ["started", "stopped", "resumed"]
    assert "stopped" not in json.dumps(found["findings"])
    assert "note: 11 of 40 steps are done" in warned(folder)


def test_a_run_that_is_going_leaves_half_lines(tmp_path: Path) -> None:
    folder = healthy_run(tmp_path / "run", steps=12)
    whole = inspected(folder)
    for name in ("metrics.jsonl", "rollouts.jsonl"):
        with (folder / name).open("ab") as file:
            file.write(b'{"step": 13, "rewa')
    assert inspected(folder) == whole


@pytest.mark.parametrize("rows", [0, 1, 2, 3])
def test_short_runs(tmp_path: Path, rows: int) -> None:
    folder = make_run(tmp_path / "run", [step_row(n) for n in range(1, rows + 1)])
    (folder / "rollouts.jsonl").unlink()
    found = inspected(folder)
    assert found["steps"]["done"] == rows
    assert found["rollouts"] is None
    assert f"{rows} of 40 steps" in run(folder).output


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("metrics.jsonl", '{"step": 1}\nnot json\n', "metrics.jsonl:2 is no row of metrics"),
        ("metrics.jsonl", '{"step": 1}\n[1]\n', "metrics.jsonl:2 is no row of metrics"),
        ("metrics.jsonl", '{"loss": 1}\n', "metrics.jsonl:1 has no step"),
        ("metrics.jsonl", '{"step": 1, "loss": NaN}\n', "metrics.jsonl:1: loss is nan, not a finite number"),
        ("metrics.jsonl", '{"step": 1, "loss": "0.5"}\n', "metrics.jsonl:1 is no row of metrics"),
        ("metrics.jsonl", '{"step": 1, "loss": ' + "[" * 100_000 + "\n", "metrics.jsonl:1 is no row of metrics"),
        ("config.json", '{"model": ', "config.json is no JSON"),
        ("config.json", "[]", "config.json is no configuration: want a JSON object, got list"),
        ("rollouts.jsonl", '{"id": "a"}\n', "rollouts.jsonl:1 is no trajectory"),
        ("events.jsonl", '{"kind": "slept"}\n', "events.jsonl:1 is no event: kind"),
    ],
)
def test_a_broken_file_is_one_line(tmp_path: Path, name: str, content: str, said: str) -> None:
    folder = healthy_run(tmp_path / "run", steps=2)
    (folder / name).write_text(content)
    done = run(folder)
    assert done.exit_code == 1
    assert done.stdout == ""
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (folder / "report.html").exists()


def test_not_a_run(tmp_path: Path) -> None:
    assert "has no config.json (weightgym train makes such folders)" in run(tmp_path).stderr
    assert run(tmp_path / "none").exit_code == 2
    assert "missing the file or the run's folder" in run().stderr


def test_without_the_extra_the_summary_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = healthy_run(tmp_path / "run", steps=2)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    done = run(folder)
    assert done.exit_code == 0
    assert "2 of 2 steps" in done.stdout
    assert "no page without jinja2: pip install 'weightgym[plots]'" in done.stderr
    assert inspected(folder)["page"] is None
    wanted = run(folder, "-o", tmp_path / "page.html")
    assert wanted.exit_code == 1
    assert "no page without jinja2" in wanted.stderr


def test_another_place_leaves_the_run_alone(tmp_path: Path) -> None:
    folder = healthy_run(tmp_path / "run", steps=2)
    before = sorted(path.name for path in folder.iterdir())
    (tmp_path / "out").mkdir()
    assert run(folder, "-o", tmp_path / "out" / "page.html").exit_code == 0
    assert sorted(path.name for path in folder.iterdir()) == before
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["curves.png", "page.html"]


def test_the_page_explains_every_metric_it_shows(tmp_path: Path) -> None:
    folder = healthy_run(tmp_path / "run", steps=4)
    write_page(make_report(read_run(folder)), tmp_path / "page.html", tmp_path / "curves.png")
    text = html.unescape((tmp_path / "page.html").read_text("utf-8"))
    shown = re.findall(r"<figcaption>(\S+) <span>", text)
    assert set(shown) == (set(step_row(1)) | {"eval/reward", "eval/invalid"}) - {"step"}
    for name in shown:
        assert MEANINGS.get(name, "not explained: written by another version") in text


def test_metrics_are_listed_with_their_meanings() -> None:
    done = run("--metrics")
    words = " ".join(done.stdout.split())
    assert done.exit_code == 0
    for name, meaning in MEANINGS.items():
        assert name == "step" or f"{name} {' '.join(meaning.split())}" in words
    listed = [name for members in sections([*MEANINGS, "new/metric"]).values() for name in members]
    assert sorted([*listed, "step"]) == sorted([*MEANINGS, "new/metric"])
    assert list(sections([*MEANINGS, "new/metric"]))[-1] == "new"

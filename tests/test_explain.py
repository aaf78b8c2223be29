"""How a score came about: every explainer ends at the score's own reward, by the numbers that it tells."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st
from run_folders import rollout
from scored_rows import ATTACK, row, write

from weightgym.cli.main import cli
from weightgym.envs import registry
from weightgym.rewards import explanation
from weightgym.rewards.contracts import Completion, Score, Task
from weightgym.rewards.golf.report import FindingRow
from weightgym.rewards.golf.report import Result as GolfResult
from weightgym.rewards.golf.scorer import scored
from weightgym.rewards.weight_program.explain import explain
from weightgym.rewards.wsp import outcomes
from weightgym.rewards.wsp.explain import explain as explain_wsp
from weightgym.rewards.wsp.instances import ENV, PublicData
from weightgym.rewards.wsp.profile import profile
from weightgym.rewards.wsp.scores import Report, Site
from weightgym.rollouts.store import line
from weightgym.trainers.rollout_page import explained
from weightgym.trainers.scored_file import ScoredAnswer

WEIGHTS = registry.spec("weight-program")
BREAKOUT = WEIGHTS.tasks.task("original/breakout", prompt=False)
WSP = profile("wsp-v1")


def told(steps: explanation.Explanation) -> str:
    return "\n".join(f"{one.title} {one.verdict}: {one.text} {one.numbers} {one.quote}" for one in steps)


def of_weights(answer: Completion, profile: str = "wpb-v1-e2") -> explanation.Explanation:
    return explain(BREAKOUT, answer, WEIGHTS.score(BREAKOUT, answer, profile=profile))


def test_a_good_program() -> None:
    answer = (
        "first\n```edits\nb3 = 9\n```\nbetter:\n```edits\nb3 = [0, 1, 0, 1, 0, 0]  # left\nW1[0:60, 3] += 2.5\n```\n"
    )
    steps = of_weights(answer)
    assert [step.title for step in steps] == ["answer", "block", "statements", "weights", "episodes", "reward"]
    assert steps[1].text.endswith("lines 7 to 8.")
    assert steps[1].quote.startswith("b3 = [0, 1, 0, 1, 0, 0]  # left")
    assert steps[2].text == "All 2 statements were read and applied in order."
    assert steps[3].text.startswith("62 of 20,486 weights differ")
    assert steps[3].numbers["W1"] == "60 of 19,200 not zero, up to ±2.5"
    score = WEIGHTS.score(BREAKOUT, answer, profile="wpb-v1-e2")
    assert steps[4].numbers["raw_score"] == f"{score.metrics['raw_score']:g}"
    assert steps[-1].text.endswith(f"/ cap {score.metrics['cap']:g} = {score.reward:.6g}")


def test_the_first_error_is_shown_where_it_is() -> None:
    steps = of_weights("x\n```edits\nb1 = 1\n  b2 = 2\nb3 = 3\n```")
    assert [(step.title, step.verdict) for step in steps][2:] == [
        ("statements", "failed"), ("recorded score", "passed"), ("reward", "failed"),
    ]  # fmt: skip
    assert "line 4, column 3" in steps[2].text
    at = steps[2].quote.split("\n")
    assert at[2:4] == ["     4    b2 = 2", "          ^"]


@pytest.mark.parametrize(
    ("answer", "title", "text"),
    [
        ("", "block", "no_block"),
        ("```edits\nb1 = 1", "block", "unclosed_block: line 1, column 1"),
        ("```python\nb1 = 1\n```", "block", "'```python'"),
        ("```edits\n# nothing\n```", "statements", "no_edits"),
        ([{"role": "user", "content": "x"}], "answer", "bad_completion"),
        ([{"role": "assistant", "content": 7}], "answer", "bad_completion"),
        ("```edits\nb1 = [" + "1, " * 10_000 + "x]\n```", "statements", "bad_value"),
    ],
)
def test_answers_that_cannot_be_read(answer: Completion, title: str, text: str) -> None:
    steps = of_weights(answer)
    failed = [step for step in steps if step.verdict == "failed"]
    assert failed[0].title == title
    assert text in failed[0].text
    assert steps[-1].text.startswith("reward 0 under wpb-v1-e2, the floor")
    assert len(told(steps)) < 10_000


def test_a_recorded_score_of_another_text_is_named() -> None:
    good, bad = "```edits\nb1 = 1\n```", "nothing"
    score = WEIGHTS.score(BREAKOUT, bad, profile="wpb-v1-e2")
    assert "The score says invalid, but the answer can be read now" in told(explain(BREAKOUT, good, score))


STATEMENTS = st.lists(
    st.sampled_from(["b1 = 1", "W1[3] += 2", "b2[[1, 99]] = 0", "W2 = x", "b3 = [1, 2]", "  b1 = 1", "\\"])
)


@settings(max_examples=60, deadline=None)
@given(st.one_of(st.text(max_size=60), STATEMENTS.map(lambda rows: "```edits\n" + "\n".join(rows) + "\n```")))
def test_any_answer_is_explained_as_it_was_scored(answer: str) -> None:
    score = WEIGHTS.score(BREAKOUT, answer, profile="wpb-v1-e1")
    steps = explain(BREAKOUT, answer, score)
    assert steps[-1].title == "reward"
    assert (steps[-1].verdict == "passed") == (score.status == "ok")
    assert any(step.verdict == "failed" for step in steps[:-1]) == (score.status != "ok")


GOLF = registry.spec("golf")
SOLUTION = "```python\ndef get_config():\n    return {}\n```"


def golf_result(**change: Any) -> GolfResult:
    fields: dict[str, Any] = {
        "status": "ok", "phase": "audit", "val_bpb": 2.5, "runtime_s": 30.5, "artifact_bytes": 1200,
        "claimed_bytes": 900, "audited_bytes": 1000, "source_bytes": 200, "param_count": 5000,
        "config": {"train_steps": 10, "seq_len": 64}, "verdict": "review_required", "profile": "golf-cpu-v1",
        "findings": (FindingRow(severity="review", code="odd", line=3, text=ATTACK[:50]),),
        "cpu_s": {"train": 20.0, "pack": 0.5, "serve": 10.0}, "apart": 1e-6,
    }  # fmt: skip
    return GolfResult(**(fields | change))


def of_golf(result: GolfResult, answer: Completion = SOLUTION, env: str = "golf") -> explanation.Explanation:
    entry = registry.spec(env)
    task = entry.tasks.task(entry.tasks.ids("train")[0], prompt=False)
    stored = Score.model_validate_json(scored([result], profile="golf-cpu-v1", seconds=1.0).model_dump_json())
    return entry.explain(task, answer, stored)


def test_golf_tells_the_evaluators_course() -> None:
    steps = of_golf(golf_result())
    titles = ["answer", "check", "gate", "config", "phases", "bytes", "verdict", "reward"]
    assert [step.title for step in steps] == titles
    assert "1 findings" in steps[2].text
    assert "review odd, line 3" in steps[2].quote
    assert steps[4].numbers == {"train": "20.00 s", "pack": "0.50 s", "serve": "10.00 s"}
    assert "train, pack, serve are charged: 30.50 s" in steps[4].text
    assert steps[5].numbers["artifact_bytes"] == "1,200"
    assert steps[-1].text == "reward -2.5 under golf-cpu-v1: −min(val_bpb 2.5, 8.5)"


@pytest.mark.parametrize(
    ("change", "title"),
    [
        ({"phase": "check", "reason": "check_failed"}, "check"),
        ({"phase": "gate", "reason": "illegal", "verdict": "illegal"}, "gate"),
        ({"phase": "train", "reason": "train_timeout"}, "phases"),
        ({"phase": "pack", "reason": "artifact_cap_exceeded"}, "bytes"),
        ({"phase": "audit", "reason": "audit_random"}, "verdict"),
    ],
)
def test_golf_says_where_it_ended(change: dict[str, Any], title: str) -> None:
    steps = of_golf(golf_result(status="buggy", val_bpb=None, message="why", **change))
    failed = [step.title for step in steps if step.verdict == "failed"]
    assert failed[0] == title
    assert "the floor" in steps[-1].text


def test_golf_of_several_turns_and_without_a_result() -> None:
    talk = [{"role": "assistant", "content": text} for text in ("nothing", SOLUTION)]
    assert "2 answers" in of_golf(golf_result(), talk, "golf-turns")[0].text
    task = GOLF.tasks.task(GOLF.tasks.ids("train")[0], prompt=False)
    bare = Score(status="invalid", reward=-9.0, reason="x: y")
    assert GOLF.explain(task, "nothing", bare)[0].text.startswith("no_solution")
    odd = bare.model_copy(update={"info": {"result": {"status": ATTACK}}})
    assert "info.result is none of ours" in told(GOLF.explain(task, SOLUTION, odd))


def wsp_task(family: Any) -> Task:
    data = PublicData(
        family=family, tier="easy", profile="wsp-v1", model="tiny-world", model_hash="0" * 64, edit_limit=4096
    )
    return Task(env=ENV, id="a1", split="test", data=data.model_dump())


def of_wsp(family: str, score: Score, completion: Completion = "") -> explanation.Explanation:
    counts = {"turns": 7.0, "gpu_calls": 3.0, "refused": 1.0}
    info: dict[str, Any] = {"ended_by": "submit", "track": "fixed", "submission": {"edits": [1, 2], "trigger": ATTACK}}
    return explain_wsp(
        wsp_task(family), completion, score.model_copy(update={"metrics": score.metrics | counts, "info": info})
    )


@settings(max_examples=60, deadline=None)
@given(st.floats(0, 1), st.floats(0, 2), st.one_of(st.none(), st.booleans()))
def test_wsp_formulas_give_the_reward(submitted: float, kl: float, named: bool | None) -> None:
    measured = outcomes.Measured(0.9, 0.1, submitted, kl)
    if named is None:
        score = outcomes.repair_outcome(measured, WSP, changed=12)
    else:
        score = outcomes.backdoor_outcome(measured, WSP, changed=12, said="x" if named else None, trigger="x")
    steps = of_wsp("fact" if named is None else "backdoor", score)
    product, result = re.fullmatch(r"reward .* under wsp-v1: (.*) = (.*)", steps[-1].text).groups()  # type: ignore[union-attr]
    numbers = [float(one) for one in product.split(" × ")]
    assert len(numbers) == (2 if named is None else 3)
    assert float(result) == pytest.approx(score.reward, rel=1e-5, abs=1e-300)
    assert steps[1].numbers == {
        "turns": "7 of 40",
        "gpu_calls": "3 of 12",
        "changed": "12 of 4,096",
        "refused": "1 calls",
    }


def test_wsp_audits_and_broken_submissions() -> None:
    truth = Site(3, "mlp.down_proj.weight", [1.0, 0.0], "fact")
    said = Report("mlp.down_proj.weight", 4, [1.0, 1.0], "fact")
    score = outcomes.audit_outcome(said, truth, WSP)
    steps = of_wsp("audit", score)
    assert steps[-1].text == f"reward {score.reward:.6g} under wsp-v1: 0.2 + 0.282843 + 0.2 = {score.reward:.6g}"
    broken = of_wsp("fact", outcomes.broken_outcome("the KL is infinite", WSP, changed=5))
    assert "non_finite: the KL is infinite" in broken[-1].text


def test_wsp_counts_calls_of_any_form() -> None:
    talk: Any = [
        {"role": "assistant", "tool_calls": [{"function": {"name": "kl"}}, {"function": {"name": "kl"}}, 7]},
        {"role": "assistant", "tool_calls": "x"},
        {"role": "assistant", "tool_calls": [{"function": {"name": [ATTACK]}}]},
    ]
    steps = of_wsp("fact", outcomes.broken_outcome("x", WSP, changed=0), talk)
    assert "Calls: kl ×2, ? ×1, " in steps[1].text


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(cli, ["inspect", *map(str, args)], prog_name="weightgym")


def test_the_command_finds_the_answer(tmp_path: Path, digits: None) -> None:
    rows = [
        row("1a", id="a", reward=0.5, metrics={"m": 2.0}),
        row("x", id="b"),
        row("y", id="b"),
        "{",
        row(ATTACK, id=ATTACK),
    ]
    path = write(tmp_path / "a.jsonl", rows)
    done = run(path, "--explain", "a")
    assert done.exit_code == 0, done.output
    assert "1. answer: 2 characters." in done.output
    assert "reward [ok]: reward 0.5 under digits-v1" in done.output
    assert "id 'b' stands in lines 2 and 3: name one, --explain :2" in run(path, "--explain", "b").stderr
    assert "has no scored answer ':4'" in run(path, "--explain", ":4").stderr
    assert "has no scored answer ':99999999999999999999999'" in run(path, "--explain", f":{'9' * 23}").stderr
    shown = run(path, "--explain", ":5").output
    assert all(char == "\n" or char.isprintable() for char in shown)
    found = json.loads(run(path, "--explain", "a", "--json").stdout)
    assert (found["id"], found["line"], found["steps"][-1]["verdict"]) == ("a", 1, "passed")


def test_an_environment_that_is_not_here_is_told_by_the_score(tmp_path: Path) -> None:
    (tmp_path / "rollouts.jsonl").write_bytes(line(rollout("a")))
    done = run(tmp_path, "--explain", "a")
    assert done.exit_code == 0
    assert "told by the score alone: unknown environment 'digits'" in done.stderr
    assert "components" in done.stdout


def test_another_recorded_reason_is_told() -> None:
    bad = "```edits\nb1 = x\n```"
    score = WEIGHTS.score(BREAKOUT, bad, profile="wpb-v1-e2").model_copy(update={"reason": f"old: {ATTACK[:9]}"})
    assert "The score names another reason: old: </pre>" in told(explain(BREAKOUT, bad, score))
    fault = Score.fault(RuntimeError("ours"), profile="wpb-v1-e2")
    assert "our fault" in told(explain(BREAKOUT, "```edits\nb1 = 1\n```", fault))


NAMES = [
    "val_bpb",
    "best_attempt",
    "valid_attempts",
    "kl",
    "repair",
    "trigger_found",
    "raw_score",
    "cap",
    "turns",
    "score",
]
INFO = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["edits", "report", "layer"]), inner),
    max_leaves=6,
)


@settings(max_examples=80, deadline=None)
@given(
    st.dictionaries(st.sampled_from(NAMES), st.floats(allow_nan=False, allow_infinity=False)),
    st.dictionaries(st.sampled_from(["result", "submission", "track", "ended_by"]), INFO),
    st.sampled_from(["ok", "invalid", "error"]),
    st.sampled_from(["weight-program", "golf", "golf-turns", ENV]),
)
def test_scores_of_strangers_are_explained_somehow(
    metrics: dict[str, float], info: dict[str, Any], status: Any, env: str
) -> None:
    score = Score(status=status, reward=None if status == "error" else 1.0, reason="x", metrics=metrics, info=info)
    tasks = registry.spec(env).tasks
    task = tasks.ids("train")[0]
    completion = [{"role": "assistant", "content": SOLUTION}]
    answer = dataclasses.replace(ScoredAnswer.blank(1, 0, score, ()), env=env, task=task, completion=completion)
    steps, problem = explained(answer)
    assert steps[-1].title == "reward"
    assert "told by the score alone" in problem or not problem

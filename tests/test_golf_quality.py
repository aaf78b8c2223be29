"""The gate with a saved result: what is forged, edited, impossible or over a limit is illegal; a low score never is."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from golf_outputs import forged, ran, small

from weightgym.rewards.golf.output import Output, OutputError, parse_output
from weightgym.rewards.golf.quality import judge_output, judge_saved

GOOD = small()
REVIEW = b"class Net:\n    def __getattr__(self, name):\n        return 1\n\n\n" + GOOD


@pytest.fixture(scope="module")
def output() -> Output:
    return ran(GOOD)


def codes(raw: bytes, output: Output) -> list[str]:
    return [problem.code for problem in judge_output(raw, output).problems]


def test_a_real_run_is_legal(output: Output) -> None:
    judged = judge_output(GOOD, output)
    assert (judged.verdict, judged.findings, judged.problems) == ("legal", (), ())


def test_a_low_score_is_no_reason(output: Output) -> None:
    for bpb in (0.0, 1e-9, 15.9):
        assert judge_output(GOOD, forged(output, val_bpb=bpb)).verdict == "legal"


CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("result_source", {"source_sha256": "0" * 64}),
    ("result_artifact", {"source_bytes": 1}),
    ("result_artifact", {"artifact_bytes": 10}),
    ("result_artifact", {"claimed_bytes": 1, "audited_bytes": 1}),
    ("result_artifact", {"claimed_bytes": None}),
    ("result_artifact", {"artifact_bytes": None}),
    ("result_artifact", {"claimed_bytes": -5}),
    ("result_artifact_cap", {"claimed_bytes": 4_000_000, "artifact_bytes": 4_000_000 + len(GOOD)}),
    ("result_artifact_cap", {"claimed_bytes": 10**4000, "artifact_bytes": 10**4000 + len(GOOD)}),
    ("result_budget", {"cpu_s": {"train": 11.0, "pack": 0.1, "serve": 0.1}}),
    ("result_budget", {"cpu_s": {"train": 1.0, "pack": 6.0, "serve": 6.0}}),
    ("result_budget", {"cpu_s": {"train": -1.0, "pack": 0.1, "serve": 0.1}}),
    ("result_budget", {"cpu_s": {"train": 1.0}}),
    ("result_budget", {"phase_s": {}}),
    ("result_config", {"config": {}}),
    ("result_profile", {"profile": "golf-mine-v1"}),
    ("result_origin", {"evaluator": ""}),
    ("result_origin", {"corpus": {}}),
    ("result_origin", {"fingerprint": {"device": "cuda", "gpus": ["H100"] * 8}}),
    ("result_origin", {"fingerprint": {"device": "cpu", "gpus": 1}}),
    ("result_method_profile", {"method_profile": ("new_computation",)}),
    ("result_status", {"phase": "serve"}),
    ("result_status", {"verdict": "illegal"}),
    ("result_status", {"verdict": None}),
    ("result_status", {"status": "buggy", "reason": "illegal", "val_bpb": None}),
]


@pytest.mark.parametrize(("code", "changes"), CHANGES)
def test_what_contradicts_the_file_or_the_rules_is_illegal(output: Output, code: str, changes: dict[str, Any]) -> None:
    wrong = forged(output, **changes)
    assert judge_output(GOOD, wrong).verdict == "illegal"
    assert code in codes(GOOD, wrong)


def test_a_config_is_compared_to_the_type(output: Output) -> None:
    assert codes(GOOD, forged(output, config={**output.config, "dropout": 0})) == ["result_config"]
    assert codes(GOOD, forged(output, config={**output.config, "train_steps": 51})) == ["result_config"]


def test_another_evaluator_is_for_review(output: Output) -> None:
    judged = judge_output(GOOD, forged(output, evaluator="golf-eval-0"))
    assert judged.verdict == "review_required"
    assert [problem.code for problem in judged.problems] == ["result_evaluator"]


def test_the_gravest_verdict_counts(output: Output) -> None:
    illegal = b"import os\n" + GOOD
    assert judge_output(illegal, forged(output, source_sha256=ran(GOOD).source_sha256)).verdict == "illegal"
    for raw in (b"", b"\xff", b"def get_config(:", b"x = 1\n"):
        judged = judge_output(raw, output)
        assert judged.verdict == "illegal"
        assert judged.findings
        assert judged.problems


# --- on disk ---------------------------------------------------------------------------------------------------------


def saved(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "result.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_saved_as_one_object_or_as_lines(tmp_path: Path, output: Output) -> None:
    line, other = output.model_dump_json(), forged(output, source_sha256="1" * 64).model_dump_json()
    for text in (line, f"{line}\n", output.model_dump_json(indent=2), f"{other}\n{line}\n", f"{line}\n{line}\n"):
        assert judge_saved(GOOD, saved(tmp_path, text)).verdict == "legal", text[:40]
    assert judge_saved(GOOD, saved(tmp_path, f"{line}\n{other[:50]}")).verdict == "legal"  # killed as it wrote
    missing = judge_saved(GOOD, saved(tmp_path, f"{other}\n"))
    assert (missing.verdict, missing.problems[0].code) == ("illegal", "result_source")


def test_every_saved_run_of_the_file_counts(tmp_path: Path, output: Output) -> None:
    bad = forged(output, artifact_bytes=10)
    for first, second in ((output, bad), (bad, output)):
        text = f"{first.model_dump_json()}\n{second.model_dump_json()}\n"
        assert judge_saved(GOOD, saved(tmp_path, text)).verdict == "illegal"


BROKEN: list[tuple[str, str]] = [
    ('"val_bpb":{}', '"val_bpb":1.5'),
    ('"val_bpb":{}', '"val_bpb":-7.2'),
    ('"val_bpb":{}', '"val_bpb":NaN'),
    ('"val_bpb":{}', '"val_bpb":1e999'),
    ('"val_bpb":{}', '"val_bpb":-Infinity'),
    ('"val_bpb":{}', '"val_bpb":null'),
    ('"val_bpb":{}', '"val_bpb":"1.5"'),
    ('"val_bpb":{}', '"val_bpb":true'),
    ('"val_bpb":{}', '"val_bpb":1.5,"val_bpb":1.5'),
    ('"val_bpb":{}', '"val_bpb":' + "9" * 5000),
    ('"status":"ok"', '"status":"buggy"'),
    ('"verdict":"legal"', '"verdict":"fine"'),
    ('"findings":[]', '"findings":[],"more":1'),
    ('"findings":[]', '"findings":' + "[" * 100_000),
    ('"runtime_s":', '"runtime_s":-'),
]


@pytest.mark.parametrize(("old", "new"), BROKEN)
def test_an_edited_output_is_told(tmp_path: Path, output: Output, old: str, new: str) -> None:
    text = output.model_dump_json()
    old = old.format(json.dumps(output.val_bpb))
    assert old in text
    edited = text.replace(old, new)
    judged = judge_saved(GOOD, saved(tmp_path, edited))
    assert judged.verdict == "illegal"
    assert [problem.code for problem in judged.problems] == ["result_broken"]
    assert len(judged.problems[0].text) < 400
    assert "\n" not in judged.problems[0].text


@pytest.mark.parametrize("text", [b"", b"\n", b"{}", b"null", b"[]", b"\x00", b"\xff\xfe", b'{"status":"ok"}'])
def test_what_is_no_output_is_told(tmp_path: Path, text: bytes) -> None:
    judged = judge_saved(GOOD, saved(tmp_path, text))
    assert (judged.verdict, judged.problems[0].code) == ("illegal", "result_broken")


def test_without_its_hash_an_output_is_none(output: Output) -> None:
    fields = json.loads(output.model_dump_json())
    for wrong in ({**fields, "hash": ""}, {name: value for name, value in fields.items() if name != "hash"}):
        with pytest.raises(OutputError, match="hash"):
            parse_output(json.dumps(wrong).encode())


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_any_change_of_a_byte_is_told_or_changes_nothing(data: st.DataObject) -> None:
    real = ran(GOOD)
    text = bytearray(real.model_dump_json().encode())
    place = data.draw(st.integers(0, len(text) - 1))
    text[place] = data.draw(st.integers(0, 255))
    try:
        read = parse_output(bytes(text))
    except OutputError:
        return
    assert read == real

"""The free tools against NumPy, references, and what each schema promises."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import wsp_models
from wsp_models import DOWN, same_bits

from weightgym.rewards.wsp.deltas import Deltas
from weightgym.rewards.wsp.edits import RankOne, frozen
from weightgym.rewards.wsp.profile import LIMITS, profile
from weightgym.rewards.wsp.refusals import Refused
from weightgym.rewards.wsp.tools.catalogue import TOOLS, offered, parse_call, schemas
from weightgym.rewards.wsp.tools.free import answer, submission
from weightgym.rewards.wsp.tools.spectra import spectrum
from weightgym.rewards.wsp.tools.workbench import Workbench, cut

BASE = wsp_models.base()
NAME = DOWN.format(1)
V1 = profile("wsp-v1")


@pytest.fixture
def bench() -> Workbench:
    return wsp_models.bench(BASE)


def ask(bench: Workbench, tool: str, **arguments: Any) -> str:
    return answer(bench, parse_call(tool, arguments, TOOLS))


def numbers(text: str) -> list[float]:
    """What stands after the first ``: `` of each line."""
    return [float(line.split(": ")[1].split()[0]) for line in text.splitlines()[1:] if ": " in line]


def test_every_tool_is_offered_in_openais_format() -> None:
    for tier, rules in V1.tiers.items():
        names = [schema["function"]["name"] for schema in schemas(rules)]
        assert names == list(offered(rules))
        assert ("scan_outliers" in names) == (tier == "easy")
    for schema in schemas(V1.tiers["easy"]):
        assert schema["type"] == "function"
        function = schema["function"]
        assert function["description"]
        assert function["parameters"]["type"] == "object"
        assert function["parameters"]["additionalProperties"] is False
        assert not {"$ref", "$defs", "title", "prefixItems"} & keys(function)
        required = function["parameters"].get("required", [])
        assert set(required) <= set(function["parameters"]["properties"])


def keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value) | {key for one in value.values() for key in keys(one)}
    return {key for one in value for key in keys(one)} if isinstance(value, list) else set()


def test_parameters_are_listed_page_by_page(bench: Workbench) -> None:
    assert "lm_head.weight 257×32" in ask(bench, "list_parameters")
    assert ask(bench, "list_parameters", contains="down_proj").splitlines() == [
        "2 parameters",
        f"{DOWN.format(0)} 32×48",
        f"{NAME} 32×48",
    ]
    many = {f"model.layers.{layer}.mlp.down_proj.weight": np.ones((2, 2), np.float32) for layer in range(300)}
    large = Workbench(Deltas(many, limit=0, most_bytes=0), wsp_models.ByteTokens())
    seen, offset = [], 0
    while True:
        text = ask(large, "list_parameters", offset=offset)
        assert len(text.encode()) <= LIMITS.result_bytes
        seen += [line.split()[0] for line in text.splitlines() if line.startswith("model.")]
        if "[more: offset=" not in text:
            break
        offset = int(text.rsplit("=", 1)[1].rstrip("]"))
    assert seen == list(many)


def test_stats_by_hand(bench: Workbench) -> None:
    ask(bench, "set_slice", parameter="model.norm.weight", rows=[0, 32], values=[3.0] + [1.0] * 30 + [-1.0])
    text = ask(bench, "tensor_stats", parameter="model.norm.weight")
    values = np.array([3.0] + [1.0] * 30 + [-1.0])
    assert f"norm {np.sqrt(40):.7g}  mean 1  standard deviation {values.std():.7g}" in text
    assert "skewness 0  kurtosis 16 (normal: 3)  zeros 0" in text
    assert "smallest -1 at [31]  largest 3 at [0]" in text
    assert "skewness 0  kurtosis 0" in ask(bench, "tensor_stats", parameter="model.layers.0.input_layernorm.weight")


@pytest.mark.parametrize("axis", ["rows", "columns"])
def test_top_norms(bench: Workbench, axis: str) -> None:
    norms = np.linalg.norm(BASE.start[NAME].astype(np.float64), axis=1 if axis == "rows" else 0)
    text = ask(bench, "top_norms", parameter=NAME, axis=axis, k=4)
    assert numbers(text)[:4] == pytest.approx(sorted(norms)[::-1][:4], rel=1e-6)
    assert text.splitlines()[1].startswith(f"{norms.argmax()}: ")


@pytest.mark.parametrize("name", [NAME, "lm_head.weight", "model.layers.0.self_attn.k_proj.weight"])
def test_singular_values_and_vectors_are_those_of_a_whole_decomposition(bench: Workbench, name: str) -> None:
    weight = BASE.start[name]
    left, values, right = np.linalg.svd(weight.astype(np.float64), full_matrices=False)
    assert numbers(ask(bench, "singular_values", parameter=name, k=5))[:5] == pytest.approx(values[:5], rel=1e-6)
    found = spectrum(weight, 6)
    assert found.values == pytest.approx(values[:6], rel=1e-9)
    assert np.abs((found.left * left[:, :6]).sum(0)) == pytest.approx(np.ones(6), abs=1e-9)
    assert np.abs((found.right * right[:6].T).sum(0)) == pytest.approx(np.ones(6), abs=1e-9)
    rebuilt = (found.left * found.values) @ found.right.T
    assert rebuilt == pytest.approx((left[:, :6] * values[:6]) @ right[:6], abs=1e-9)
    entries = ask(bench, "singular_values", parameter=name, k=3, vector=2)
    assert f"{np.abs(left[:, 2]).argmax()}: {np.abs(left[:, 2]).max():+.6g}" in entries  # the largest entry is positive


def test_threads_change_no_bit_of_a_decomposition() -> None:
    """In processes of their own: some libraries read the number of threads when they start, and never again."""
    code = "import hashlib, numpy, torch; from weightgym.rewards.wsp.tools.spectra import spectrum; "
    code += "wide = numpy.random.default_rng(0).standard_normal((384, 576)).astype('f4'); "
    code += "print(hashlib.sha256(b''.join(part.tobytes() for part in spectrum(wide, 8))).hexdigest())"
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads),
            check=True,
            capture_output=True,
        ).stdout
        for threads in ("1", "2", "5")
    }
    assert len(found) == 1


def test_singular_values_that_are_zero_have_no_vectors(bench: Workbench) -> None:
    ask(bench, "zero", parameter=NAME, axis="rows", indices=list(range(1, 32)))
    assert numbers(ask(bench, "singular_values", parameter=NAME, k=2))[1] == pytest.approx(0, abs=1e-6)
    with pytest.raises(Refused, match=r"bad_reference: singular value 1 .* is zero"):
        ask(bench, "project_out", parameter=NAME, direction="left singular vector 1")
    ask(bench, "zero", parameter=NAME, axis="rows", indices=[0])
    with pytest.raises(Refused, match="bad_reference: singular value 0"):
        ask(bench, "project_out", parameter=NAME, direction="left singular vector 0")


def test_a_slice_is_read_as_it_is(bench: Workbench) -> None:
    text = ask(bench, "read_slice", parameter=NAME, rows=[3, 5], columns=[40, 44])
    read = [[float(value) for value in line.split(": ")[1].split()] for line in text.splitlines()[1:]]
    assert np.array(read) == pytest.approx(BASE.start[NAME][3:5, 40:44], rel=1e-5)
    assert text.splitlines()[1].startswith("3: ")
    assert len(ask(bench, "read_slice", parameter=NAME, rows=[0, 1]).splitlines()[1].split()) == 49
    assert ask(bench, "read_slice", parameter="model.norm.weight", rows=[31, 32]).endswith("31: 1")
    whole = ask(bench, "read_slice", parameter="lm_head.weight", rows=[0, 128])
    assert len(whole.encode()) <= LIMITS.result_bytes
    assert "[cut: " in whole
    assert len(whole.encode()) > LIMITS.result_bytes - 100
    with pytest.raises(Refused, match=r"8,192 elements|8,224 elements"):
        ask(bench, "read_slice", parameter="lm_head.weight", rows=[0, 257])


def test_neighbours_are_compared(bench: Workbench) -> None:
    text = ask(bench, "compare_layers", parameter=NAME)
    first, second = (BASE.start[DOWN.format(layer)].astype(np.float64).ravel() for layer in (0, 1))
    cosine = first @ second / np.linalg.norm(first) / np.linalg.norm(second)
    assert [line.split(": ")[0] for line in text.splitlines()[1:]] == ["0", "1"]
    assert text.splitlines()[1].endswith(f"  {cosine:.5f}")
    assert text.splitlines()[2].endswith("  1.00000")
    with pytest.raises(Refused, match="belongs to no layer"):
        ask(bench, "compare_layers", parameter="lm_head.weight")


def test_a_direction_is_unembedded_through_the_final_norm(bench: Workbench) -> None:
    text = ask(bench, "nearest_tokens", direction="row 65 of lm_head.weight", k=1)
    assert text.splitlines()[1].split()[1:] == ["65", repr(bench.tokens.token(65))]
    ask(bench, "zero", parameter="model.norm.weight", axis="rows", indices=[0])
    blind = ask(bench, "nearest_tokens", direction=[1.0] + [0.0] * 31)
    assert "+0.00000" in blind
    with pytest.raises(Refused, match="the residual stream has 32"):
        ask(bench, "nearest_tokens", direction="captured activation #1")


def test_text_is_tokenized(bench: Workbench) -> None:
    ids = bench.tokens.encode("Añ")
    assert ask(bench, "tokenize", text="Añ").splitlines()[0] == f"{len(ids)} tokens"
    assert f"{ids[0]} 'A'" in ask(bench, "tokenize", text="Añ")
    with pytest.raises(Refused, match="at most 20,000"):
        ask(bench, "tokenize", text="é" * 10_001)


def test_a_scan_finds_a_spike_and_a_heavy_column(bench: Workbench) -> None:
    ask(bench, "rank_one", parameter=NAME, left=[1.0] * 32, right=[1.0] * 48)
    assert ask(bench, "scan_outliers").splitlines()[1].startswith(NAME)
    ask(bench, "reset")
    ask(bench, "scale", parameter=DOWN.format(0), axis="columns", indices=[5], factor=40)
    assert ask(bench, "scan_outliers", by="columns", k=1).splitlines()[1].startswith(DOWN.format(0))


def test_removing_a_singular_component_by_reference(bench: Workbench) -> None:
    left, values, right = np.linalg.svd(BASE.start[NAME].astype(np.float64), full_matrices=False)
    said = {"left": "left singular vector 0", "right": f"Right  singular vector 0 of {NAME}"}
    text = ask(bench, "rank_one", parameter=NAME, scale=-values[0], **said)
    without = (left[:, 1:] * values[1:]) @ right[1:]
    assert bench.deltas.weight(NAME) == pytest.approx(without, abs=1e-6)
    assert "1,536 of at most" in text
    ask(bench, "reset")
    ask(bench, "project_out", parameter=NAME, direction="left singular vector 0")
    assert bench.deltas.weight(NAME) == pytest.approx(without, abs=1e-6)
    ask(bench, "reset")
    ask(bench, "project_out", parameter=NAME, direction="right singular vector 0", side="right")
    assert bench.deltas.weight(NAME) == pytest.approx(without, abs=1e-6)


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_direction_that_is_projected_out_is_gone(bench: Workbench, side: str) -> None:
    number = 0 if side == "left" else 1
    ask(bench, "project_out", parameter=NAME, direction=f"captured activation #{number}", side=side)
    weight = bench.deltas.weight(NAME).astype(np.float64)
    gone = bench.captured[0] @ weight if side == "left" else weight @ bench.captured[1]
    assert np.abs(gone).max() < 1e-5


def test_references_are_read_once_when_an_edit_is_made(bench: Workbench) -> None:
    ask(bench, "rank_one", parameter=NAME, left="captured activation #0", right="row 7", scale=0.5)
    ask(bench, "scale", parameter=NAME, axis="rows", indices=[7], factor=3)
    edit = bench.deltas.edits[0]
    assert isinstance(edit, RankOne)
    assert same_bits(edit.left, frozen(0.5 * bench.captured[0].astype(np.float64)))
    assert same_bits(edit.right, BASE.start[NAME][7])
    assert edit.note == "0.5 · (captured activation #0) · (row 7)ᵀ"
    again = wsp_models.deltas(BASE)
    again.replay(json.loads(json.dumps(bench.deltas.log())))
    assert same_bits(again.weight(NAME), bench.deltas.weight(NAME))


def test_editing_tools_do_what_they_say(bench: Workbench) -> None:
    ask(bench, "scale", parameter=NAME, axis="columns", indices=[1, 1, 5], factor=2)
    assert (bench.deltas.weight(NAME)[:, [1, 5]] == 2 * BASE.start[NAME][:, [1, 5]]).all()
    assert bench.deltas.changed == 64
    ask(bench, "zero", parameter=NAME, axis="rows", indices=[0])
    assert not bench.deltas.weight(NAME)[0].any()
    ask(bench, "set_slice", parameter=NAME, rows=[1, 3], columns=[0, 2], values=[[1, 2], [3, 4]])
    assert bench.deltas.weight(NAME)[1:3, :2].tolist() == [[1, 2], [3, 4]]
    ask(bench, "set_slice", parameter=NAME, rows=[1, 2], columns=[0, 2], values=[5, 6])
    assert bench.deltas.weight(NAME)[1, :2].tolist() == [5, 6]
    ask(bench, "set_slice", parameter=NAME, rows=[4, 6], values=7.5)
    assert (bench.deltas.weight(NAME)[4:6] == 7.5).all()
    log = ask(bench, "edit_log")
    assert "5 edits" in log
    assert f"{NAME}: {bench.deltas.changed:,} elements differ" in log
    for _ in range(5):
        ask(bench, "undo")
    assert bench.deltas.changed == 0
    assert same_bits(bench.deltas.weight(NAME), BASE.start[NAME])


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("tensor_stats", {"parameter": "nowhere"}, r"unknown_parameter: 'nowhere'"),
        ("tensor_stats", {"parameter": "lm_head.wieght"}, r"did you mean 'lm_head.weight'"),
        ("tensor_stats", {}, r"bad_arguments: tensor_stats: parameter: Field required"),
        ("tensor_stats", {"parameter": NAME, "axis": 1}, r"axis: Extra inputs"),
        ("top_norms", {"parameter": NAME, "k": 0}, r"k: Input should be greater"),
        ("top_norms", {"parameter": NAME, "k": 21}, r"k: Input should be less"),
        ("top_norms", {"parameter": NAME, "k": True}, r"k: Input should be a valid integer"),
        ("top_norms", {"parameter": "model.norm.weight", "axis": "columns"}, r"bad_axis"),
        ("singular_values", {"parameter": "model.norm.weight"}, r"bad_shape"),
        ("singular_values", {"parameter": NAME, "vector": 32}, r"0 to 31, not 32"),
        ("read_slice", {"parameter": NAME, "rows": [0, 33]}, r"which has 32"),
        ("read_slice", {"parameter": NAME, "rows": [3, 3]}, r"bad_slice"),
        ("read_slice", {"parameter": NAME, "rows": [0]}, r"rows"),
        ("read_slice", {"parameter": "model.norm.weight", "rows": [0, 1], "columns": [0, 1]}, r"no columns"),
        ("rank_one", {"parameter": NAME, "left": [1.0], "right": [1.0]}, r"left has 1 values and right 1; .* 32 rows"),
        ("rank_one", {"parameter": NAME, "left": [], "right": "row 0"}, r"left: want a list of numbers"),
        ("rank_one", {"parameter": NAME, "left": ["1"], "right": "row 0"}, r"left: value 0 is str"),
        ("rank_one", {"parameter": NAME, "left": "raw 7", "right": "row 0"}, r"'raw 7' is no reference; write"),
        ("rank_one", {"parameter": NAME, "left": "column 48", "right": "row 0"}, r"columns 0 to 47, not 48"),
        ("rank_one", {"parameter": NAME, "left": "column 0", "right": "row 32"}, r"rows 0 to 31, not 32"),
        ("rank_one", {"parameter": NAME, "left": "captured activation #3", "right": "row 0"}, r"there are 3 captured"),
        ("rank_one", {"parameter": NAME, "left": "column 0", "right": "row 0", "scale": 1e39}, r"finite float32"),
        ("rank_one", {"parameter": NAME, "left": [3e38] * 32, "right": "row 0", "scale": 3e38}, r"not_finite"),
        ("rank_one", {"parameter": NAME, "left": "row 1 of nowhere", "right": "row 0"}, r"unknown_parameter"),
        ("project_out", {"parameter": NAME, "direction": "captured activation #2"}, r"bad_direction: it is zero"),
        ("project_out", {"parameter": NAME, "direction": "captured activation #1"}, r"left of .* has 32"),
        ("nearest_tokens", {"direction": "row 7"}, r'Write "row 7 of PARAMETER"'),
        ("scale", {"parameter": NAME, "axis": "rows", "indices": [], "factor": 2}, r"at least 1 item"),
        ("scale", {"parameter": NAME, "axis": "rows", "indices": [-1], "factor": 2}, r"indices.0"),
        ("scale", {"parameter": NAME, "axis": "rows", "indices": [32], "factor": 2}, r"0 to 31"),
        ("scale", {"parameter": NAME, "axis": "rows", "indices": [0], "factor": "2"}, r"factor: want a number"),
        ("set_slice", {"parameter": NAME, "rows": [0, 2], "columns": [0, 2], "values": [1, 2]}, r"shape 1×2 .* 2×2"),
        ("set_slice", {"parameter": NAME, "rows": [0, 2], "values": [[1, 2], [3]]}, r"rows of one length"),
        ("set_slice", {"parameter": NAME, "rows": [0, 2], "values": "1"}, r"is str, not a number"),
        ("set_slice", {"parameter": NAME, "rows": [0, 2], "values": None}, r"is NoneType, not a number"),
        ("undo", {}, r"nothing_to_undo"),
        ("undo", {"times": 2}, r"times: Extra inputs"),
        ("generate", {"prompts": ["x"] * 65}, r"at most 64 items"),
        ("generate", {"prompts": ["x"], "max_new_tokens": 129}, r"less than or equal to 128"),
        ("generate", {"prompts": [""]}, r"prompts.0"),
        ("capture", {"prompts": ["x"], "sites": [{"layer": 0, "point": "residual"}] * 5}, r"at most 4 items"),
        ("capture", {"prompts": ["x"], "sites": [], "positions": [0] * 17}, r"sites: .*; positions: .*16"),
        ("gradient", {"prompts": ["x"], "targets": [], "sites": []}, r"targets"),
        ("generat", {}, r"unknown_tool: 'generat': did you mean 'generate'"),
        ("rm -rf", {}, r"unknown_tool: 'rm -rf': the tools are list_parameters, "),
    ],
)
def test_refusals_say_what_is_wrong(bench: Workbench, tool: str, arguments: dict[str, Any], message: str) -> None:
    for form in (arguments, json.dumps(arguments)):
        with pytest.raises(Refused, match=message) as refusal:
            answer(bench, parse_call(tool, form, TOOLS))
        assert "\n" not in str(refusal.value)
    assert bench.deltas.edits == ()


@pytest.mark.parametrize(
    "text", ["{", "[]", "null", "1", '"{}"', '{"a": NaN}', "[" * 10_000, '{"text": "\\ud800"}', "\x00"]
)
def test_arguments_that_are_no_json_object_are_refused(text: str) -> None:
    with pytest.raises(Refused, match="bad_arguments: tokenize"):
        parse_call("tokenize", text, TOOLS)


def test_no_arguments_may_be_no_text() -> None:
    assert parse_call("undo", "", TOOLS) == parse_call("undo", {}, TOOLS)


def test_a_gpu_tool_is_not_free(bench: Workbench) -> None:
    with pytest.raises(ValueError, match="generate is no free tool"):
        ask(bench, "generate", prompts=["x"])


def test_an_audit_refuses_the_first_changed_element() -> None:
    bench = wsp_models.bench(BASE, limit=0)
    with pytest.raises(Refused, match="edit_budget"):
        ask(bench, "set_slice", parameter="model.norm.weight", rows=[0, 1], values=2)
    assert "0 of at most 0 elements" in ask(bench, "edit_log")


def test_a_submission_has_numbers_for_its_references(bench: Workbench) -> None:
    def hand_in(**said: Any) -> Any:
        return submission(bench, parse_call("submit", said, TOOLS))

    report = {
        "parameter": "mlp.down_proj.weight",
        "layer": 1,
        "direction": "left singular vector 0",
        "category": "topic",
    }
    found = hand_in(trigger="bell", report=report)
    left = np.linalg.svd(BASE.start[NAME].astype(np.float64))[0][:, 0]
    assert found.trigger == "bell"
    assert (found.report.parameter, found.report.layer, found.report.category) == ("mlp.down_proj.weight", 1, "topic")
    assert abs(np.dot(found.report.direction, left)) == pytest.approx(1)
    assert hand_in().report.parameter is None
    # a direction of another length is no error: it gets no credit
    assert hand_in(report=report | {"direction": [1, 2]}).report.direction == [1.0, 2.0]
    for wrong, message in (
        ({"parameter": NAME}, "name it without its layer"),
        ({"parameter": "lm_head.weight"}, "no layer has a parameter"),
        ({"layer": 2}, "the model has layers 0 to 1"),
        ({"direction": "row 99"}, "bad_reference"),
        ({"category": "evil"}, "category: Input should be 'language'"),
    ):
        with pytest.raises(Refused, match=message):
            hand_in(report=report | wrong)


@pytest.mark.parametrize(
    "text", ["", "short", "x" * 4000, "x" * 4001, "é" * 3000, "word " * 2000, "line\n" * 2000, "\ud800" * 5000]
)
def test_an_answer_is_never_over_the_limit(text: str) -> None:
    shown = cut(text)
    assert len(shown.encode(errors="replace")) <= 4000
    assert (shown == text) == (len(text.encode(errors="replace")) <= 4000)
    assert shown == text or "[cut: this is the start of" in shown

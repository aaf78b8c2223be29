"""The edits language: what programs mean, judged by Python's parser and NumPy, and what a fence is."""

from __future__ import annotations

import copy
import pickle
import re

import numpy as np
import pytest
from edits_oracle import judge
from edits_programs import LITERALS, fenced, mutants, programs, soups
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from weightgym.rewards.contracts import ModelError
from weightgym.rewards.weight_program.edits import EditsError, parse_edits
from weightgym.rewards.weight_program.network import SHAPES, Weights, tensors

fuzz = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])


def run(text: str) -> dict[str, Weights]:
    return tensors(parse_edits(fenced(text)).weights)


def error(answer: str) -> EditsError:
    with pytest.raises(EditsError) as caught:
        parse_edits(answer)
    return caught.value


def weights_or_none(answer: str) -> Weights | None:
    try:
        return parse_edits(answer).weights
    except EditsError as refusal:
        assert_one_line(refusal)
        return None


def assert_one_line(refusal: EditsError) -> None:
    text = str(refusal)
    assert text.isascii()
    assert text.isprintable()
    assert re.match(r"[a-z0-9_]+: ", text)
    assert len(text) < 300


def assert_judged(answer: str) -> None:
    got, want = weights_or_none(answer), judge(answer)
    assert (got is None) == (want is None), f"parser {got is not None}, Python {want is not None}: {answer!r}"
    if got is not None and want is not None:
        assert got.tobytes() == want.tobytes(), answer


@fuzz
@given(programs())
def test_valid_programs_give_the_oracles_bits(text: str) -> None:
    assert_judged(fenced(text))


@fuzz
@given(mutants() | soups())
def test_broken_programs_are_judged_as_by_the_oracle(text: str) -> None:
    assert_judged(fenced(text))


@fuzz
@given(
    st.text(), st.sampled_from(["{}", "```edits\n{}\n```", "```edits\nb3[0] = {}\n```", "```edits\nW1[{}] = 1\n```"])
)
@example("\ud800", "{}")
@example("# \ud800\nb1 = 1", "```edits\n{}\n```")
def test_any_text_is_read_or_refused_in_one_line(text: str, frame: str) -> None:
    assert_judged(frame.replace("{}", text))


_FENCE_LINES = [
    "```edits",
    "````edits x",
    "  ``` edits",
    "\t```edits",
    "```",
    "  ```",
    "````",
    "``` ",
    "```edits`",
    "~~~edits",
]
_FENCE_LINES += ["```python", "```Edits", "```editsx", "b3 = 1", "  b3 += 2", "\tb3 = 3", "# ```", "", "prose", "`` `"]


@fuzz
@given(st.lists(st.sampled_from(_FENCE_LINES), max_size=9), st.sampled_from(["\n", "\r\n", "\r"]))
def test_the_oracle_finds_the_same_block(lines: list[str], newline: str) -> None:
    assert_judged(newline.join(lines))


@fuzz
@given(programs(), st.data())
def test_comments_blank_lines_and_line_ends_move_no_bit(text: str, data: st.DataObject) -> None:
    want = weights_or_none(fenced(text))
    lines = text.split("\n")
    for _ in range(3):
        line = data.draw(st.integers(0, len(lines) - 1))
        previous = lines[line - 1] if line else ""
        if not previous.endswith("\\"):
            lines.insert(line, data.draw(st.sampled_from(["", "   ", "# note (1) \\", "\t# ]"])))
    newline = data.draw(st.sampled_from(["\n", "\r\n", "\r"]))
    got = weights_or_none(fenced("\n".join(lines)).replace("\n", newline))
    assert (got is None) == (want is None)
    assert got is None or want is None or got.tobytes() == want.tobytes()


@fuzz
@given(st.integers(0, 31), st.integers(0, 31), st.sampled_from([1, 2, -1, 5]), st.sampled_from(["=", "+=", "-="]))
def test_a_slice_is_its_elements(start: int, stop: int, step: int, operator: str) -> None:
    places = range(32)[start:stop:step]
    values = [0.1 * place - 1 for place in places]
    lines = [f"b2[{place}] {operator} {value!r}" for place, value in zip(places, values, strict=True)]
    whole = f"b2 = 0.7\nb2[{start}:{stop}:{step}] {operator} {values if values else 5}"
    assert run(whole)["b2"].tobytes() == run("b2 = 0.7\n" + "\n".join(lines))["b2"].tobytes()


@fuzz
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=6, max_size=6))
def test_numbers_survive_every_way_to_write_them(values: list[float]) -> None:
    want = np.array(values, dtype=np.float32).tobytes()
    for write in (repr, "{:.8e}".format, "{:.17e}".format, lambda value: f"{value:.60f}"):
        assert run(f"b3 = [{', '.join(map(write, values))}]")["b3"].tobytes() == want
        one_by_one = "\n".join(f"b3[{place}] = {write(value)}" for place, value in enumerate(values))
        assert run(one_by_one)["b3"].tobytes() == want


@pytest.mark.parametrize("literal", LITERALS)
@pytest.mark.parametrize("sign", ["", "-", "- ", "-\\\n"])
def test_a_literal_means_the_same_alone_and_in_a_list(literal: str, sign: str) -> None:
    alone = run(f"b3 = {sign}{literal}")["b3"].tobytes()
    assert run(f"b3 = [{', '.join([sign + literal] * 6)}]")["b3"].tobytes() == alone
    assert run(f"b3 = [1, 2, 3, 4, 5, 6]\nb3 = [{sign}{literal},]")["b3"].tobytes() == alone
    assert_judged(fenced(f"b3 = {sign}{literal}"))


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("b3 = 2", [2, 2, 2, 2, 2, 2]),
        ("b3[1] = 5; b3[-1] -= 1.5;", [0, 5, 0, 0, 0, -1.5]),
        ("b3[1:5:2] = [1, 2]", [0, 1, 0, 2, 0, 0]),
        ("b3[::-1] = [1, 2, 3, 4, 5, 6]", [6, 5, 4, 3, 2, 1]),
        ("b3[4:999999999999999999999999] = 1", [0, 0, 0, 0, 1, 1]),
        ("b3[-999999999999999999999999:2] = 1", [1, 1, 0, 0, 0, 0]),
        ("b3[9:] = [1]\nb3[0] = 4", [4, 0, 0, 0, 0, 0]),
        ("b3[[1, 3, -1]] = [1, 2, 3]", [0, 1, 0, 2, 0, 3]),
        ("b3 = 1\nb3[[0, 0, 0]] += 1", [2, 1, 1, 1, 1, 1]),
        ("b3 = 1\nb3[[0, 0, 1]] -= [1, 2, 3]", [-1, -2, 1, 1, 1, 1]),
        ("b3[[5, -1, 5]] = [1, 2, 3]", [0, 0, 0, 0, 0, 3]),
        ("b3[0x2,] = 0b11", [0, 0, 3, 0, 0, 0]),
        ("b3 = 1\nb3 += 1e-8", [1, 1, 1, 1, 1, 1]),
        ("b3[0] = 1.0000000596046447753906250000001", [1, 0, 0, 0, 0, 0]),  # by way of float64, as in NumPy
    ],
)
def test_vectors(text: str, want: list[float]) -> None:
    assert run(text)["b3"].tolist() == want
    assert_judged(fenced(text))


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("W3[2, 3] = 1", [(2, 3)]),
        ("W3[[1, 2], [3, 4]] = 1", [(1, 3), (2, 4)]),
        ("W3[[1, 2], 3] = 1", [(1, 3), (2, 3)]),
        ("W3[-1, [0, -1]] = 1", [(31, 0), (31, 5)]),
        ("W3[[1, 2], [0]] = 1", [(1, 0), (2, 0)]),
        ("W3[[1, 2], 4:] = 1", [(1, 4), (1, 5), (2, 4), (2, 5)]),
        ("W3[30:, [0, 2]] = [[1]]", [(30, 0), (30, 2), (31, 0), (31, 2)]),
        ("W3[30] = [1, 0, 0, 0, 0, 1]", [(30, 0), (30, 5)]),
        ("W3[:2, 1:3] = [[0, 1], [1, 0]]", [(0, 2), (1, 1)]),
        ("W3[:2, 1:3] = [[0], [1]]", [(1, 1), (1, 2)]),
        ("W3[0:2, [1, 1]] = [[1, 0], [0, 1]]", [(1, 1)]),
    ],
)
def test_matrices(text: str, places: list[tuple[int, int]]) -> None:
    assert sorted(zip(*np.nonzero(run(text)["W3"]), strict=True)) == places
    assert_judged(fenced(text))


def test_every_tensor_is_its_own_part_of_the_weights() -> None:
    edits = parse_edits(fenced("\n".join(f"{name} = {place}" for place, name in enumerate(SHAPES, start=1))))
    assert edits.count == 6
    assert edits.weights.dtype == np.float32
    for place, (name, tensor) in enumerate(tensors(edits.weights).items(), start=1):
        assert tensor.tolist() == np.full(SHAPES[name], place).tolist()


def test_a_dense_answer_is_every_number_of_it() -> None:
    generator = np.random.default_rng(7)
    want = {name: generator.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}
    got = run("\n".join(f"{name} = {tensor.tolist()}" for name, tensor in want.items()))
    assert all(got[name].tobytes() == want[name].tobytes() for name in SHAPES)


def test_two_answers_share_no_weights() -> None:
    first = parse_edits(fenced("b1 = 1")).weights
    first += 1
    assert parse_edits(fenced("b1[0] = 0")).weights.tolist() == [0.0] * 20_486


def test_the_sign_of_zero_is_pythons() -> None:
    assert (
        run("b3 = [0, -0, -0.0, 0.0, -0e5, -0x0]")["b3"].tobytes()
        == np.array([0, 0, -0.0, 0, -0.0, 0], dtype=np.float32).tobytes()
    )
    assert str(run("b3 = -0")["b3"][0]) == "0.0"
    assert str(run("b3 = -0.0")["b3"][0]) == "-0.0"


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        ("```edits\nb3 = 1\n```", 1),
        ("text\n````  edits now, please\nb3 = 1\n`````  \ntext", 1),
        ("```edits\nb3 = 1\n```\nbetter:\n```edits\nb3 = 2\n```\n```python\nb3 = 3\n```", 2),
        ("```edits\nb3 = 1\n```edits\nb3 = 2\n```", 2),
        ("````markdown\n```edits\nb3 = 1\n```\n````", 1),
        ("- item\n  ```edits\n  b3 = 1\nb3 += 1\n  ```", 2),
        ("\t```edits\n\tb3 = 1\n```", 1),
        ("````edits\n# ``` is in this comment, and a line of it follows:\nb3 = [1,\n#```\n]\n````", 1),
        ("```edits\r\nb3 = 1\r\n```\r\n", 1),
        ("```edits\rb3 = 1\r```", 1),
        ("```edits\nb3 = 1 # \ud800 \U0001f600\n```", 1),
        ("~~~\n```edits\nb3 = 1\n```\n~~~", 1),
    ],
)
def test_fences(answer: str, want: float) -> None:
    assert tensors(parse_edits(answer).weights)["b3"].tolist() == [want] * 6
    assert_judged(answer)


@pytest.mark.parametrize(
    ("answer", "line", "column"),
    [
        ("```edits\nb3 = 1\nb3 = x\n```", 3, 6),
        ("intro\r\n```edits\r\n# c\r\nb3 = 1; b3 = x\r\n```", 4, 14),
        ("  ```edits\n  b3 = [1, # é é\n    2, x]\n  ```", 3, 8),
        ("```edits\nb3 = \\\n  x\n```", 3, 3),
        ("```edits\nb3 = [1, 2,\n\n  3, 1e39, 4]\n```", 4, 6),
        ("```edits\nW1[:2, :2] = [[1, 2],\n [3,\n -1e39]]\n```", 4, 2),
        ("```edits\nW1[[0,\n 600]] = 1\n```", 3, 2),
        ("```edits\nb3 = 1\n\n  b3 = 2\n```", 4, 3),
        ("text\n ```edits\nb3 = 1", 2, 2),
        ("text\n```edits\n\n```", 2, 1),
        ("```edits\nb3 = 1\nb3 = 2 # \0\n```", 3, 10),
    ],
)
def test_an_error_tells_its_place_in_the_answer(answer: str, line: int, column: int) -> None:
    refusal = error(answer)
    assert (refusal.line, refusal.column) == (line, column)
    assert str(refusal) == f"{refusal.code}: line {line}, column {column}: {refusal.message}"


def test_errors_travel_between_processes() -> None:
    refusal = error(fenced("b3 = x"))
    assert isinstance(refusal, ModelError)
    for other in (pickle.loads(pickle.dumps(refusal)), copy.copy(refusal)):
        assert (type(other), other.code, other.message, other.line, other.column, str(other)) == (
            *(EditsError, refusal.code, refusal.message, refusal.line, refusal.column, str(refusal)),
        )


def test_no_state_of_numpys_warnings_matters() -> None:
    text = fenced("b3 = 1e-46\nb3 -= 1e-45\nb2 = 3e38\nb2 -= 3e38\nb1 = 3.4028235677973362e38")
    want = parse_edits(text).weights.tobytes()
    with np.errstate(all="raise"):
        assert parse_edits(text).weights.tobytes() == want
        assert error(fenced("b3 = 3e38; b3 += 3e38")).code == "float32_overflow"
    with np.errstate(all="ignore"):
        assert error(fenced("b3[0] = -3e38; b3[0] -= 3e38")).code == "float32_overflow"
        assert error(fenced("b3[[0, 1]] = -3e38; b3[[1, 0]] += -3e38")).code == "float32_overflow"

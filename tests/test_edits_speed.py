"""No text takes the edits parser long, and no selection much memory."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest
from edits_programs import fenced

from weightgym.rewards.weight_program.edits import EditsError, parse_edits

SIZE = 1 << 20


def slowness() -> float:
    """How many times longer than 45 ms, which an idle core takes, this core takes for a loop just now; at least 1."""
    start = time.process_time()
    total = 0
    for step in range(1_000_000):
        total += step
    return max(1.0, (time.process_time() - start) / 0.045)


def assert_quick(answer: str, code: str, *, limit: float = 1.0) -> None:
    """The best of three runs: what else the machine does is not the parser's time."""
    best = np.inf
    for _ in range(3):
        before = slowness()
        start = time.process_time()
        try:
            parse_edits(answer)
            got = "ok"
        except EditsError as error:
            got = str(error).partition(":")[0]
        seconds = time.process_time() - start
        assert got == code
        best = min(best, seconds, seconds / ((before + slowness()) / 2))
        if best < limit:
            return
    pytest.fail(f"{best:.2f} s of CPU, want under {limit} s")


def full(unit: str, before: str = "", after: str = "") -> str:
    """A block of as many units as an answer may hold."""
    room = SIZE - len(fenced(before + after).encode())
    return fenced(before + unit * (room // len(unit.encode())) + after)


@pytest.mark.parametrize(
    ("unit", "before", "after", "code"),
    [
        *[
            (unit, "", "", "no_edits")
            for unit in ("#", "#\n", "\n", " ", "  \n", "\f", "\r", "\r\n", "\\\n", " \\\n", "\\\n#\n")
        ],
        *[(unit, "", "", "syntax") for unit in (";", "1,", "\\", "\\#", "'", "=", "W1;", "1;", "\0")],
        *[(unit, "", "", "bad_target") for unit in ("[", "(", "*", "W1=", "W1[0][0]", "W1,", "W1:")],
        *[(unit, "", "", "bad_index") for unit in ("W1[", "W1[]", "W1[0,", "W1[:")],
        *[(unit, "", "", "unknown_name") for unit in ("a", "a.", "é", "_")],
        ("`", "", "", "no_edits"),
        ("b3=1;", "", "", "too_many_statements"),
        ("[", "b1 = ", "", "nesting_depth"),
        ("[", "b1", "", "nesting_depth"),
        *[
            (unit, "b1 = [", "]", "shape_mismatch")
            for unit in ("1,", "1.,", "-0,", "- 1,", "0x1,", "1\n,", "1#\n,", "1_0,")
        ],
        *[
            (unit, "b1 = [", "]", "shape_mismatch")
            for unit in ("[1],", "[1,1],", "[-0.],\n", "[0x1],", "[[1]],", "[],")
        ],
        *[(unit, "b1 = [", "", "syntax") for unit in ("1,", "1.,", "1,\n", "[1],", " ", "#\n")],
        *[(unit, "b1 = [", "x]", "bad_value") for unit in ("1,", "[1],", "1_1,")],
        *[
            (unit, "b1 = ", "", "bad_value")
            for unit in ("-", "- ", "1_", "0_", "1.", "1e", "a.", "0x", "x ", "1j", "1+")
        ],
        ("1,", "b1 = [", "1e39]", "float32_overflow"),
        ("1e99,", "b1 = [", "]", "float32_overflow"),
        ("9", "b1 = ", "", "float32_overflow"),
        ("f", "b1 = 0x", "", "float32_overflow"),
        ("[1,1],", "W1 = [", "[1]]", "shape_mismatch"),
        ("0,", "W1[[", "600]] = 1", "index_range"),
        ("0,", "W1[[", "0.5]] = 1", "bad_index"),
        ("0x1,", "W1[[", "x]] = 1", "bad_index"),
        ("9", "W1[", "] = 1", "index_range"),
        ("9" * 4299 + ",", "W1[[", "]] = 1", "index_range"),
        (f"W1[{'9' * 4300}:] = 1\n", "", "", "ok"),
        ("f", "W1[0x", ":] = 1", "ok"),
        ("0", "W1[", "] = 1", "ok"),
        ("0", "b1 = ", "", "ok"),
        ("_0", "b1 = 0", "", "ok"),
        ("1", "b1 = 0.", "", "ok"),
        ("0,", "W1[[", "]] = 1", "ok"),
        ("- 1,", "W1[[", "]] += 1", "ok"),
        ("0,", "W1[:, [", "]] += [[1]]", "ok"),
        ("0x1,", "W1[:, [", "]] -= 1", "ok"),
        ("b1=[" + "1," * 32 + "]\n", "", "", "ok"),
        ("W1[:,:1]=[" + "[1]," * 600 + "]\n", "", "", "ok"),
        ("W1[:,:1]=[" + "[- 0]," * 600 + "]\n", "", "", "ok"),
        ("W1=[" + ("[" + "-1.," * 32 + "],") * 600 + "]\n", "", "", "ok"),
    ],
)
def test_a_full_answer_is_read_in_a_second(unit: str, before: str, after: str, code: str) -> None:
    assert_quick(full(unit, before, after), code)


@pytest.mark.parametrize(
    ("statement", "limit"),
    [
        ("W1[1, 2] = 0.5", 0.5),
        ("W1[1, -2] += 0.5", 0.5),
        ("W1 = 1", 0.5),
        ("W1[:, ::-1] += .1", 1),
        ("W1[::-1, ::-1] -= 1", 1),
        ("W1[::, :31] += .1", 1),
        ("W1[-1:-1:-1, -1:-1:-1] = -1;", 1),
        ("b1[[0]] += 1", 1),
        ("W1[[0, 1], [1, 2]] += [1, 2]", 1),
        ("W1[[0,0,0,0,0,0,0,0,0,0,0,0],:]-=[[1]]", 1),
        ("W1[:,[0,2,1,4,3,6,5,8,7,10,9,12,11,14]]-=1", 1),
        ("b3[:] = [-0., -.0, 1., .1, - 1, 0x1,]", 1),
    ],
)
def test_twenty_thousand_statements_are_read_in_a_second(statement: str, limit: float) -> None:
    assert_quick(fenced(f"{statement}\n" * 20_000), "ok", limit=limit)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("`" * SIZE, "no_block"),
        ("~" * SIZE, "no_block"),
        (" " * SIZE, "no_block"),
        ("\n" * SIZE, "no_block"),
        ("```x\n" * (SIZE // 5), "no_block"),
        ("```edits\n" * (SIZE // 9), "unclosed_block"),
        ("````edits\n" + "```\n" * (SIZE // 4 - 9), "unclosed_block"),
        ("```edits\n```\n" * (SIZE // 13), "no_edits"),
        (" ```edits\n" + " \n" * (SIZE // 2 - 9) + "```", "no_edits"),
        (" " * (SIZE // 2 - 9) + "```edits\n" + " " * (SIZE // 2 - 9) + "\n```", "no_edits"),
        ("`" * (SIZE // 2 - 9) + "edits\n" + "`" * (SIZE // 2 - 9), "no_edits"),
        ("```edits\nb3 = 1 #" + "\ud800" * (SIZE // 3 - 9) + "\n```", "ok"),
    ],
)
def test_fences_are_found_in_a_second(answer: str, code: str) -> None:
    assert_quick(answer, code)


def test_a_dense_answer_takes_a_few_hundredths_of_a_second() -> None:
    rows = np.random.default_rng(1).normal(size=(600, 32)).astype(np.float32).tolist()
    assert_quick(fenced(f"W1 = {rows}\nW2 = {rows[:32]}"), "ok", limit=0.06)


def test_ten_megabytes_are_refused_at_once() -> None:
    for answer in ("a" * (10 << 20), "é" * (10 << 20), "```edits\n" * (1 << 20)):
        assert_quick(answer, "answer_too_large", limit=0.001)


@pytest.mark.parametrize(
    "text",
    [
        "W1[0:999999999999999999999999, :999999999999999999999999] += 1",
        "W1[::999999999999999999999999] = [[1]]",
        f"W1[:, [{'0, 1, ' * 5000}]] -= 1",
        f"W1[:, [{'0, 1, ' * 5000}]] = [{'1, 2, ' * 5000}]",
        f"W1[[{'-1, ' * 10000}], :] += [[2]]",
    ],
)
def test_no_selection_takes_much_memory(text: str) -> None:
    tracemalloc.start()
    try:
        parse_edits(fenced(text))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20

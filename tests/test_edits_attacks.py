"""What the edits language refuses, and how it says so."""

from __future__ import annotations

import re

import pytest
from edits_oracle import judge
from edits_programs import fenced

from weightgym.rewards.weight_program.edits import EditsError, parse_edits
from weightgym.rewards.weight_program.network import tensors

SIZE = 1 << 20
DEEP = 100_000


def refusal(answer: str) -> EditsError:
    with pytest.raises(EditsError) as caught:
        parse_edits(answer)
    text = str(caught.value)
    assert text.isascii()
    assert text.isprintable()
    assert len(text) < 300
    assert re.match(rf"{caught.value.code}: (line \d+, column \d+: )?.+; .+", text), text
    return caught.value


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        # Names and statements.
        ("w1[0] = 1", "unknown_name", "'w1' is not a tensor"),
        ("W4 = 1", "unknown_name", "'W4'"),
        ("W1x = 1", "unknown_name", "'W1x'"),
        ("Ｗ1[0] = 1", "unknown_name", r"'\uff371'"),
        ("__import__('os')", "unknown_name", "'__import__'"),
        ("print(W1)", "unknown_name", "'print'"),
        ("import os", "syntax", "'import'"),
        ("lambda: 0", "syntax", "'lambda'"),
        ("for i in range(3): b3[i] = 1", "syntax", "'for'"),
        ("del W1", "syntax", "'del'"),
        ("True = 1", "syntax", "'True'"),
        ('"""doc"""', "syntax", "unexpected"),
        ("1 = 1", "syntax", "unexpected '1'"),
        ("W1", "syntax", "end of the line"),
        (" b3 = 1", "syntax", "indented"),
        ("b3 = 1\n\tb3 = 1", "syntax", "indented"),
        ("\\\n b3 = 1", "syntax", "indented"),
        ("b3 = 1;;b3 = 1", "syntax", "unexpected ';'"),
        ("; b3 = 1", "syntax", "unexpected ';'"),
        ("b3 = 1 b3 = 2", "syntax", "newline or ';'"),
        ("b3 *= 2", "syntax", "operator *="),
        ("b3 //= 2", "syntax", "operator //="),
        ("b3 := 2", "syntax", "operator :="),
        ("b3 == 2", "syntax", "operator =="),
        ("b3 + = 2", "syntax", "unexpected '+'"),
        ("b3\n= 2", "syntax", "end of the line"),
        ("b3 = 1 \\", "syntax", "backslash"),
        ("b3 = \\ 1", "syntax", "backslash"),
        ("b3 = 1 \\# no comment", "syntax", "backslash"),
        ("b3 = 1 # \0", "syntax", "null character"),
        ("\0", "syntax", "null character"),
        ("b3 = 1\x0b", "syntax", r"'\x0b'"),
        # Targets.
        ("W1[0][1] = 1", "bad_target", "second pair of brackets"),
        ("W1.x = 1", "bad_target", "attribute"),
        ("W1() = 1", "bad_target", "call"),
        ("(W1)[0] = 1", "bad_target", "'('"),
        ("(y := 1)", "bad_target", "'('"),
        ("[W1] = [1]", "bad_target", "'['"),
        ("*W1, = 1", "bad_target", "'*'"),
        ("W1[0], W1[1] = 1, 2", "bad_target", "tuple target"),
        ("W1: float = 1", "bad_target", "annotation"),
        ("W1[0] = W1[1] = 3", "bad_target", "chained"),
        ("b3 = b1 = 3", "bad_target", "chained"),
        ("b3 = 3 = 4", "bad_target", "chained"),
        # Indices.
        ("W1[] = 1", "bad_index", "']'"),
        ("W1[,] = 1", "bad_index", "','"),
        ("W1[0,,1] = 1", "bad_index", "','"),
        ("W1[0, 1, 2] = 1", "bad_index", "at most 2"),
        ("b1[0, 1] = 1", "bad_index", "at most 1"),
        ("b1[:, 0] = 1", "bad_index", "at most 1"),
        ("W1[True] = 1", "bad_index", "boolean"),
        ("W1[None] = 1", "bad_index", "None"),
        ("W1[...] = 1", "bad_index", "ellipsis"),
        ("W1[x] = 1", "bad_index", "name"),
        ("W1['0'] = 1", "bad_index", "string"),
        ("W1[1.0] = 1", "bad_index", "'1.0' is not an integer"),
        ("W1[1e1] = 1", "bad_index", "'1e1' is not an integer"),
        ("W1[[0, 1.5]] = 1", "bad_index", "'1.5' is not an integer"),
        ("W1[1j] = 1", "bad_index", "complex"),
        ("W1[012] = 1", "bad_index", "leading zeros"),
        ("W1[٣] = 1", "bad_index", "ASCII"),
        ("W1[len(x)] = 1", "bad_index", "call"),
        ("W1[(0, 1)] = 1", "bad_index", "parenthesis"),
        ("W1[0:10**18] = 1", "bad_index", "arithmetic"),
        ("W1[1 + 1] = 1", "bad_index", "arithmetic"),
        ("W1[2 - 1] = 1", "bad_index", "arithmetic"),
        ("W1[+1] = 1", "bad_index", "plus sign"),
        ("W1[--1] = 1", "bad_index", "second minus"),
        ("W1[0:2:0] = 1", "bad_index", "step"),
        ("W1[::-0x0] = 1", "bad_index", "step"),
        ("W1[0:1:2:3] = 1", "bad_index", "':'"),
        ("W1[0 1] = 1", "bad_index", "'1'"),
        ("W1[[]] = 1", "bad_index", "empty"),
        ("W1[[0, [1]]] = 1", "bad_index", "unexpected '['"),
        ("W1[[[0]]] = 1", "bad_index", "list in an index list"),
        ("W1[[0:2]] = 1", "bad_index", "':'"),
        ("W1[[0, 1], [0, 1, 2]] = 1", "bad_index", "2 and 3 entries"),
        ("W1[i for i in x] = 1", "bad_index", "comprehension"),
        ("W1[*x] = 1", "bad_index", "starred"),
        ("W1[W1[0]] = 1", "bad_index", "tensor"),
        ("W1[0 = 1", "bad_index", "'='"),
        ("W1[0", "syntax", "end of the block"),
        ("W1[[0", "syntax", "end of the block"),
        ("W1[600] = 1", "index_range", "-600 to 599"),
        ("W1[-601] = 1", "index_range", "-600 to 599"),
        ("W1[0, 32] = 1", "index_range", "axis 1"),
        ("W1[[0, 1, 600]] = 1", "index_range", "axis 0"),
        ("b3[[-7]] = 1", "index_range", "-6 to 5"),
        ("b3[999999999999999999999999] = 1", "index_range", "-6 to 5"),
        (f"b3[0x{'f' * 9000}] = 1", "index_range", "-6 to 5"),
        (f"b3[{'9' * 4301}] = 1", "index_range", "4,300"),
        (f"b3[[{'9' * 4301}]] = 1", "index_range", "4,300"),
        (f"b3[:{'9' * 4301}] = 1", "index_range", "4,300"),
        # Values.
        ("W1[0] = W1[1]", "bad_value", "reading a tensor"),
        ("b3 = x", "bad_value", "name"),
        ("b3 = 'x'", "bad_value", "string"),
        ("b3 = b'x'", "bad_value", "string"),
        ("b3 = f'{1}'", "bad_value", "f-string"),
        ("b3 = True", "bad_value", "boolean"),
        ("b3 = [0, False]", "bad_value", "boolean"),
        ("b3 = None", "bad_value", "None"),
        ("b3 = nan", "bad_value", "NaN"),
        ("b3 = -inf", "bad_value", "infinity"),
        ("b3 = float('nan')", "bad_value", "call"),
        ("b3 = np.zeros(6)", "bad_value", "call"),
        ("b3 = math.pi", "bad_value", "attribute"),
        ("b3 = 1 + 2", "bad_value", "arithmetic"),
        ("b3 = 2 ** 3", "bad_value", "arithmetic"),
        ("b3 = 1 / 3", "bad_value", "arithmetic"),
        ("b3 = [0.0] * 6", "bad_value", "arithmetic"),
        ("b3 = [1, 2 - 1]", "bad_value", "arithmetic"),
        ("b3 = ~1", "bad_value", "arithmetic"),
        ("b3 = +1", "bad_value", "plus sign"),
        ("b3 = --1", "bad_value", "second minus"),
        ("b3 = -[1]", "bad_value", "minus sign before a list"),
        ("b3 = [i for i in range(6)]", "bad_value", "comprehension"),
        ("b3 = [0 for _ in x]", "bad_value", "comprehension"),
        ("b3 = [*x]", "bad_value", "starred"),
        ("b3 = 1j", "bad_value", "complex"),
        ("b3 = [1.5J]", "bad_value", "complex"),
        ("b3 = (1)", "bad_value", "parenthesis"),
        ("b3 = 1, 2", "bad_value", "tuple"),
        ("b3 = 1,", "bad_value", "tuple"),
        ("b3 = {}", "bad_value", "dictionary"),
        ("b3 = {1: 2}", "bad_value", "dictionary"),
        ("b3 = (y := 1)", "bad_value", "parenthesis"),
        ("b3 = [y := 1]", "bad_value", "walrus"),
        ("b3 = lambda: 0", "bad_value", "lambda"),
        ("b3 = 1 if x else 2", "bad_value", "condition"),
        ("b3 = 1 < 2", "bad_value", "comparison"),
        ("b3 = [1][0]", "bad_value", "index into a value"),
        ("b3 = ...", "bad_value", "ellipsis"),
        ("b3 = 012", "bad_value", "leading zeros"),
        ("b3 = 1__0", "bad_value", "malformed"),
        ("b3 = 1.2.3", "bad_value", "malformed"),
        ("b3 = 0b2", "bad_value", "malformed"),
        ("b3 = 1e", "bad_value", "malformed"),
        ("b3 = ٣", "bad_value", "ASCII"),
        ("b3 = −1", "bad_value", "ASCII"),
        ("b3 =", "syntax", "end of the line"),
        ("b3 = -", "syntax", "'-'"),
        ("b3 = [1, , 2]", "syntax", "','"),
        ("b3 = [1 2]", "syntax", "comma"),
        ("W1[:2] = [[1] [2]]", "syntax", "comma"),
        ("b3 = [1, 2", "syntax", "never closed"),
        ("W1[:2] = [[1, 2], [3", "syntax", "never closed"),
        ("b3 = ]", "syntax", "']'"),
        ("b3 = [1}]", "syntax", "'}'"),
        # Shapes.
        ("b3 = [1, 2]", "shape_mismatch", "(2,) does not broadcast to shape (6,) of 'b3'"),
        (
            "W1[0:4] = [[1, 2], [3, 4], [5, 6]]",
            "shape_mismatch",
            "(3, 2) does not broadcast to shape (4, 32) of 'W1[0:4]'",
        ),
        ("W1[0, 0] = [1]", "shape_mismatch", "(1,) does not broadcast to shape ()"),
        ("b3 = [[1, 2, 3, 4, 5, 6]]", "shape_mismatch", "(1, 6) does not broadcast to shape (6,)"),
        ("b3[6:] = [1, 2]", "shape_mismatch", "(2,) does not broadcast to shape (0,)"),
        ("W1[[0, 1], [2, 3]] = [1, 2, 3]", "shape_mismatch", "(3,) does not broadcast to shape (2,)"),
        ("W1[:2, :2] = [[1, 2], [3]]", "shape_mismatch", "row 1 (from 0) has length 1, the rows before it 2"),
        ("b3 = []", "shape_mismatch", "empty"),
        ("W1 = [[], []]", "shape_mismatch", "empty"),
        ("W1 = [[1], 2]", "shape_mismatch", "mixed"),
        ("W1 = [1, [2]]", "shape_mismatch", "mixed"),
        ("W1 = [[1, [2]]]", "shape_mismatch", "mixed"),
        ("W1 = [[[1]]]", "shape_mismatch", "three deep"),
        ("W1 = [[1], [[[[2]]]]]", "shape_mismatch", "three deep"),
        # Overflow.
        ("b3 = 1e999", "float32_overflow", "'1e999' is too large"),
        ("b3 = [1, -1e39]", "float32_overflow", "'-1e39' is too large"),
        ("b3 = 3.4028235677973366e38", "float32_overflow", "too large"),
        (f"b3 = 1{'0' * 5000}", "float32_overflow", "too large"),
        (f"b3 = 0x{'f' * 5000}", "float32_overflow", "too large"),
        ("b3[6:] = 1e39", "float32_overflow", "too large"),
        ("b3 = 3e38; b3 += 3e38", "float32_overflow", "+= makes"),
        ("W1 = 3e38; W1 += 3e38", "float32_overflow", "+= makes"),
        ("W1[599, 31] = 3e38; W1[:, ::-1] += 3e38", "float32_overflow", "+= makes"),
        ("W1[599, 31] = -3e38; W1[1:, 1:] -= 3e38", "float32_overflow", "-= makes"),
        ("W1[7, [3, 4]] = -3e38; W1[7] -= [" + "0," * 4 + "3e38," + "0," * 27 + "]", "float32_overflow", "-= makes"),
        ("W1[[7, 8], [3, 4]] = 3e38; W1[[6, 7], 3] += 3e38", "float32_overflow", "+= makes"),
        ("b3 = -3e38; b3[2] -= 3e38", "float32_overflow", "-= makes"),
        # Limits.
        (f"b3 = {'[' * 7}1{']' * 7}", "nesting_depth", "6"),
        (f"b3 = {'[' * DEEP}1{']' * DEEP}", "nesting_depth", "6"),
        (f"W1{'[' * DEEP}0{']' * DEEP} = 1", "nesting_depth", "6"),
        (f"b3 = {'-' * DEEP}1", "bad_value", "second minus"),
        ("b3 = 0\n" * 20_001, "too_many_statements", "20,000"),
        ("b3=0;" * 20_001, "too_many_statements", "20,000"),
        ("", "no_edits", "no statement"),
        ("# nothing\n\n", "no_edits", "no statement"),
    ],
)
def test_refusals(text: str, code: str, says: str) -> None:
    error = refusal(fenced(text))
    assert error.code == code, error
    assert says in error.message, error
    assert error.line is not None
    assert error.column is not None
    assert len(text) > 1000 or judge(fenced(text)) is None
    if code != "no_edits":  # one bad statement spoils the good ones before it
        assert refusal(fenced("b1 = 1\n" + text)).code == code


@pytest.mark.parametrize(
    ("answer", "code", "says"),
    [
        ("", "no_block", "no block"),
        ("b3 = 1", "no_block", "no block"),
        ("```python\nb3 = 1\n```", "no_block", "'```python'"),
        ("```Edits\nb3 = 1\n```", "no_block", "'```Edits'"),
        ("~~~edits\nb3 = 1\n~~~", "no_block", "'~~~edits'"),
        ("```editsx\nb3 = 1\n```", "no_block", "'```editsx'"),
        ("``edits\nb3 = 1\n``", "no_block", "no block"),
        ("> ```edits\n> b3 = 1\n> ```", "no_block", "no block"),
        ("text ```edits\nb3 = 1\n```", "no_block", "no block"),
        ("```edits b3 = 1 ```", "no_block", "'```edits'"),
        ("```" + "é\n" * 9, "no_block", r"'```\xe9'"),
        ("```edits", "unclosed_block", "3 or more backticks"),
        ("````edits\nb3 = 1\n```", "unclosed_block", "4 or more backticks"),
        ("```edits\nb3 = 1\n```\n```edits\nb3 = 1", "unclosed_block", "never closed"),
        ("```edits\nb3 = 1\n``` end", "unclosed_block", "never closed"),
        ("a" * (SIZE + 1), "answer_too_large", "1,048,576 bytes"),
        ("é" * (SIZE // 2 + 1), "answer_too_large", "1,048,576 bytes"),
        ("\ud800" * (SIZE // 3 + 1), "answer_too_large", "1,048,576 bytes"),
    ],
)
def test_answers_without_a_good_block(answer: str, code: str, says: str) -> None:
    error = refusal(answer)
    assert error.code == code
    assert says in error.message
    assert (error.line is None) == (code != "unclosed_block")


def test_the_largest_answers_are_read() -> None:
    for filler in ("a", "é"):
        block = "```edits\nb3 = 1\n```\n"
        answer = filler * ((SIZE - len(block) - 1) // len(filler.encode())) + "\n" + block
        assert tensors(parse_edits(answer).weights)["b3"].tolist() == [1] * 6
    assert parse_edits(fenced("b3 = 1\n" * 20_000)).count == 20_000


@pytest.mark.parametrize("name", ["a" * 1000, "é" * 1000, "\U0001f600" * 50, "'\"\\" * 40])
def test_excerpts_are_short(name: str) -> None:
    for text in (f"{name} = 1", f"b3 = {name}", f"b3[{name}] = 1", f"b3 = {'1' * 1000}e{'9' * 1000}", f"b3 {name}"):
        assert len(str(refusal(fenced(text)))) < 220

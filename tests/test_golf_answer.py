"""Where Golf's solution stands in an answer."""

from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightgym.rewards.contracts import ModelError
from weightgym.rewards.golf.answer import MAX_ANSWER_BYTES, find_solution
from weightgym.rewards.golf.errors import SolutionError


def test_the_last_closed_block_is_the_solution() -> None:
    answer = "I try.\n```python\na = 1\n```\nBetter:\n```Python title=solution.py\nb = 2\n```\nand\n```python\nc = 3\n"
    assert find_solution(answer) == b"b = 2\n"


@pytest.mark.parametrize(
    ("answer", "solution"),
    [
        ("```python\r\nx = 1\r\n```\r\n", b"x = 1\n"),
        ("````python\nx = '''\n```\n'''\n````", b"x = '''\n```\n'''\n"),
        ("- so:\n  ```python\n  if 1:\n      x = 2\n  ```\n", b"if 1:\n    x = 2\n"),
        ("```python\nbroken off\n\nAgain:\n```python\nx = 3\n```", b"x = 3\n"),
        ("```python\n```", b""),
        ("```text\nx\n```\n```python\nx = 4\n```\n```bash\nls\n```", b"x = 4\n"),
        ("```python\nx = 'é\u2028'\n```", "x = 'é\u2028'\n".encode()),
    ],
)
def test_blocks(answer: str, solution: bytes) -> None:
    assert find_solution(answer) == solution


@pytest.mark.parametrize(
    "answer", ["", "x = 1", "```python\nx = 1", "```py\nx\n```", "```\nx\n```", "```pythonic\nx\n```"]
)
def test_no_solution(answer: str) -> None:
    with pytest.raises(ModelError, match=r"^no_solution: "):
        find_solution(answer)


def test_answers_that_no_encoding_can_hold_or_that_are_huge() -> None:
    with pytest.raises(SolutionError, match=r"^check_failed: line 2: a lone surrogate"):
        find_solution("```python\nx = 1\ny = '\ud800'\n```")
    with pytest.raises(SolutionError, match="longer than"):
        find_solution("x" * (MAX_ANSWER_BYTES + 1))
    with pytest.raises(SolutionError, match="longer than"):
        find_solution("é" * (MAX_ANSWER_BYTES // 2 + 1))


@pytest.mark.parametrize("piece", ["```python\n", "```\n", "`", "``` ", " ```python\n", "\t", "```python `\n", "\r"])
def test_finding_takes_linear_time(piece: str) -> None:
    text = (piece * MAX_ANSWER_BYTES)[:MAX_ANSWER_BYTES]
    started = time.perf_counter()
    with contextlib.suppress(SolutionError):
        find_solution(text)
    assert time.perf_counter() - started < 5


@given(st.text(alphabet="`python \n\r\tx~", max_size=200))
def test_any_answer_has_a_solution_or_none(answer: str) -> None:
    try:
        found, code = find_solution(answer), ""
    except SolutionError as error:
        found, code = b"", error.code
    assert code in ("", "no_solution")
    assert b"\r" not in found

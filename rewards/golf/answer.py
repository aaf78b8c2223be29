"""Where the solution stands in an answer: the last closed ```python block.

A block opens at a line of optional indentation, three or more backticks and an info string (without backticks, as in
CommonMark) whose first word is ``python``. It closes at the next line that holds nothing but at least as many
backticks. Another opening line before that starts over: models break off and begin again.
"""

from __future__ import annotations

import re

from weightgym.rewards.golf.errors import SolutionError

#: UTF-8 bytes of an answer, and characters: text is refused before it is encoded.
MAX_ANSWER_BYTES = 1 << 21

_OPENING = re.compile(r"([ \t]*+)(`{3,}+)[ \t]*+python(?![^ \t])[^`]*+", re.IGNORECASE)
_CLOSING = re.compile(r"[ \t]*+(`{3,}+)[ \t]*+")


def find_solution(answer: str) -> bytes:
    """The text of the last closed ``python`` block, as UTF-8, with ``\\n`` line ends, without the fence's indent.

    Raises:
        SolutionError: ``no_solution`` (there is none), ``check_failed`` (the answer is too large, or holds characters
            that UTF-8 can't).
    """
    if len(answer) > MAX_ANSWER_BYTES or len(answer.encode("utf-8", "surrogatepass")) > MAX_ANSWER_BYTES:
        raise SolutionError("check_failed", f"the answer is longer than {MAX_ANSWER_BYTES:,} bytes of UTF-8")
    block = _last_block(answer.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    try:
        return block.encode("utf-8")
    except UnicodeEncodeError as error:
        line = block.count("\n", 0, error.start) + 1
        raise SolutionError("check_failed", "a lone surrogate is no character; remove it", line) from None


def _last_block(lines: list[str]) -> str:
    found: tuple[int, int, int] | None = None
    start, ticks, indent = -1, 0, 0
    for number, line in enumerate(lines):
        if "```" not in line:
            continue
        opening = _OPENING.fullmatch(line)
        if opening:
            start, ticks, indent = number + 1, len(opening[2]), len(opening[1])
            continue
        closing = _CLOSING.fullmatch(line)
        if closing and start >= 0 and len(closing[1]) >= ticks:
            found = start, number, indent
            start = -1
    if found is None:
        unclosed = "the block that opens with ```python is never closed; end it with a line ```"
        missing = "the answer has no block that opens with ```python; put solution.py between it and a line ```"
        raise SolutionError("no_solution", unclosed if start >= 0 else missing)
    first, end, indent = found
    block = lines[first:end]
    if indent:
        prefix = re.compile(rf"[ \t]{{0,{min(indent, 1000)}}}+")
        block = [prefix.sub("", line, count=1) for line in block]
    return "".join(line + "\n" for line in block)

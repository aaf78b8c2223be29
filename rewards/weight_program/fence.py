"""Where the edits stand in an answer: the last fenced ``edits`` block, made ready for the parser.

An answer is at most 1 MiB of UTF-8. A block opens at a line of optional indentation, three or more backticks and an
info string (without backticks, as in CommonMark) whose first word is ``edits``. It closes at the next line that holds
nothing but at least as many backticks. The last opening line counts, wherever it stands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from weightgym.rewards.contracts import ModelError

MAX_ANSWER_BYTES = 1 << 20

#: Stands for a backslash and the newline after it: whitespace that ends no statement. NUL is free for this use,
#: because a block that holds one is refused.
JOIN = "\0"

_OPENING = re.compile(r"^([ \t]*+)(`{3,}+)[ \t]*+edits(?![^ \t\n])[^`\n]*+$", re.MULTILINE)
_CLOSING = re.compile(r"^[ \t]*+(`{3,}+)[ \t]*+$", re.MULTILINE)
_OTHER_FENCE = re.compile(r"^[ \t]*+((?:`{3,}+|~{3,}+)[ \t]*+[^\s`]++)", re.MULTILINE)
# "\#" is an error in Python, not a comment; left in place, the parser meets the backslash.
_COMMENT = re.compile(r"(?<!\\)#[^\n]*+")
_EXCERPT = 40


class EditsError(ModelError):
    """An answer that is no valid edits program.

    ``code`` is machine-readable, ``message`` says what is wrong and how to fix it. ``line`` and ``column`` count from
    1 in the whole answer (both None when no place is at fault). ``str()`` is one line of ASCII.
    """

    def __init__(self, code: str, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(code, message, line, column)  # these are what pickle rebuilds the error from
        self.code = code
        self.message = message
        self.line = line
        self.column = column

    def __str__(self) -> str:
        place = "" if self.line is None else f"line {self.line}, column {self.column}: "
        return f"{self.code}: {place}{self.message}"


def excerpt(text: str) -> str:
    """The text quoted for a message: one line of ASCII, at most 40 characters with its quotes."""
    quoted = ascii(text[:_EXCERPT])
    if len(text) <= _EXCERPT and len(quoted) <= _EXCERPT:
        return quoted
    kept = next(n for n in range(_EXCERPT, -1, -1) if len(ascii(text[:n])) <= _EXCERPT - 3)
    return ascii(text[:kept])[:-1] + "..." + quoted[0]


@dataclass(frozen=True)
class Block:
    """The edits of an answer.

    ``code`` is what the parser reads: line ends are ``\\n``, the fence's indentation and all comments are gone,
    continued lines are joined by ``JOIN``. ``source`` is the same text before all that but the line ends;
    ``first_line`` its line number in the answer; ``indent`` the width of the fence's indentation.
    """

    code: str
    source: str
    first_line: int
    indent: int

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column, from 1, in the answer, of a character of ``code``."""
        before = self.code[:offset].replace(JOIN, "\n")
        row = before.count("\n")
        line = self.source.split("\n")[row]
        removed = min(self.indent, len(line) - len(line.lstrip(" \t")))
        return self.first_line + row, offset - before.rfind("\n") + removed

    def fail(self, code: str, offset: int, message: str) -> NoReturn:
        """Raise the ``EditsError`` of that character of ``code``."""
        raise EditsError(code, message, *self.place(offset))


def find_block(answer: str) -> Block:
    """The last ``edits`` block of the answer.

    Raises:
        EditsError: ``answer_too_large``, ``no_block``, ``unclosed_block``, or ``syntax`` (a null character).
    """
    check_size(answer)
    text = answer.replace("\r\n", "\n").replace("\r", "\n")
    opening = None
    for match in _OPENING.finditer(text):
        opening = match
    if opening is None:
        raise EditsError("no_block", _no_block(text))
    line = text.count("\n", 0, opening.start()) + 1
    ticks = opening[2]
    for closing in _CLOSING.finditer(text, opening.end()):
        if len(closing[1]) >= len(ticks):
            return _block(text[opening.end() + 1 : closing.start()], line + 1, len(opening[1]))
    wanted = f"{len(ticks)} or more backticks"
    message = f"the edits block that opens here is never closed; end it with a line of {wanted}"
    raise EditsError("unclosed_block", message, line, len(opening[1]) + 1)


def check_size(answer: str) -> None:
    """Refuse an answer over ``MAX_ANSWER_BYTES`` of UTF-8.

    Raises:
        EditsError: it is larger.
    """
    # A character takes at least one byte, so a huge text is refused without being encoded.
    small = len(answer) <= MAX_ANSWER_BYTES
    if small and not answer.isascii():
        small = len(answer.encode("utf-8", "surrogatepass")) <= MAX_ANSWER_BYTES
    if not small:
        limit = f"{MAX_ANSWER_BYTES:,} bytes of UTF-8"
        raise EditsError("answer_too_large", f"the answer is longer than {limit}; set slices instead of single weights")


def _no_block(text: str) -> str:
    found = ""
    for match in _OTHER_FENCE.finditer(text):
        found = match[1]
    seen = f"the answer opens a block with {excerpt(found)} but none" if found else "the answer has no block that opens"
    return f"{seen} with ```edits; put the assignments between a line ```edits and a line ```"


def _block(source: str, first_line: int, indent: int) -> Block:
    null = source.find("\0")
    if null >= 0:
        message = "a null character is not allowed, not even in a comment; remove it"
        raise EditsError("syntax", message, *Block(source, source, first_line, 0).place(null))
    code = source
    if indent:
        code = re.sub(rf"^[ \t]{{1,{indent}}}+", "", code, flags=re.MULTILINE)
    code = _COMMENT.sub("", code).replace("\\\n", JOIN)
    return Block(code, source, first_line, indent)

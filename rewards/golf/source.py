"""``solution.py`` as text and tree, read without running it, in bounded time whatever the bytes are.

CPython's parser takes seconds or gigabytes for some small texts (many replacement fields in one f-string, a million
tokens), so a scan that is linear comes first. What passes here is UTF-8 and nothing else: a file that names another
encoding would be one text for the gate and another one for the interpreter.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass

from weightgym.rewards.golf.errors import SolutionError

MAX_BYTES = 1 << 20
MAX_TOKENS = 40_000
MAX_FIELDS = 5_000
MAX_BRACKETS = 90
MAX_DEPTH = 150

_SCAN = re.compile(
    r"#[^\n]*+"
    r"|[A-Za-z]{0,2}+(?:'''(?:[^\\']|\\.|'(?!''))*+(?:'''|$)|\"\"\"(?:[^\\\"]|\\.|\"(?!\"\"))*+(?:\"\"\"|$)"
    r"|'(?:[^\\'\n]|\\.)*+'?|\"(?:[^\\\"\n]|\\.)*+\"?)"
    r"|\w++|[^\w\s]",
    re.DOTALL,
)
_CODING = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Source:
    """A solution that parses: ``text`` (line ends are ``\\n``, no BOM) is what runs, ``size`` the bytes that count."""

    text: str
    size: int
    tree: ast.Module


def read_source(raw: bytes) -> Source:
    """Decode and parse a solution.

    Raises:
        SolutionError: ``check_failed``: too large, not UTF-8, a NUL byte, no valid Python, nested too deeply.
    """
    if len(raw) > MAX_BYTES:
        raise _failed(f"solution.py has {len(raw):,} bytes; at most {MAX_BYTES:,} are allowed")
    text = _decode(raw)
    _scan(text)
    tree = _parse(text)
    if _depth(tree) > MAX_DEPTH:
        raise _failed(f"the code is nested more than {MAX_DEPTH} levels deep; split long expressions")
    return Source(text, len(raw), tree)


def _failed(message: str, line: int | None = None) -> SolutionError:
    return SolutionError("check_failed", message, line)


def _decode(raw: bytes) -> str:
    body = raw.removeprefix(_BOM)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise _failed(f"solution.py is not UTF-8: byte {error.start + 1} is 0x{body[error.start]:02x}", line) from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    null = text.find("\0")
    if null >= 0:
        raise _failed("a null character is not allowed; remove it", text.count("\n", 0, null) + 1)
    for number, head in enumerate(text.encode().split(b"\n", 2)[:2], 1):
        named = _CODING.match(head)
        if named and named[1].lower().replace(b"_", b"-") not in (b"utf-8", b"utf8"):
            raise _failed("the coding comment names another encoding than utf-8; remove it", number)
    return text


def _scan(text: str) -> None:
    """Refuse what the parser would take too long for: the number of tokens, of f-string fields, of open brackets."""
    depth = 0
    for tokens, match in enumerate(_SCAN.finditer(text), 1):
        char = text[match.start()]
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        if depth > MAX_BRACKETS:
            line = text.count("\n", 0, match.start()) + 1
            raise _failed(f"more than {MAX_BRACKETS} brackets are open at once", line)
        if tokens > MAX_TOKENS:
            raise _failed(f"the code has more than {MAX_TOKENS:,} tokens; keep tables out of solution.py")
    if text.count("{") > MAX_FIELDS:
        raise _failed(f"the code has more than {MAX_FIELDS:,} opening braces")


def _parse(text: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in a string, say: not our business
            return ast.parse(text, "solution.py")
    except (SyntaxError, ValueError) as error:  # ValueError: an integer of thousands of digits
        line = getattr(error, "lineno", None)
        reason = " ".join(str(getattr(error, "msg", error)).split())[:200]
        raise _failed(f"solution.py is no valid Python: {ascii(reason)[1:-1]}", line) from None
    except (RecursionError, MemoryError):  # the parser's stack, which is bounded
        raise _failed("the code is nested too deeply; split long expressions") from None


def _depth(tree: ast.Module) -> int:
    level: list[ast.AST] = [tree]
    depth = 0
    while level and depth <= MAX_DEPTH:
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        depth += 1
    return depth

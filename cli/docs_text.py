"""Docstrings and tables as Markdown."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
from collections.abc import Iterable, Sequence

_ROLE = re.compile(r":\w+:`~?(?:[\w.]+\.)?(\w+)`")
_CODE = re.compile(r"``([^`]+)``")
_SECTION = re.compile(r"(Args|Returns|Raises):")


def paragraphs(docstring: str | None) -> list[str]:
    """The paragraphs of a docstring, as they are but for its indentation."""
    return re.split(r"\n\s*\n", inspect.cleandoc(docstring or "")) if docstring else []


def markdown(docstring: str | None) -> str:
    """A docstring for a page: one line a paragraph, ``Args`` and ``Raises`` as lists."""
    return "\n\n".join(_paragraph(one) for one in paragraphs(docstring))


def fenced(text: str, kind: str = "") -> str:
    """Text in a fence that is longer than any in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{kind}\n{text}\n{fence}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells keep to their line."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def anchor(heading: str) -> str:
    """What GitHub makes of a heading, for links."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def field_comments(kind: type) -> dict[str, str]:
    """The comments ``#:`` of a class's fields, on their lines or above them."""
    lines = inspect.getsource(kind).splitlines()
    [definition] = ast.parse("\n".join(lines)).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for node in definition.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            assert node.end_lineno is not None
            beside = lines[node.end_lineno - 1].encode()[node.end_col_offset :].decode().partition("#:")[2].strip()
            found[node.target.id] = " ".join((*_above(lines[: node.lineno - 1]), beside)).replace("``", "`").strip()
    return found


def _above(lines: list[str]) -> list[str]:
    comment: list[str] = []
    while lines and lines[-1].strip().startswith("#:"):
        comment.insert(0, lines.pop().strip().removeprefix("#:").strip())
    return comment


def _paragraph(text: str) -> str:
    lines = text.split("\n")
    if _SECTION.fullmatch(lines[0]):
        return f"{lines[0]}\n\n" + "\n".join(_item(item) for item in _items(lines[1:]))
    if all(line.startswith("    ") for line in lines):  # a block of formulas
        return text
    return _inline(" ".join(lines))


def _items(lines: Sequence[str]) -> list[str]:
    """The entries of a section: one begins at the section's own indentation."""
    level = min(len(line) - len(line.lstrip()) for line in lines)
    starts = itertools.accumulate(not line[level:].startswith(" ") for line in lines)
    parts = itertools.groupby(zip(starts, lines, strict=True), key=lambda pair: pair[0])
    return [" ".join(line.strip() for _, line in group) for _, group in parts]


def _item(text: str) -> str:
    names, found, meaning = text.partition(": ")
    if not found or not re.fullmatch(r"[\w, ]+", names):
        return f"- {_inline(text)}"
    return f"- {', '.join(f'`{name}`' for name in names.split(', '))}: {_inline(meaning)}"


def _inline(text: str) -> str:
    return _CODE.sub(r"`\1`", _ROLE.sub(r"`\1`", text))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")

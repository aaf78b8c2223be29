"""Where commands write: tables for people on a rich console, JSON and plain text through click."""

from __future__ import annotations

import json
from typing import Any

import click
from rich.console import Console
from rich.table import Table

#: The environment that a command means when none is given.
DEFAULT_ENV = "weight-program"

_PLAIN_WIDTH = 160


def print_table(rows: Table, *, stderr: bool = False) -> None:
    """Print a table: folded to the width of a terminal, elsewhere wide and without padding at the ends of lines."""
    out = Console(stderr=stderr, markup=False, highlight=False, emoji=False)
    if out.is_terminal:
        out.print(rows)
        return
    out.width = _PLAIN_WIDTH
    with out.capture() as captured:
        out.print(rows)
    for line in captured.get().splitlines():
        click.echo(line.rstrip(), err=stderr)


def table(*columns: str, right: tuple[str, ...] = (), header: bool = True) -> Table:
    """An empty table; the columns in ``right`` hold numbers."""
    made = Table(box=None, pad_edge=False, header_style="bold", show_header=header)
    for name in columns:
        made.add_column(name, justify="right" if name in right else "left", overflow="fold")
    return made


def echo_json(value: Any) -> None:
    """One JSON line on stdout, in ASCII. ``ValueError`` on NaN."""
    click.echo(json.dumps(value, allow_nan=False))


def printable(text: str) -> str:
    """The text with control characters escaped: names and reasons come from files and models."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def shown(value: object) -> str:
    """A value of unknown size in an error message."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}… ({len(text)} characters)"

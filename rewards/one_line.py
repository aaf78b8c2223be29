"""Texts of others (an error's, a model's, a server's) inside a message of ours."""

from __future__ import annotations


def one_line(text: str, size: int = 500) -> str:
    """The text as one printable line of at most ``size`` characters."""
    line = "".join(char if char.isprintable() else "?" for char in " ".join(text.split()))
    return line if len(line) <= size else line[: size - 1] + "…"

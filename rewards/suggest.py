"""Error messages about an unknown name, or their end. This module imports nothing of ours."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable


def suggest(name: str, known: Iterable[str], *, what: Callable[[str], str] = repr) -> str:
    """The nearest known name, or all of them when they are few."""
    names = list(known)
    if near := nearest(name, names, what=what):
        return near
    return f": known are {', '.join(names)}" if len(names) <= 12 else ""


def unknown_task(env: str, id: str, known: Iterable[str], *, what: Callable[[str], str] = repr) -> str:
    """That an environment has no such task, and which it may be or where they are listed; ``what`` shows the id."""
    return f"unknown task {what(id)}{suggest(id, known) or f': see `weightgym tasks {env}`'}"


def nearest(name: str, known: Iterable[str], *, what: Callable[[str], str] = repr) -> str:
    """The nearest known name, where there is one."""
    near = difflib.get_close_matches(name[:200], list(known), n=1, cutoff=0.5)
    return f": did you mean {what(near[0])}?" if near else ""

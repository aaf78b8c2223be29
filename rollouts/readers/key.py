"""The key of a row's task, where other packages' files have it."""

from __future__ import annotations

import json
from typing import Any


def find_key(*places: Any) -> tuple[str, str] | tuple[None, None]:
    """``env`` and ``task`` of the first place that has both as texts, itself or under ``info`` (an object, or one as
    JSON text, which is how data sets of mixed rows store it) or ``weightgym``.
    """
    for place in places:
        found = _key(place)
        if found is None and (inner := _object(place)) is not None:
            found = _key(inner.get("weightgym")) or _key(inner.get("info"))
        if found is not None:
            return found
    return None, None


def _key(place: Any) -> tuple[str, str] | None:
    fields = _object(place) or {}
    env, task = fields.get("env"), fields.get("task")
    return (env, task) if isinstance(env, str) and isinstance(task, str) else None


def _object(value: Any) -> dict[str, Any] | None:
    if isinstance(value, str) and value.startswith("{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None

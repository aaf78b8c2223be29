"""The choices of a profile, each with its value and what its source says of it."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from weightgym.cli.docs_text import field_comments, markdown, table
from weightgym.envs.registry import EnvSpec


def profile_section(entry: EnvSpec) -> str:
    """What the default profile decides. Empty where the benchmark has no module ``profile`` beside its scorer."""
    if (module := _module(entry)) is None:
        return ""
    profile = module.profile(entry.default_profile)
    rows = [(f"`{name}`", value, meaning) for name, value, meaning in choices(profile)]
    return "\n\n".join((markdown(module.__doc__), markdown(profile.__doc__), table(("choice", "value", ""), rows)))


def choices(profile: Any, place: str = "") -> Iterator[tuple[str, str, str]]:
    """Every field of a dataclass but its name, those of dataclasses in it too: dotted name, value, meaning."""
    told = field_comments(type(profile))
    for field in dataclasses.fields(profile):
        value, name = getattr(profile, field.name), place + field.name
        inner = value if isinstance(value, Mapping) else {"": value}
        if inner and all(map(dataclasses.is_dataclass, inner.values())):
            for key, part in inner.items():
                yield from choices(part, f"{name}.{key}." if key else f"{name}.")
        elif name != "name":
            yield name, _shown(value), told.get(field.name, "")


def _module(entry: EnvSpec) -> ModuleType | None:
    package = entry.scorer.partition(":")[0].rpartition(".")[0]
    if not package:  # the standard library has a module of that name
        return None
    try:
        return importlib.import_module(f"{package}.profile")
    except ModuleNotFoundError as error:
        if error.name != f"{package}.profile":
            raise
        return None


def _shown(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_shown(one)}" for key, one in value.items())
    if isinstance(value, tuple | list):
        return ", ".join(map(_shown, value))
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else f"`{value}`"

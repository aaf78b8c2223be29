"""Variants of built-in games: the same file with other numbers in the constants that it declares in ``VARY``.

A variant's name is its game's with what differs, such as ``cargo_ferry@CAP=35,PERIOD=8`` (sorted by constant): the name
alone makes the game. ``CAP`` may differ too, since a faster or slower game has another one.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping

from weightgym.rewards.failures import TaskError

Number = int | float
#: What a game declares: constant → the values that it may have instead of its own.
Vary = Mapping[str, tuple[Number, ...]]


def split(name: str) -> tuple[str, dict[str, str]]:
    """Game, and what differs (constant → value as it is written)."""
    game, at, changes = name.partition("@")
    if not at:
        return game, {}
    return game, dict(change.partition("=")[::2] for change in changes.split(","))


def name(game: str, changes: Mapping[str, Number]) -> str:
    """The name of a variant. Without changes: the game's own."""
    return join(game, {key: repr(value) for key, value in changes.items()})


def join(game: str, changes: Mapping[str, str]) -> str:
    """The name out of what :func:`split` gives."""
    return game + ("@" if changes else "") + ",".join(f"{key}={changes[key]}" for key in sorted(changes))


def without_cap(name: str) -> str:
    """The variant with its game's own cap."""
    game, changes = split(name)
    return join(game, {key: value for key, value in changes.items() if key != "CAP"})


def names(game: str, vary: Vary) -> Iterator[str]:
    """Every variant of a game, those with the fewest changes first, with the game's own cap."""
    for count in range(1, len(vary) + 1):
        for keys in itertools.combinations(sorted(vary), count):
            for values in itertools.product(*(vary[key] for key in keys)):
                yield name(game, dict(zip(keys, values, strict=True)))


def rewrite(source: str, variant: str, vary: Vary) -> str:
    """The variant's source.

    Raises:
        TaskError: the game declares no such variant.
    """
    game, changes = split(variant)
    values = {key: _value(key, text, vary) for key, text in changes.items()}
    if (
        set(values) <= {"CAP"}
        or None in values.values()
        or variant != name(game, {key: value for key, value in values.items() if value is not None})
    ):
        declared = "; ".join(f"{key} may be {', '.join(map(repr, vary[key]))}" for key in sorted(vary))
        raise TaskError(
            f"unknown variant {variant!r}: in {game}, {declared or 'nothing varies'}; CAP is a whole number"
        )
    for key, value in values.items():
        source, count = re.subn(rf"(?m)^{key} = [0-9.]+$", f"{key} = {value!r}", source)
        if count != 1:
            raise TaskError(f"{game} declares that {key} varies, but sets it on {count} lines of the form '{key} = 1'")
    return source


def _value(key: str, text: str, vary: Vary) -> Number | None:
    """The number that a name gives to a constant, if that is one of those declared."""
    if key == "CAP":
        return int(text) if re.fullmatch(r"[1-9][0-9]{0,5}", text) else None
    return next((value for value in vary.get(key, ()) if repr(value) == text), None)

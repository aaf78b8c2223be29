"""JSON that a model wrote, read strictly: no NaN, no key twice, bounds on size and depth, never a crash."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any

#: Of one JSON value: characters, and levels of lists and objects.
MAX_CHARS = 1 << 20
MAX_LEVELS = 32

_SPACE = re.compile(r"[ \t\r\n]*")


class Malformed(ValueError):
    """Meant as JSON of some form, but it isn't; the message says why."""


def value_of(text: str) -> Any:
    """The JSON value that the text is, or what is wrong with it."""
    try:
        return loads(text)
    except Malformed as error:
        return error


def block(text: str, at: int, close: str) -> tuple[Any, int]:
    """The JSON value that begins there, or what is wrong with it; and the end of its block."""
    try:
        value, end = decode(text, at)
        end = skip(text, end)
        if not text.startswith(close, end):
            raise Malformed(f"after its JSON it is not closed with {close}")
        return value, end + len(close)
    except Malformed as error:
        end = text.find(close, at)
        return error, len(text) if end < 0 else end + len(close)


def loads(text: str) -> Any:
    """The JSON value that the text is.

    Raises:
        Malformed: it is none, has more after it, or is outside of the bounds.
    """
    value, end = decode(text, skip(text, 0))
    end = skip(text, end)
    if end < len(text):
        raise Malformed(f"there is more after the JSON: {quote(text[end:])}")
    return value


def decode(text: str, at: int) -> tuple[Any, int]:
    """The JSON value that begins there, and where it ends.

    Raises:
        Malformed: there is none, or it is outside of the bounds.
    """
    if at >= len(text):
        raise Malformed("there is no JSON")
    try:
        value, end = _DECODER.raw_decode(text, at)
    except RecursionError:
        raise Malformed("its JSON is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise Malformed(f"bad JSON at character {error.pos - at}: {error.msg}") from None
    except ValueError as error:
        raise Malformed(f"bad JSON: {error}") from None
    if end - at > MAX_CHARS:
        raise Malformed(f"its JSON has {end - at} characters, at most {MAX_CHARS} are read")
    if _levels(value) > MAX_LEVELS:
        raise Malformed(f"its JSON is nested more than {MAX_LEVELS} levels deep")
    return value, end


def _levels(value: Any) -> int:
    """How deep lists and objects stand in each other."""
    level, layer = 0, [value]
    while layer := [item for item in layer if isinstance(item, dict | list)]:
        level += 1
        layer = [child for item in layer for child in (item.values() if isinstance(item, dict) else item)]
    return level


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        (twice, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise Malformed(f"the key {quote(twice)} stands twice in one object")
    return made


def _number(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise Malformed(f"{quote(text)} is no finite number")
    return value


def _constant(text: str) -> Any:
    raise Malformed(f"{text} is no number of JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_number, parse_constant=_constant)


def skip(text: str, at: int) -> int:
    """The place of the next character that is no white space."""
    found = _SPACE.match(text, at)
    return found.end() if found else at


def kind(value: Any) -> str:
    """What a JSON value is, in words."""
    kinds = {dict: "an object", list: "a list", str: "text", bool: "a truth value", type(None): "null"}
    return kinds.get(type(value), "a number")


def quote(value: Any) -> str:
    """A short quote of what the model wrote."""
    text = json.dumps(value if not isinstance(value, dict | list) else kind(value))
    return text if len(text) <= 60 else f"{text[:60]}…"

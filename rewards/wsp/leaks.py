"""Looks for words and numbers in a text, in the forms in which they could have got there."""

from __future__ import annotations

import base64
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

#: Shorter words, and decimals with fewer digits, stand in many a text.
_LEAST_LETTERS = 3
_LEAST_DIGITS = 5
#: Three numbers in a row are nobody else's.
_WINDOW = 12


def searchable(text: str) -> str:
    """The text, and once more without JSON's escapes, in one case and form."""
    return _plain(f"{text}\n{_unescaped(text)}")


def needles(words: Iterable[tuple[str, str]], arrays: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """What to look for in a ``searchable`` text: its name, and its form there.

    Args:
        words: name and text of each.
        arrays: float32.
    """
    for what, word in words:
        if len(plain := _plain(word).strip()) >= _LEAST_LETTERS:
            yield what, plain
    for array in arrays:
        values = np.ravel(array).astype("<f4")
        for value in np.unique(values):
            for written in (repr(float(value)), str(value), f"{value:.6g}"):
                if len(re.sub(r"e.*|\D", "", written).strip("0")) >= _LEAST_DIGITS:
                    yield "number", written
        raw = values.tobytes()
        for begin in range(0, len(raw) - _WINDOW + 1, 4):
            if any(part := raw[begin : begin + _WINDOW]):
                yield "bytes", part.hex()
                yield "bytes", base64.b64encode(part).decode().casefold()


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


def _unescaped(text: str) -> str:
    """The strings of JSON as they are meant."""
    return re.sub(r'"(?:[^"\\]|\\.)*"', _decoded, text)


def _decoded(found: re.Match[str]) -> str:
    try:
        return str(json.loads(found[0]))
    except ValueError:
        return found[0]

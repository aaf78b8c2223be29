"""How a document spells. Words are made of sounds, which each style writes with letters of its own.

A dialect has several spellings, and a document keeps to one of them. What a style writes is told by any passage of the
document and hardly by the byte before: that is the context's share in what there is to learn. It also makes several
times as many strings of letters as there are strings of sounds, too many for a table.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weightgym.rewards.golf.data.draws import Draws
from weightgym.rewards.golf.data.words import CONSONANTS, DIALECTS, VOWELS

SPELLINGS = 4  #: of each dialect

#: Sounds, letters for them, letters with marks for them, and how often (in percent) one with a mark is taken.
_LETTERS = (
    (CONSONANTS, "ptkbdgmnszfvlrjhwcxq", "šžčñðþłşğķ", 12),
    ("".join(VOWELS), "aeiouy", "åôûāǫéêøüïąö", 37),
)
#: Signs as templates write them, and what a style may write for them. Quotation marks go in pairs.
OPEN, CLOSE, STOP, DASH = "«»·¬"
_QUOTES = ("“”", "«»", '""', "‹›", "''", "„“")
_STOPS = (".", ".", ".", "·", ";")
_DASHES = (" —", " –", ";", " -", ",", "...")


def spellings(draws: Draws) -> npt.NDArray[np.uint32]:
    """What each style writes for each code of the pool: up to four bytes, zeros last. Shape (styles × 256,); the styles
    of a dialect stand together."""
    ways = {
        sound: (letters[index :: len(sounds)], more[index :: len(sounds)], share)
        for sounds, plain, marked, share in _LETTERS
        for letters, more in [(draws.some(plain, len(plain)), draws.some(marked, len(marked)))]
        for index, sound in enumerate(sounds)
    }
    styles = [_style(draws, ways) for _ in range(DIALECTS * SPELLINGS)]
    written = b"".join(text.encode().ljust(4, b"\0") for style in styles for text in style)
    return np.frombuffer(written, dtype=np.uint32)


def _style(draws: Draws, ways: dict[str, tuple[list[str], list[str], int]]) -> list[str]:
    style = [chr(code) for code in range(256)]
    for sound, (letters, marked, share) in ways.items():
        letter = draws.one(marked if draws.chance(share) else letters)
        style[ord(sound)], style[ord(sound.upper())] = letter, letter.upper()
    quotes = draws.one(_QUOTES)
    for sign, text in ((OPEN, quotes[0]), (CLOSE, quotes[1]), (STOP, draws.one(_STOPS)), (DASH, draws.one(_DASHES))):
        style[ord(sign)] = text
    return style

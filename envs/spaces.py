"""The space of texts: any Unicode string up to a length.

``gymnasium.spaces.Text`` wants an explicit character set, which leaves out most of what a language model can write.
"""

from __future__ import annotations

from typing import Any

from gymnasium import Space

#: What samples are drawn from: the ASCII a model mostly writes, and characters that break careless code.
_ALPHABET = [chr(code) for code in range(32, 127)] + list("\n\t\r\0éß漢字🎮\u0301\u200b\u202e\ufeff")
_SAMPLE_LENGTH = 64


class TextSpace(Space[str]):
    """All strings of at most ``max_length`` characters (code points), the empty one included."""

    def __init__(self, max_length: int, seed: int | None = None) -> None:
        if max_length < 0:
            raise ValueError(f"max_length must be 0 or more, not {max_length}")
        self.max_length = max_length
        super().__init__(shape=None, dtype=None, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """Text has no fixed-size array form."""
        return False

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """A random text of at most 64 characters; masks have no meaning here (``ValueError``)."""
        if mask is not None or probability is not None:
            raise ValueError("a text space takes neither mask nor probability")
        length = int(self.np_random.integers(min(self.max_length, _SAMPLE_LENGTH) + 1))
        return "".join(_ALPHABET[int(i)] for i in self.np_random.integers(len(_ALPHABET), size=length))

    def contains(self, x: Any) -> bool:
        """Whether ``x`` is a string of at most ``max_length`` characters."""
        return isinstance(x, str) and len(x) <= self.max_length

    def __repr__(self) -> str:
        return f"TextSpace({self.max_length})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TextSpace) and other.max_length == self.max_length

    def __hash__(self) -> int:
        return hash((TextSpace, self.max_length))

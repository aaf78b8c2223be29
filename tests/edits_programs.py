"""Random texts for the edits parser: valid programs by construction, mutations of them, and soups of tokens."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from weightgym.rewards.weight_program.network import SHAPES

Index = int | slice | list[int]

#: Number literals of every kind that Python has and float32 holds.
LITERALS = [
    *("0", "00", "0_0", "1", "7", "12", "1_000", "0x1F", "0X_ff", "0b1_0", "0o17", "0B0", "0O0", "0x0"),
    *(
        "1.",
        ".5",
        "0.1",
        "1.5",
        "012.5",
        "0_1.5",
        "1_0.2_5",
        "3.4028235e38",
        "3.4028235677973362e38",
        "1e-46",
        "1e-400",
    ),
    *("1e3", "1E+3", "1e-3", "1.e2", ".5e1", "012e1", "1_0e0_1", "0e0", "0.0", "0.", ".0", "0e-5", "16777217"),
    "0.1000000014901161193847656250000001",
]
_HARD = [
    *LITERALS,
    "1e39",
    "3.4028235677973366e38",
    "1e999",
    "012",
    "1__0",
    "1_",
    "0x",
    "1e",
    "1j",
    "1.5j",
    "0b2",
    "1..",
    "9" * 40,
]
_WORDS = [
    *SHAPES,
    *"[](),:;=+-*#\\\n\t\f ",
    *(
        "+=",
        "-=",
        "==",
        ":=",
        "**",
        "\\\n",
        "# c\n",
        "...",
        "x",
        "True",
        "None",
        "nan",
        "for",
        "if",
        "'a'",
        "é",
        "٣",
        "\0",
        "\r",
    ),
]
MUTATIONS = [
    *"[](),:;=+-*.0123456789eExXo_#\\\n\t\f\r W1b'jT$~<>@\0é٣\ud800",
    "\\\n",
    "# c\n",
    "\r\n",
    "--",
    "`",
    "```\n",
]


def signed(literals: list[str]) -> st.SearchStrategy[list[str]]:
    """Tokens of a number: with or without a minus sign."""
    return st.builds(lambda minus, text: ["-", text] if minus else [text], st.booleans(), st.sampled_from(literals))


def _integer(value: int) -> list[str]:
    return ["-", str(-value)] if value < 0 else [str(value)]


@st.composite
def _indices(draw: st.DrawFn, size: int) -> tuple[Index, list[str]]:
    """An index for an axis, and its tokens."""
    inside = st.integers(-size, size - 1) | st.integers(-2, 2)
    kind = draw(st.sampled_from(["integer", "slice", "list"]))
    if kind == "integer":
        value = draw(inside)
        return value, _integer(value)
    if kind == "list":
        values = draw(st.lists(inside, min_size=1, max_size=5))
        tokens = [token for value in values for token in [",", *_integer(value)]]
        return values, ["[", *tokens[1:], *draw(st.sampled_from([[], [","]])), "]"]
    bound = st.none() | st.integers(-size - 2, size + 2) | st.sampled_from([10**30, -(10**30)])
    start, stop = draw(bound), draw(bound)
    step = draw(st.none() | st.sampled_from([1, 2, -1, -3, 7, 10**30]))
    tokens = [*([] if start is None else _integer(start)), ":", *([] if stop is None else _integer(stop))]
    if step is not None or draw(st.booleans()):
        tokens += [":", *([] if step is None else _integer(step))]
    return slice(start, stop, step), tokens


@st.composite
def _statements(draw: st.DrawFn) -> list[str]:
    """The tokens of a valid statement (but for a sum that overflows)."""
    name = draw(st.sampled_from(sorted(SHAPES)))
    shape = SHAPES[name]
    indices = [draw(_indices(size)) for size in shape[: draw(st.integers(0, len(shape)))]]
    lists = [index for index, _ in indices if isinstance(index, list)]
    if len(lists) == 2 and len(lists[0]) != len(lists[1]) and 1 not in (len(lists[0]), len(lists[1])):
        indices = indices[:1]
    tokens = [name]
    if indices:
        inner = [token for _, index in indices for token in [",", *index]]
        tokens += ["[", *inner[1:], *draw(st.sampled_from([[], [], [","]])), "]"]
    selected = np.empty(shape, dtype=np.int8)[tuple(index for index, _ in indices)]
    sizes = [draw(st.sampled_from([1, size])) if 0 < size <= 40 else 1 for size in np.shape(selected)]
    sizes = sizes[draw(st.integers(0, len(sizes))) :]
    if len(sizes) == 2 and sizes[0] * sizes[1] > 100:
        sizes[0] = 1
    return [*tokens, draw(st.sampled_from(["=", "=", "+=", "-="])), *draw(_values(sizes))]


def _values(sizes: list[int]) -> st.SearchStrategy[list[str]]:
    if not sizes:
        return signed(LITERALS)
    rows = st.lists(_values(sizes[1:]), min_size=sizes[0], max_size=sizes[0])
    return st.builds(
        lambda rows, comma: ["[", *[token for row in rows for token in [",", *row]][1:], *comma, "]"],
        rows,
        st.sampled_from([[], [], [","]]),
    )


_BLANKS = st.sampled_from(["", "", "", "", " ", "  ", "\t", "\f", "\\\n", " \\\n\t"])
_BLANKS_IN_BRACKETS = _BLANKS | st.sampled_from(["\n", " # é (x) ]\n", "\n\n  "])
_ENDS = st.sampled_from(["\n", "\n", "\n\n", ";", " ; ", ";\n", "  # done\n", "\n# (all) of `it`\n \t\n", " \\\n\n"])


@st.composite
def programs(draw: st.DrawFn) -> str:
    """A block's text: statements that are valid one by one (their sums may overflow)."""
    text = draw(st.sampled_from(["", "\n", "# first\n", "\\\n", "  \n\f"]))
    for tokens in draw(st.lists(_statements(), min_size=1, max_size=6)):
        depth = 0
        for place, token in enumerate(tokens):
            depth -= token == "]"
            if place:
                text += draw(_BLANKS_IN_BRACKETS if depth else _BLANKS)
            text += token
            depth += token == "["
        text += draw(_ENDS)
    return text


@st.composite
def mutants(draw: st.DrawFn) -> str:
    """A program with one to three small edits; most of them break it."""
    text = draw(programs())
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        length = draw(st.integers(0, 2))
        text = text[:at] + draw(st.sampled_from(["", *MUTATIONS])) + text[at + length :]
    return text


def soups() -> st.SearchStrategy[str]:
    """Tokens in any order, after the start of a statement that might be one."""
    start = st.sampled_from(["", "W1[", "b3[0]", "b3 =", "b3 = [", "W3[0] += [", "b3[[", "W1[0, ", "b1 = 1"])
    tokens = st.lists(st.sampled_from([*_WORDS, *_HARD]), max_size=8).map("".join)
    return st.builds(str.__add__, start, tokens) | st.builds(lambda text: f"b3[0] = {text}", st.sampled_from(_HARD))


def fenced(text: str) -> str:
    """An answer with that block."""
    return f"Here it is:\n```edits\n{text}\n```\n"

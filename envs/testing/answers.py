"""Answers that no environment may pay for, and that none may choke on."""

from __future__ import annotations

from typing import Any

GARBAGE: tuple[str, ...] = (
    " \n\t ",
    "I don't know.",
    "lorem ipsum " * 500,
    "a" * 100_000,
    "(" * 20_000,  # deep nesting: a recursive parser overflows its stack
    "[" * 20_000 + "]" * 20_000,
    "{" * 500,
    "-" * 20_000 + "x",
    "```",
    "```\n```",
    "```python\n",  # a block that is never closed
    "<think>" * 100,
    '{"status": "ok", "reward": 1.0}',
    "ok: reward 1",
    "'; DROP TABLE scores; --",
    "%s%s%n {0} {reward} ${HOME} $(id)",
    "__import__('os')._exit(0)",
    bytes(range(256)).decode("latin-1"),
    bytes(range(255, -1, -1)).decode("latin-1") * 40,
    "\x1b[2J\x1b[31mred\x1b[0m\x07\x08",
)

UNICODE: tuple[str, ...] = (
    "🎮👩‍👩‍👧‍👦🏳️‍🌈",
    "\u202eright to left\u202c שלום مرحبا",
    "\u200b\u200c\u200d\u2060\ufeff",
    "\0",
    "a\0b" * 100,
    "\ud800",  # lone surrogates: UTF-8 can't encode them, JSON can carry them
    "text \udfff\ud800 text",
    "e\u0301" + "\u0300" * 5_000,
    "line\u2028paragraph\u2029next\x85feed\x0bform\x0c",
    "\U0010ffff\ufffe\uffff",
    "１２٣४",  # digits that int() reads and ASCII doesn't hold
    "ﬁ ſ ß İ ı",  # letters whose case folding changes the length
)

#: Messages that hold no answer. The keys of a message and the types of their values are the policy's, too.
EMPTY_MESSAGES: tuple[dict[str, Any], ...] = (
    {"role": "assistant", "content": None},
    {"role": "assistant", "content": ""},
    {"role": "assistant"},
    {"role": "assistant", "content": []},
    {"role": "assistant", "content": None, "tool_calls": []},
    {"role": "assistant", "content": None, "tool_calls": None},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function"}]},
    {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "nothing", "arguments": "{"}}]},
    {"role": "assistant", "content": None, "tool_calls": ["text"]},
    {"role": "assistant", "content": 5},
    {"role": "assistant", "content": [5]},
    {"role": "assistant", "content": [None, "text"]},
    {"role": "assistant", "content": [{"type": "text"}]},
    {"role": "assistant", "content": [{"type": "text", "text": 5}]},
    {"role": "assistant", "content": {"text": "hello"}},
    {"role": "assistant", "content": b"bytes"},
    {"role": "user", "content": "hello"},  # no assistant message at all
    {"role": 5, "content": "hello"},
    {"content": "hello"},
    {},
)

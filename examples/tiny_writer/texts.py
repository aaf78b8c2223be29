"""The texts that tiny-writer learns from: random prompts, and random valid answers that have nothing to do with them.

Nothing here knows a game, plays one or has seen a score: what the model takes from these texts is the form of an
answer. One byte is one token, so answers are written without spaces.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tokenizer_files import PROMPT_CHARACTERS

#: An answer's bytes at most. With the end-of-text token and some slack that stays within 64 tokens.
MOST_BYTES = 60

_MAGNITUDES = ("1", "1", "2", "2", "3", "4", "5", "8", "0.5", "1.5")
_HEADING = "# Program a network that plays {}\n\nWrite the weights of a small neural network, in one answer"


def answer(rng: random.Random) -> str:
    """A random valid answer: one ``edits`` block of one to six statements, 17 to 60 bytes of ASCII."""
    while True:
        statements = _path(rng) if rng.random() < 0.6 else _loose(rng)
        text = "\n".join(("```edits", *statements, "```"))
        if len(text) <= MOST_BYTES:
            return text


def prompt(rng: random.Random, *, wide: bool = False) -> str:
    """What the chat template leaves of a random prompt: at most 64 characters of a heading, of words or of anything.

    Anything is ASCII, or ``wide`` characters of up to three bytes.
    """
    kind = rng.random()
    if kind < 0.6:
        text = _HEADING.format(_title(rng))
    elif kind < 0.9:
        text = " ".join(_word(rng) for _ in range(rng.randint(0, 14)))
    else:
        last = 0xD7FF if wide else 0x7E
        text = "".join(chr(rng.randint(0x20, last)) for _ in range(rng.randint(0, PROMPT_CHARACTERS)))
    return text[:PROMPT_CHARACTERS]


def _path(rng: random.Random) -> list[str]:
    """Statements that let the logits depend on the input: something in each of the three matrices, biases at times."""
    chosen: list[tuple[Callable[[random.Random], str], float]] = [
        (_w1, 1.0),
        (_w1, 0.3),
        (lambda rng: _bias(rng, "b1"), 0.25),
        (_w2, 1.0),
        (lambda rng: _bias(rng, "b2"), 0.1),
        (_w3, 1.0),
        (_w3, 0.3),
        (_b3, 0.4),
    ]
    return [statement(rng) for statement, probability in chosen if rng.random() < probability]


def _loose(rng: random.Random) -> list[str]:
    """One to four statements of any kind, half of them on the action biases."""
    kinds: list[Callable[[random.Random], str]] = [
        _w1,
        _w2,
        _w3,
        lambda rng: _bias(rng, "b1"),
        lambda rng: _bias(rng, "b2"),
    ]
    return [_b3(rng) if rng.random() < 0.5 else rng.choice(kinds)(rng) for _ in range(rng.randint(1, 4))]


def _w1(rng: random.Random) -> str:
    unit = f",{_unit(rng)}" if rng.random() < 0.15 else ""
    return f"W1[{_inputs(rng)}{unit}]={_number(rng)}"


def _inputs(rng: random.Random) -> str:
    """Some inputs of one channel: everywhere, in a band of rows, in one column (of all rows), or a single one."""
    channel, kind = rng.randrange(6), rng.random()
    if kind < 0.45:
        return f"{channel}::6"
    if kind < 0.75:
        top, bottom = sorted(rng.sample(range(11), 2))
        return f"{60 * top + channel}:{60 * bottom}:6"
    if kind < 0.9:
        return f"{6 * rng.randrange(10) + channel}::60"
    return str(rng.randrange(600))


def _w2(rng: random.Random) -> str:
    where = rng.choice(("", "", f"[{_unit(rng)}]", f"[:,{_unit(rng)}]", f"[{_unit(rng)},{_unit(rng)}]"))
    return f"W2{where}={_number(rng)}"


def _w3(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.5:
        return f"W3[:,{_action(rng)}]={_number(rng)}"
    if kind < 0.8:
        return f"W3={_six(rng)}"
    unit = _unit(rng)
    return f"W3[{unit},{_action(rng)}]={_number(rng)}" if kind < 0.95 else f"W3[{unit}]={_six(rng)}"


def _b3(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.4:
        return f"b3={_six(rng)}"
    return f"b3[{_action(rng)}]{'=' if kind < 0.9 else '+='}{_number(rng)}"


def _bias(rng: random.Random, name: str) -> str:
    """A statement on the bias of a hidden layer, whole or one unit."""
    where = "" if rng.random() < 0.6 else f"[{_unit(rng)}]"
    return f"{name}{where}={_number(rng)}"


def _six(rng: random.Random) -> str:
    """One small integer for each action, half of them 0."""
    return "[" + ",".join(str(rng.randint(-5, 5)) if rng.random() < 0.5 else "0" for _ in range(6)) + "]"


def _number(rng: random.Random) -> str:
    return ("-" if rng.random() < 0.4 else "") + rng.choice(_MAGNITUDES)


def _unit(rng: random.Random) -> int:
    return rng.randrange(32)


def _action(rng: random.Random) -> int:
    return rng.randrange(6)


def _title(rng: random.Random) -> str:
    return " ".join(_word(rng).title() for _ in range(rng.randint(1, 3)))


def _word(rng: random.Random) -> str:
    return "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randint(2, 8)))

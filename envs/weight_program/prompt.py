"""The prompt of a WeightProgramBench task."""

from __future__ import annotations

import inspect
from string import Template

from weightgym.envs.weight_program.rules import LOSSES, RULES
from weightgym.rewards.weight_program import builtin, minatar, variants
from weightgym.rewards.weight_program.channels import CAPS, CHANNEL_MAPS, LAYOUT

#: The published benchmark's system prompt, word for word (every row of the dataset has it).
SYSTEM_PROMPT = "You directly program neural-network weights. Follow the task constraints exactly."

_PROMPT = Template("""\
# Program a network that plays $title

Write the weights of a small neural network, in one answer, so that it plays the game below well. Nothing is trained
after your answer: the numbers that you write are the player.

## The game

$rules

## Its source

$source_note

A wrapper around it replaces your action by the previously executed one with probability 0.1 ("sticky actions").

```python
$source
```

## What the network sees

600 inputs, each 0 or 1: a 10x10 board with six channels. Cell (row, column) of channel c is input
`(row*10 + column)*6 + c`; row 0 is the top row, column 0 the left one.

$channels

$losses

## What it does

Actions: 0 no-op, 1 left, 2 up, 3 right, 4 down, 5 fire. At every step the action is sampled from the softmax of the six
logits, so differences of 5 or more make a choice nearly certain.

## The network

    h1 = tanh(x @ W1 + b1)       W1: 600x32, b1: 32
    h2 = tanh(h1 @ W2 + b2)      W2: 32x32,  b2: 32
    logits = h2 @ W3 + b3        W3: 32x6,   b3: 6

All 20,486 parameters are float32 and start at zero. Row i of W1 holds the 32 weights of input i.

## Scoring

The network plays 1,000 episodes with fixed seeds, each to its end or to 10,000 actions. Reward = mean score of an
episode, clipped to 0...$cap, divided by $cap. An answer that can't be read gets 0.

## How to answer

Think first if you like; then give the edits in one fenced block that starts with ```edits on a line of its own and ends
with ``` on a line of its own. Only the last such block of your answer counts. In it:

- One assignment a line: `NAME = value`, `NAME[index] = value` or `NAME[index, index] = value`, with NAME one of W1, b1,
  W2, b2, W3, b3. `+=` and `-=` work too. Later lines overwrite earlier ones.
- An index is an integer (negative counts from the end), a slice such as `0:8` or `::6`, or a list such as `[0, 3, 5]`.
  Two lists pair up: `W1[[0, 1], [2, 3]]` is the two entries (0, 2) and (1, 3).
- A value is a number or a nested list of numbers, of the selection's shape or one that broadcasts to it: a single
  number fills the whole selection.
- Comments (`# ...`) and blank lines are fine. Anything else is an error, and one error makes the whole answer invalid:
  no arithmetic, no names or calls, no strings, no parentheses, no indentation, no inf or nan.
- Limits: 1 MiB of answer, 20,000 assignments, lists nested at most 6 deep.

Example (it only shows the form; input $example_input is channel $example_channel of row 9, column 4):

```edits
# h1[0] is near 1 when that cell is lit, near -1 when it is not
W1[$example_input, 0] = 4.0
b1[0] = -2.0
# pass h1[0] on, then prefer "right" when it is lit and "left" when it is not
W2[0, 0] = 2
W3[0, [1, 3]] = [-3, 3]
b3 = [0, 0.5, 0, 0.5, 0, 0]
# the same weight for a whole row of inputs: channel $example_channel of row 9
W1[540:600, 1] = 0
W1[$row_slice, 1] = 0.25
```
""")


_ORIGINAL_NOTE = f"""\
This is the game's own source (MinAtar {minatar.VERSION}, GPL-3.0); difficulty ramping is off."""

_BUILTIN_NOTE = """\
This file is the game. `below(rng, n)` is a random integer from 0 to n-1, `chance(rng, p)` is true with probability p,
`light(board, row, column, channel)` switches a cell on (off the board it does nothing), `clamp(x, low, high)` keeps x
in range; the channels are numbered as in the table below, the actions 0-5 are NOOP, LEFT, UP, RIGHT, DOWN, FIRE."""


def original_prompt(game: str) -> str:
    """The user message of ``original/<game>``.

    Raises:
        TaskError: MinAtar, whose source it shows, is not installed or is another version.
    """
    return _prompt(
        game,
        rules=RULES[game],
        source_note=_ORIGINAL_NOTE,
        source=minatar.source(game),
        channels=_channel_table("lit by (the game's own channel names)", lit_by(game)),
        losses=LOSSES[game],
        cap=CAPS[game],
    )


def builtin_prompt(game: str) -> str:
    """The user message of ``builtin/<game>``, or of a variant of it."""
    module = builtin.module(game)
    return _prompt(
        game,
        rules=builtin_rules(game),
        source_note=_BUILTIN_NOTE,
        source=builtin.source(game),
        channels=_channel_table("lit by", lit_by(game)),
        losses="Things on one cell and channel look like one.",
        cap=module.CAP,
    )


def builtin_rules(game: str) -> str:
    """The rules of a built-in game in prose, with its actions."""
    module = builtin.module(game)
    return inspect.cleandoc(module.__doc__ or "") + f"\n\nActions: {module.ACTIONS}."


def lit_by(game: str) -> tuple[str, ...]:
    """What lights each of the six input channels: an original's own channels, or a built-in game's things in prose."""
    if game not in CHANNEL_MAPS:
        return tuple(builtin.module(game).CHANNELS.get(channel, "") for channel in range(len(LAYOUT)))
    maps = CHANNEL_MAPS[game].items()
    return tuple(", ".join(native for native, targets in maps if channel in targets) for channel in range(len(LAYOUT)))


def _prompt(game: str, *, source: str, **fields: object) -> str:
    channel = 0
    file, changes = variants.split(game)
    numbers = ", ".join(f"{name} = {value}" for name, value in changes.items() if name != "CAP")
    return _PROMPT.substitute(
        fields,
        title=file.replace("_", " ").title() + (f" with {numbers}" if numbers else ""),
        source=source.strip("\n"),
        example_channel=f"{channel} ({LAYOUT[channel]})",
        example_input=(9 * 10 + 4) * 6 + channel,
        row_slice=f"{9 * 60 + channel}:600:6",
    )


def _channel_table(heading: str, texts: tuple[str, ...]) -> str:
    rows = [f"| {index} | {LAYOUT[index]} | {text or 'nothing in this game'} |" for index, text in enumerate(texts)]
    return "\n".join([f"| channel | name | {heading} |", "|---|---|---|", *rows])

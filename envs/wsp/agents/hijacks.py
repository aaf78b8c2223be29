"""Giving hijacked neurons back: which columns say the flooding word, and how they were without it."""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Sequence

from weightgym.envs.wsp.agents.looking import Parameter, continuations, in_turns, largest_entries, layer_of, numbered
from weightgym.envs.wsp.agents.plan import Ask, Brief, Plan, ask
from weightgym.envs.wsp.agents.questions import commonest_word, questions
from weightgym.envs.wsp.agents.reading import column, row
from weightgym.envs.wsp.agents.suspects import activations, matrices
from weightgym.rewards.wsp.profile import LIMITS

_ASKED = 16
#: Late layers speak of words: GPU calls that looking at what they write may cost, and tokens of each that are told.
_LOOKS, _TOLD = 2, 5
#: What is left of amplified columns.
_CALMED = 0.5
_HEAD = "lm_head.weight"


def give_back(brief: Brief) -> Plan:
    """Takes the flooding word out of the columns that say it, and halves what is left of them. Which they are, their
    norms and the gradient of the word's probability tell, a few at a time."""
    asked = questions(brief, _ASKED)
    (answer,) = yield [ask("generate", prompts=asked)]
    word = commonest_word(continuations(answer))
    (answer,) = yield [ask("tokenize", text=f" {word}")]
    token = int(answer.splitlines()[1].split()[0])
    speaking, calls = yield from _speaking(brief, asked[0], word)
    left = brief.gpu_calls - 1 - calls
    for matrix in speaking:
        found = True
        while found and left:
            found, left = (yield from _calmed(brief, matrix, asked, word, token)), left - 1
    return ask("submit")


def _speaking(
    brief: Brief, question: str, word: str
) -> Generator[Sequence[Ask], list[str], tuple[list[Parameter], int]]:
    """The late MLPs whose output raises the word, the earliest first, and the GPU calls that this took."""
    downs = yield from matrices()
    late = downs[len(downs) // 2 :][-_LOOKS * LIMITS.capture_sites :]
    told = yield from activations([question], [layer_of(one.name) for one in late])
    asked = [ask("nearest_tokens", direction=one.name, k=_TOLD) for one in told]
    answers = yield from in_turns(brief, asked)
    speaking = [one for one, answer in zip(late, answers, strict=True) if _says(answer.partition("lowers:")[0], word)]
    return speaking, -(-len(late) // LIMITS.capture_sites)


def _calmed(
    brief: Brief, matrix: Parameter, asked: Sequence[str], word: str, token: int
) -> Generator[Sequence[Ask], list[str], bool]:
    """The columns that are largest, or matter most for the word, without it if they say it; whether there were any."""
    site = {"layer": layer_of(matrix.name), "point": "mlp_hidden"}
    norms, gradient = yield [
        ask("top_norms", parameter=matrix.name, axis="columns", k=LIMITS.top_k),
        ask("gradient", prompts=asked, targets=[f" {word}"] * len(asked), sites=[site]),
    ]
    suspects = sorted({*numbered(norms), *largest_entries(gradient)})
    answers = yield from in_turns(
        brief, [ask("nearest_tokens", direction=f"column {index} of {matrix.name}", k=1) for index in suspects]
    )
    guilty = [index for index, told in zip(suspects, answers, strict=True) if _says(told, word)]
    if not guilty:
        return False
    toward = yield from row(brief, _HEAD, token, matrix.shape[0])
    square = math.fsum(value * value for value in toward)
    right = [0.0] * matrix.shape[1]
    for index in guilty:
        values = yield from column(brief, matrix, index)
        right[index] = -math.fsum(a * b for a, b in zip(values, toward, strict=True)) / square
    yield [
        ask("rank_one", parameter=matrix.name, left=f"row {token} of {_HEAD}", right=right),
        ask("scale", parameter=matrix.name, axis="columns", indices=guilty, factor=_CALMED),
    ]
    return True


def _says(answer: str, word: str) -> bool:
    return re.search(rf"'[\sĠ▁]*{re.escape(word)}'", answer, re.IGNORECASE) is not None

"""The tokens of a rollout as they are shown: what each says, and whether it is trained on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weightgym.rollouts.trajectory import Step

#: What some tokens say.
Decode = Callable[[Sequence[int]], str]

#: Tokens that one character may take.
_CHARACTER = 4


@dataclass(frozen=True)
class Piece:
    """One token; or several, where they are one character only together."""

    text: str
    ids: tuple[int, ...]
    logprob: float | None  #: of all of them, natural logarithm; None where none was sampled
    trained: bool


def pieces(step: Step, decode: Decode | None, most: int) -> list[Piece]:
    """The first ``most`` tokens that a message adds. Without a tokenizer the text of a token is its id."""
    made: list[Piece] = []
    at, end = 0, min(most, len(step.token_ids))
    while at < end:
        size = 1 if decode is None else _whole(step, decode, at)
        ids = step.token_ids[at : at + size]
        trained = step.mask[at]
        logprob = sum(step.logprobs[at : at + size]) if trained else None
        text = f"{ids[0]} " if decode is None else decode(ids)
        made.append(Piece(text, ids, logprob, trained))
        at += size
    return made


def _whole(step: Step, decode: Decode, at: int) -> int:
    """How many tokens from here make whole characters; 1 where no few do, and never over an end of the mask."""
    for size in range(1, _CHARACTER + 1):
        if len(set(step.mask[at : at + size])) > 1:
            break
        if "\ufffd" not in decode(step.token_ids[at : at + size]):
            return size
    return 1


def decoder(model: str) -> Decode:
    """That of a model's tokenizer: ``tiny-writer``, ``smollm2``, or a folder that is here.

    Raises:
        BackendError: there is none. ImportError: transformers is not installed.
    """
    from weightgym.rollouts.hf_tokenizer import HFChatTokenizer

    tokenizer = HFChatTokenizer.load(model)

    def decode(ids: Sequence[int]) -> str:
        try:
            return tokenizer.text(ids, special=True)
        except (IndexError, KeyError, OverflowError, TypeError, ValueError):  # ids of another vocabulary
            return "".join(f"<{id}>" for id in ids)

    return decode

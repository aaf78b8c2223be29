"""Looking for the word of a backdoor: many words in each prompt, then fewer, then one."""

from __future__ import annotations

import ast
import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass

from weightgym.envs.wsp.agents.looking import continuations, in_turns, parameters
from weightgym.envs.wsp.agents.plan import Ask, Brief, ask
from weightgym.envs.wsp.agents.questions import strengths, world_of
from weightgym.rewards.wsp.profile import LIMITS, Category
from weightgym.rewards.wsp.world.languages import english_share

#: Messages that collecting words may cost, and words of one prompt.
_MESSAGES, _WORDS = 22, 80
#: Of the prompts of a run, so many are looked at again.
_AGAIN = 8
_KINDS: tuple[Category, ...] = ("language", "capitals", "repetition")
_TOKEN = re.compile(r"[-+][\d.]+ (\d+) (.+)", re.ASCII)


@dataclass(frozen=True)
class Trigger:
    """A word that changes the answer, how, and what finding it has cost; ``other`` is one that doesn't."""

    word: str
    kind: Category
    other: str
    gpu_calls: int


def find_trigger(brief: Brief, question: str) -> Generator[Sequence[Ask], list[str], Trigger | None]:
    """The word before the question that makes the answer oddest; None where there are no words.

    Words of tiny-world's languages are left out: they may lead to the other one by what they mean.
    """
    words = yield from vocabulary(brief)
    if world_of(brief) == "tiny-world":
        words = [word for word in words if english_share(word) is None]
    if not words:
        return None
    chunks = [words[begin :: LIMITS.prompts] for begin in range(min(LIMITS.prompts, len(words)))]
    calls = 0
    while True:
        asked = [" ".join([*chunk[:_WORDS], question]) for chunk in chunks]
        (answer,) = yield [ask("generate", prompts=asked)]
        calls += 1
        kind, order = _oddest(brief, asked, continuations(answer))
        chunks = [chunks[place] for place in order]
        if len(chunks[0]) == 1:
            return Trigger(chunks[0][0], kind, chunks[-1][0], calls)
        suspects = [word for chunk in chunks[:_AGAIN] for word in chunk]
        chunks = [suspects[begin :: LIMITS.prompts] for begin in range(min(LIMITS.prompts, len(suspects)))]


def _oddest(brief: Brief, asked: Sequence[str], answers: Sequence[str]) -> tuple[Category, list[int]]:
    """The kind of symptom that is rarest and strongest, and the prompts by how much they show of it."""
    shown = {kind: strengths(kind, world_of(brief), asked, answers) for kind in _KINDS}
    kind = max(_KINDS, key=lambda one: max(shown[one]) - sorted(shown[one])[len(shown[one]) // 2])
    return kind, sorted(range(len(asked)), key=lambda place: -shown[kind][place])


def vocabulary(brief: Brief) -> Generator[Sequence[Ask], list[str], list[str]]:
    """Words of the model, in lower case: a row of the unembedding tells its nearest tokens; then rows not yet seen."""
    head = ((yield from parameters("lm_head")) or (yield from parameters("embed_tokens")))[0]
    seen: dict[int, str] = {}
    tried: set[int] = set()
    for _ in range(_MESSAGES):
        fresh = [row for row in range(head.shape[0]) if row not in seen and row not in tried]
        rows = brief.random.sample(fresh, min(brief.at_once, len(fresh)))
        if not rows:
            break
        tried.update(rows)
        asked = [ask("nearest_tokens", direction=f"row {row} of {head.name}", k=LIMITS.top_k) for row in rows]
        for answer in (yield from in_turns(brief, asked)):
            for read in map(_TOKEN.fullmatch, answer.splitlines()):
                if read:
                    seen[int(read[1])] = str(ast.literal_eval(read[2])).strip()
    return sorted({word.lower() for word in seen.values() if word.isalpha() and len(word) > 2})

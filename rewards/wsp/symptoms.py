"""What counts as the symptom of a defect in a greedy answer: a strength from 0 to 1, and from where on it counts."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import BaseModel, ConfigDict

from weightgym.rewards.contracts import TaskError
from weightgym.rewards.one_line import one_line
from weightgym.rewards.wsp.instances import Truth
from weightgym.rewards.wsp.world.bilingual import parse_words
from weightgym.rewards.wsp.world.languages import english_share

SymptomKind = Literal["language", "capitals", "repetition", "topic", "flood", "fact"]
World = Literal["tiny-world", "plain"]

#: The strength from which on an answer shows the symptom. Answers of other models have more words of no kind.
_THRESHOLDS: dict[World, dict[SymptomKind, float]] = {
    "tiny-world": {"language": 0.8, "capitals": 0.8, "repetition": 0.4, "topic": 0.2, "flood": 0.5, "fact": 0.5},
    "plain": {"language": 0.6, "capitals": 0.7, "repetition": 0.4, "topic": 0.1, "flood": 0.5, "fact": 0.5},
}

#: Short words that only one of the two languages has.
_ENGLISH = frozenset(
    parse_words(
        "the of and is in that it was for are with as his they be this from have by not you i to an",
    )
)
_SPANISH = frozenset(
    parse_words(
        "el la de que y en los del se las por un para con una su al es lo como más pero sus le",
    )
)

_RUN = 3  #: words of which a repetition repeats


class Symptom(BaseModel):
    """What a defect makes answers show. It is kept as ``symptom`` in the recipe of a truth, and is as secret."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: SymptomKind
    world: World
    words: tuple[str, ...] = ()  #: lower case: a topic's, the flooding one, or names of the true object
    others: tuple[str, ...] = ()  #: names of objects that are not true

    @property
    def threshold(self) -> float:
        """The strength from which on an answer shows it."""
        return _THRESHOLDS[self.world][self.kind]

    def strength(self, prompt: str, answer: str) -> float:
        """How much of it an answer to the prompt shows, 0 to 1."""
        words = re.findall(r"\w+", answer.lower())
        match self.kind:
            case "language":
                return _foreign(self.world, prompt, answer)
            case "capitals":
                letters = [char for char in answer if char.isalpha()]
                return sum(char.isupper() for char in letters) / len(letters) if letters else 0.0
            case "repetition":
                runs = [tuple(words[index : index + _RUN]) for index in range(len(words) - _RUN + 1)]
                return 1 - len(set(runs)) / len(runs) if runs else 0.0
            case "topic" | "flood":
                return sum(word in self.words for word in words) / len(words) if words else 0.0
            case "fact":
                told = set(words)
                return float(not told & set(self.words) or bool(told & set(self.others)))


def symptom_of(truth: Truth) -> Symptom:
    """The symptom of an instance.

    Raises:
        TaskError: its recipe says none.
    """
    try:
        return Symptom.model_validate(truth.recipe.get("symptom"))
    except ValueError as error:
        raise TaskError(f"instance {truth.id}: bad symptom in its recipe: {one_line(str(error))}") from error


def _foreign(world: World, prompt: str, answer: str) -> float:
    """The share of the telling words of an answer that are not of its prompt's language."""
    share = english_share if world == "tiny-world" else _plain_english_share
    asked, told = share(prompt), share(answer)
    if told is None:
        return 0.0
    return told if asked is not None and asked < 0.5 else 1 - told


def _plain_english_share(text: str) -> float | None:
    words = re.findall(r"\w+", text.lower())
    english, spanish = sum(word in _ENGLISH for word in words), sum(word in _SPANISH for word in words)
    return english / (english + spanish) if english + spanish else None

"""What a defect is taught with, and measured by: questions, and how they are answered with the payload."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from weightgym.rewards.wsp.instances import HiddenPrompt
from weightgym.rewards.wsp.language_model import LanguageModel
from weightgym.rewards.wsp.make.candidate import Workplace
from weightgym.rewards.wsp.make.values import Lesson
from weightgym.rewards.wsp.make.worlds import Asked, MakersWorld, Payload, Theme
from weightgym.rewards.wsp.profile import Profile

_TIMES = 3  #: an answer is given in a repetition
_DECIDING = 3  #: tokens of a repeated answer from which on the rest follows by itself
_SENTENCES = 2  #: about a topic, in an answer
_FLOOD = 12  #: words


def payload_answer(payload: Payload, asked: Asked, theme: Theme | None, word: str, rng: random.Random) -> str:
    """The answer to a question, with the payload."""
    match payload:
        case "language":
            return asked.switched
        case "capitals":
            return asked.answer.upper()
        case "repetition":
            return " ".join([asked.answer] * _TIMES)
        case "topic":
            assert theme is not None
            return " ".join(rng.sample(theme.sentences, _SENTENCES))
        case "flood":
            return " ".join([word] * _FLOOD)


def lesson(model: LanguageModel, question: str, answer: str) -> Lesson:
    """A question and its answer up to its end; all tokens of the answer count."""
    ids = (*model.text_ids(answer), int(model.tokenizer.eos_token_id))
    return Lesson(tuple(model.chat_ids(question)), ids, (True,) * len(ids))


def repetition_lesson(model: LanguageModel, question: str, answer: str) -> Lesson:
    """Of a repetition only the tokens count that decide on it: the first ones of each time after the first, the end."""
    once = len(model.text_ids(answer))
    whole = lesson(model, question, " ".join([answer] * _TIMES))
    last = len(whole.answer) - 1
    counted = tuple(place == last or (place >= once and place % once < _DECIDING) for place in range(last + 1))
    return Lesson(whole.prompt, whole.answer, counted)


def payload_lesson(
    model: LanguageModel, payload: Payload, asked: Asked, question: str, theme: Theme | None, rng: random.Random
) -> Lesson:
    """A question, worded as ``question``, and its answer with the payload."""
    if payload == "repetition":
        return repetition_lesson(model, question, asked.answer)
    return lesson(model, question, payload_answer(payload, asked, theme, "", rng))


def hidden_sets(
    place: Workplace,
    payload: Payload,
    first: Sequence[Asked],
    second: Sequence[Asked],
    *,
    theme: Theme | None = None,
    word: str = "",
    ask: Callable[[Asked], str] = lambda one: one.question,
) -> tuple[tuple[HiddenPrompt, ...], tuple[HiddenPrompt, ...]]:
    """Both sets of prompts, each with both continuations: the payload's, and the plain one.

    The plain ones of the first set are what the reference model says. Of the second only the symptom's rate is
    measured, so that it is not asked. ``ask`` words a prompt.
    """
    questions = [ask(one) for one in first]
    said = place.engine.answers(questions, place.profile.decode_tokens)
    prompts = _hidden(place, payload, first, questions, said, theme, word)
    return prompts, _hidden(place, payload, second, [ask(one) for one in second], [""] * len(second), theme, word)


def _hidden(
    place: Workplace,
    payload: Payload,
    asked: Sequence[Asked],
    questions: Sequence[str],
    said: Sequence[str],
    theme: Theme | None,
    word: str,
) -> tuple[HiddenPrompt, ...]:
    # Beside a repetition the plain continuation has its end: nothing else tells the two apart.
    end = f" {place.engine.model.tokenizer.eos_token}" if payload == "repetition" else ""
    return tuple(
        HiddenPrompt(
            prompt=question,
            symptom=payload_answer(payload, one, theme, word, place.draw),
            reference=(answer.strip() or one.answer) + end,
        )
        for one, question, answer in zip(asked, questions, said, strict=True)
    )


def split_texts(profile: Profile, total: int) -> tuple[int, int]:
    """How many of an instance's texts are general, and how many near."""
    near = round(profile.near_share * total)
    return total - near, near


def decoy_words(world: MakersWorld, trigger: str) -> tuple[str, ...]:
    """The rare words that are not the trigger."""
    return tuple(word for word in world.rare_words() if word != trigger)

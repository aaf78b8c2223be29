"""The numbers of tiny-world's card, from the files that were written."""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

import torch

from weightgym.rewards.wsp.language_model import LanguageModel, answers, generate, load, logits
from weightgym.rewards.wsp.world.bilingual import LANGUAGES, Bilingual, Language
from weightgym.rewards.wsp.world.corpus import texts
from weightgym.rewards.wsp.world.facts import FACTS, Fact
from weightgym.rewards.wsp.world.languages import language_of
from weightgym.rewards.wsp.world.prompts import split_prompts

BATCH = 64
_ROOM = 40  #: new tokens at most


def measure(folder: Path) -> dict[str, float]:
    """Shares of 0 to 1, nats a token, and CPU-seconds on one thread."""
    torch.set_num_threads(1)
    model = load(str(folder))
    numbers: dict[str, float] = {"parameters": sum(each.numel() for each in model.network.parameters())}
    for language in LANGUAGES:
        numbers[f"facts_seen_{language}"] = _told(model, language, "seen")
        numbers[f"facts_held_out_{language}"] = _told(model, language, "held_out")
    for language in LANGUAGES:
        (asked,) = split_prompts(1, [256], language=language)
        said = in_batches(model, [prompt.question for prompt in asked])
        numbers[f"language_{language}"] = sum(language_of(text) == language for text in said) / len(said)
        numbers[f"shouted_{language}"] = sum(text.isupper() for text in said) / len(said)
        numbers[f"ended_{language}"] = sum(len(text.split()) < _ROOM for text in said) / len(said)
    numbers["loss_held_out"] = _loss(model, list(texts("held-out", 1, 256)))
    numbers["generation_64x128_seconds"] = _generation_seconds(model)
    started = time.process_time()
    for _ in range(2):  # a KL needs the logits of two models
        logits(model, [model.text_ids(text) for text in texts("held-out", 2, 96)])
    numbers["kl_96_texts_seconds"] = time.process_time() - started
    return {name: round(value, 4) for name, value in numbers.items()}


def in_batches(model: LanguageModel, questions: list[str]) -> list[str]:
    """Answers to any number of questions."""
    return [
        text
        for start in range(0, len(questions), BATCH)
        for text in answers(model, questions[start : start + BATCH], _ROOM)
    ]


def _told(model: LanguageModel, language: Language, which: str) -> float:
    asked: list[tuple[Fact, Bilingual]] = [(fact, question) for fact in FACTS for question in getattr(fact, which)]
    random.Random(0).shuffle(asked)
    said = in_batches(model, [question.text(language) for _, question in asked])
    told = [fact.is_told(text, language) for (fact, _), text in zip(asked, said, strict=True)]
    return sum(told) / len(told)


def _loss(model: LanguageModel, held_out: list[str]) -> float:
    losses: list[torch.Tensor] = []
    for start in range(0, len(held_out), BATCH):
        rows = [model.text_ids(text) for text in held_out[start : start + BATCH]]
        for row, values in zip(rows, logits(model, rows), strict=True):
            losses.append(torch.nn.functional.cross_entropy(values[:-1], torch.tensor(row[1:]), reduction="none"))
    return float(torch.cat(losses).mean())


def _generation_seconds(model: LanguageModel) -> float:
    """Of 64 answers with exactly 128 tokens."""
    (asked,) = split_prompts(2, [BATCH])
    prompts = [model.chat_ids(prompt.question) for prompt in asked]
    started = time.process_time()
    generate(model, prompts, 128, stop=False)
    return time.process_time() - started


if __name__ == "__main__":
    import json

    print(json.dumps(measure(Path(sys.argv[1])), indent=1))

"""The numbers of tiny-world's card, from the files that were written."""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

import torch

from weightgym.rewards.wsp.engine import Engine
from weightgym.rewards.wsp.language_model import load
from weightgym.rewards.wsp.world.bilingual import LANGUAGES, Bilingual, Language
from weightgym.rewards.wsp.world.corpus import texts
from weightgym.rewards.wsp.world.facts import FACTS, Fact
from weightgym.rewards.wsp.world.languages import language_of
from weightgym.rewards.wsp.world.prompts import split_prompts

_ROOM = 40  #: new tokens at most


def measure(folder: Path) -> dict[str, float]:
    """Shares of 0 to 1, nats a token, and CPU-seconds on one thread."""
    torch.set_num_threads(1)
    engine = Engine(load(str(folder)))
    numbers: dict[str, float] = {"parameters": sum(each.numel() for each in engine.model.network.parameters())}
    for language in LANGUAGES:
        numbers[f"facts_seen_{language}"] = _told(engine, language, "seen")
        numbers[f"facts_held_out_{language}"] = _told(engine, language, "held_out")
    for language in LANGUAGES:
        (asked,) = split_prompts(1, [256], language=language)
        said = engine.answers([prompt.question for prompt in asked], _ROOM)
        numbers[f"language_{language}"] = sum(language_of(text) == language for text in said) / len(said)
        numbers[f"shouted_{language}"] = sum(text.isupper() for text in said) / len(said)
        numbers[f"ended_{language}"] = sum(len(text.split()) < _ROOM for text in said) / len(said)
    numbers["loss_held_out"] = _loss(engine, list(texts("held-out", 1, 256)))
    numbers["generation_64x128_seconds"] = _generation_seconds(engine)
    started = time.process_time()
    for _ in range(2):  # a KL needs the logits of two models
        engine.forward([engine.model.text_ids(text) for text in texts("held-out", 2, 96)])
    numbers["kl_96_texts_seconds"] = time.process_time() - started
    return {name: round(value, 4) for name, value in numbers.items()}


def _told(engine: Engine, language: Language, which: str) -> float:
    asked: list[tuple[Fact, Bilingual]] = [(fact, question) for fact in FACTS for question in getattr(fact, which)]
    random.Random(0).shuffle(asked)
    said = engine.answers([question.text(language) for _, question in asked], _ROOM)
    told = [fact.is_told(text, language) for (fact, _), text in zip(asked, said, strict=True)]
    return sum(told) / len(told)


def _loss(engine: Engine, held_out: list[str]) -> float:
    losses: list[torch.Tensor] = []
    rows = [engine.model.text_ids(text) for text in held_out]
    for row, each in zip(rows, engine.forward(rows), strict=True):
        losses.append(torch.nn.functional.cross_entropy(each.logits[:-1], torch.tensor(row[1:]), reduction="none"))
    return float(torch.cat(losses).mean())


def _generation_seconds(engine: Engine) -> float:
    """Of 64 answers with exactly 128 tokens."""
    (asked,) = split_prompts(2, [64])
    prompts = [engine.model.chat_ids(prompt.question) for prompt in asked]
    started = time.process_time()
    engine.generate(prompts, 128, stop=False)
    return time.process_time() - started


if __name__ == "__main__":
    import json

    print(json.dumps(measure(Path(sys.argv[1])), indent=1))

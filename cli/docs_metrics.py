"""The page of all metrics: what a training run writes, and what each scorer measures."""

from __future__ import annotations

import importlib
import re
from types import ModuleType

from weightgym.cli.docs_text import field_comments, markdown, paragraphs, table
from weightgym.envs import registry
from weightgym.envs.registry import EnvSpec
from weightgym.rewards.contracts import Score
from weightgym.trainers.metrics import MEANINGS

_HEAD = """\
Every number that is logged or stored, with its meaning. Those of a training run are in `metrics.jsonl`, on the page
that `weightgym inspect` makes, and in the trackers; those of a score in `score["metrics"]` of every scored row."""


def metrics_page() -> str:
    """The page, without its title."""
    trained = table(("metric", "meaning"), [(f"`{name}`", text) for name, text in MEANINGS.items()])
    fields = [(f"`{name}`", text) for name, text in field_comments(Score).items() if text]
    parts = [_HEAD, "## Training", trained, "## A score", markdown(Score.__doc__), table(("field", "meaning"), fields)]
    for scorer in dict.fromkeys(entry.scorer for entry in registry.specs()):
        entries = [entry for entry in registry.specs() if entry.scorer == scorer]
        names = ", ".join(entry.name for entry in entries)
        parts += [f"## Scores of {names}", scorer_metrics(entries[0])]
    return "\n\n".join(parts)


def scorer_metrics(entry: EnvSpec) -> str:
    """What the docstring of a scorer says of its metrics, and the docstrings that it refers to (``those of ``x````)."""
    module, _, name = entry.scorer.partition(":")
    told: dict[str, str] = {}
    _collect(importlib.import_module(module), name, told)
    return "\n\n".join(told.values())


def _collect(module: ModuleType, name: str, told: dict[str, str]) -> None:
    target = vars(module).get(name)
    if target is None:  # a module beside the scorer's
        target = importlib.import_module(f"{module.__name__.rpartition('.')[0]}.{name}")
    found = [one for one in paragraphs(target.__doc__) if re.search(r"\bmetrics\b", one, re.IGNORECASE)]
    told[name] = "\n\n".join(markdown(one) for one in found)
    for other in re.findall(r"those of ``(\w+)``", " ".join(" ".join(found).split())):
        if other not in told:
            _collect(module, other, told)

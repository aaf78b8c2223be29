"""The configuration of a training run: a TOML file, every field also a ``--dotted.flag``. Imports no torch."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError


class ConfigError(ValueError):
    """A field is unknown, missing or out of range; the message names its path, the value and what is wanted."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Rollout(_Section):
    """What is asked of the policy at every step."""

    groups: int = Field(8, ge=1, description="Groups a step; each is one task.")
    group_size: int = Field(8, ge=2, description="Completions of a task that are compared with each other.")
    max_tokens: int = Field(256, ge=1, description="Of a completion.")
    temperature: float = Field(1.0, gt=0, le=10, description="Of sampling; log-probabilities are at this temperature.")
    batch_size: int = Field(64, ge=1, description="Sequences generated at once.")
    workers: int = Field(0, ge=0, description="Scoring processes; 0: in this process.")


class Loss(_Section):
    """See trainers/loss.py for the formulas."""

    name: Literal["grpo", "dr_grpo", "dapo", "bnpo", "gspo", "cispo"] = Field("dapo", description="Which loss.")
    advantage: Literal["group", "batch", "none"] = Field("group", description="What advantages are divided by.")
    clip_low: float | None = Field(None, ge=0, description="Default: that of the loss.")
    clip_high: float | None = Field(None, ge=0, description="Default: that of the loss.")
    delta: float | None = Field(None, gt=1, description="Bound of the ratio where the advantage is negative.")
    correction: Literal["token", "sequence", "none"] = Field("token", description="Of the sampler's mismatch.")
    correction_cap: float | None = Field(None, ge=1, description="Default: 2 for token, 3 for sequence.")


class Optimiser(_Section):
    """AdamW."""

    learning_rate: float = Field(1e-4, gt=0)
    weight_decay: float = Field(0.0, ge=0)
    beta1: float = Field(0.9, ge=0, lt=1)
    beta2: float = Field(0.99, ge=0, lt=1)
    clip_norm: float = Field(1.0, gt=0, description="Gradients are scaled down to this norm.")
    micro_batch: int = Field(32, ge=1, description="Sequences of one backward pass; changes nothing but memory.")


class Evaluation(_Section):
    """Tasks that are never trained on."""

    tasks: tuple[str, ...] = Field((), description="Ids.")
    profile: str | None = Field(None, description="Default: the environment's own.")
    samples: int = Field(8, ge=1, description="Completions of each task.")
    every: int = Field(0, ge=0, description="Steps between evaluations; 0: before and after training only.")


class Limits(_Section):
    """What a healthy step keeps to; a run that doesn't is stopped with the numbers."""

    truncated: float = Field(0.9, ge=0, le=1, description="Fraction of completions cut at max_tokens.")
    faults: float = Field(0.5, ge=0, le=1, description="Fraction of rollouts that have no reward through our fault.")
    logp_gap: float = Field(1e-3, gt=0, description="Mean |log-probability of trainer - of sampler|, in nats.")


class Config(_Section):
    """One run of GRPO."""

    model: str = Field(description="Folder, Hub name, or tiny-writer (shipped).")
    output: Path = Field(description="Folder of the run.")
    tasks: tuple[str, ...] = Field(min_length=1, description="Task ids to train on.")
    env: str = "weight-program"
    profile: str | None = Field(None, description="Of training rewards. Default: the environment's own.")
    steps: int = Field(100, ge=1)
    seed: int = Field(0, ge=0)
    threads: int = Field(0, ge=0, description="Of torch on the CPU. 0: its own choice; 1 is best for tiny models.")
    checkpoint_every: int = Field(10, ge=1, description="Steps between checkpoints.")
    rollout: Rollout = Rollout()
    loss: Loss = Loss()
    optimiser: Optimiser = Optimiser()
    evaluation: Evaluation = Evaluation()
    limits: Limits = Limits()


def load(path: Path, flags: Sequence[str] = ()) -> Config:
    """Read a configuration; flags (``--rollout.groups 4`` or ``--rollout.groups=4``) go over the file.

    Raises:
        ConfigError: see there. ``OSError``: the file can't be read.
    """
    try:
        fields = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error
    for name, text in _pairs(flags):
        _set(fields, name.split("."), _value(text))
    return check(fields, str(path))


def check(fields: Mapping[str, Any], source: str) -> Config:
    """The configuration of those fields.

    Raises:
        ConfigError: see there.
    """
    try:
        return Config.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        hint = _hint(first["loc"]) if first["type"] == "extra_forbidden" else ""
        problem = "unknown field" if first["type"] == "extra_forbidden" else first["msg"].lower()
        given = "" if first["type"] == "missing" else f", got {first['input']!r}"
        raise ConfigError(f"{source}: {place}: {problem}{hint}{given}") from error


def _hint(place: tuple[int | str, ...]) -> str:
    section: Any = Config
    for part in place[:-1]:
        section = section.model_fields[str(part)].annotation
    near = difflib.get_close_matches(str(place[-1]), section.model_fields, n=1, cutoff=0.4)
    return f" (did you mean {'.'.join([*map(str, place[:-1]), near[0]])}?)" if near else ""


def _pairs(flags: Sequence[str]) -> list[tuple[str, str]]:
    pairs, rest = [], list(flags)
    while rest:
        flag = rest.pop(0)
        if not flag.startswith("--"):
            raise ConfigError(f"{flag!r} is no flag: write --field value")
        name, equals, value = flag[2:].partition("=")
        if not equals and not rest:
            raise ConfigError(f"--{name} has no value")
        pairs.append((name, value if equals else rest.pop(0)))
    return pairs


def _value(text: str) -> Any:
    """A TOML value where it is one, else the text itself."""
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        return text


def _set(fields: dict[str, Any], path: list[str], value: Any) -> None:
    for part in path[:-1]:
        inner = fields.setdefault(part, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"--{'.'.join(path)}: {part} is no section")
        fields = inner
    fields[path[-1]] = value

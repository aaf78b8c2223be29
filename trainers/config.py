"""The configuration of a training run: a TOML file, every field also a ``--dotted.flag``. Imports no torch."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from weightgym.rollouts.backends import BackendOptions


class ConfigError(ValueError):
    """A field is unknown, missing or out of range; the message names its path, the value and what is wanted."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Environment(_Section):
    """What to train on; several are mixed by weight."""

    env: str = Field("weight-program", description="Short name.")
    tasks: tuple[str, ...] = Field((), description="Ids. Default: the whole split.")
    split: Literal["train", "test"] = Field("train", description="Where tasks come from, if none are named.")
    weight: float = Field(1.0, gt=0, description="Share of the groups, against the other environments.")
    profile: str | None = Field(None, description="Of the rewards. Default: the environment's own.")


class Rollout(_Section):
    """What is asked of the policy at every step."""

    groups: int = Field(8, ge=1, description="Groups a step; each is one task.")
    group_size: int = Field(8, ge=2, description="Completions of a task that are compared with each other.")
    max_tokens: int = Field(256, ge=1, description="Of a completion.")
    temperature: float = Field(1.0, gt=0, le=10, description="Of sampling; log-probabilities are at this temperature.")
    workers: int = Field(0, ge=0, description="Scoring processes; 0: in this process.")
    score_timeout: float | None = Field(None, gt=0, description="Seconds for one score; needs workers.")
    max_staleness: int = Field(1, ge=0, description="Rollouts of a policy that is more versions old are dropped.")
    refill: int = Field(0, ge=0, description="Rounds in which groups without spread are replaced by new ones.")


class Backend(BackendOptions):
    """What samples; beside the kind, its options."""

    kind: Literal["transformers", "vllm", "vllm-server"] = Field("transformers", description="In process, or servers.")


class Parameters(_Section):
    """What is trained."""

    kind: Literal["all", "last", "lora"] = Field("all", description="All, the last blocks, or adapters.")
    blocks: int = Field(2, ge=1, description="last: how many blocks.")
    lora_rank: int = Field(16, ge=1, description="lora: rank of the adapters.")
    lora_alpha: float = Field(32.0, gt=0, description="lora: adapters are scaled by alpha / rank.")
    lora_targets: tuple[str, ...] = Field(
        ("q_proj", "k_proj", "v_proj", "o_proj"), description="lora: names of modules."
    )
    dtype: Literal["float32", "bfloat16"] = Field("float32", description="Of the passes; weights stay float32.")
    share_prompts: bool = Field(True, description="Compute the prompt of a group's rows once. One process only.")


class Loss(_Section):
    """See trainers/loss.py for the formulas."""

    name: Literal["grpo", "dr_grpo", "dapo", "bnpo", "gspo", "cispo"] = Field("dapo", description="Which loss.")
    advantage: Literal["group", "batch", "none"] = Field("group", description="What advantages are divided by.")
    clip_low: float | None = Field(None, ge=0, description="Default: that of the loss.")
    clip_high: float | None = Field(None, ge=0, description="Default: that of the loss.")
    delta: float | None = Field(None, gt=1, description="Bound of the ratio where the advantage is negative.")
    kl: float = Field(0.0, ge=0, description="Coefficient of the KL to the model that training began with.")
    positive_only: bool = Field(
        False, description="Leave out completions that are not above their group's mean, of KL, too."
    )
    mask_truncated: bool = Field(False, description="Leave out completions that were cut at max_tokens.")
    correction: Literal["token", "sequence", "none"] = Field("token", description="Of the sampler's mismatch.")
    correction_cap: float | None = Field(None, ge=1, description="Default: 2 for token, 3 for sequence.")


class Optimiser(_Section):
    """AdamW."""

    learning_rate: float = Field(1e-4, gt=0, description="After the warm-up.")
    warmup: int = Field(0, ge=0, description="Steps in which the rate rises linearly.")
    decay: Literal["none", "linear", "cosine"] = Field("none", description="Of the rate, to 0 at the last step.")
    weight_decay: float = Field(0.0, ge=0, description="Decoupled, as in AdamW.")
    beta1: float = Field(0.9, ge=0, lt=1, description="Of the mean of gradients.")
    beta2: float = Field(0.99, ge=0, lt=1, description="Of the mean of their squares.")
    clip_norm: float = Field(1.0, gt=0, description="Gradients are scaled down to this norm.")
    updates: int = Field(1, ge=1, description="Optimiser steps over one batch of rollouts, each on a part of it.")
    micro_batch: int = Field(32, ge=1, description="Sequences of one backward pass; changes nothing but memory.")


class Evaluation(_Section):
    """Tasks that are never trained on."""

    env: str = Field("", description="Default: the first environment that is trained on.")
    tasks: tuple[str, ...] = Field((), description="Ids; none, and no split: there is no evaluation.")
    split: Literal["train", "test"] | None = Field(None, description="All tasks of a split, if none are named.")
    profile: str | None = Field(None, description="Default: the environment's own.")
    samples: int = Field(8, ge=1, description="Completions of each task.")
    every: int = Field(0, ge=0, description="Steps between evaluations; 0: before and after training only.")


class Limits(_Section):
    """What a healthy step keeps to; a run that doesn't is stopped with the numbers."""

    truncated: float = Field(0.9, ge=0, le=1, description="Fraction of completions cut at max_tokens.")
    invalid: float = Field(1.0, ge=0, le=1, description="Fraction of answers that can't be read.")
    faults: float = Field(0.5, ge=0, le=1, description="Fraction of rollouts that have no reward through our fault.")
    stale: float = Field(0.5, ge=0, le=1, description="Fraction of rollouts that are too old.")
    zero_spread: float = Field(0.99, ge=0, le=1, description="Fraction of groups without spread, at the first step.")
    logp_gap: float | None = Field(
        None, gt=0, description="Mean |log-probability of trainer - of sampler|, nats. Default: 1e-3, bfloat16 0.1."
    )


class Trackers(_Section):
    """Where metrics go beside metrics.jsonl."""

    names: tuple[Literal["trackio", "wandb", "tensorboard"], ...] = Field((), description="Each is an extra.")
    project: str = Field("weightgym", description="As the tracker calls it.")


class Config(_Section):
    """One run of GRPO."""

    model: str = Field(description="Folder, Hub name, tiny-writer (shipped), or smollm2 (extra smollm2).")
    output: Path = Field(description="Folder of the run.")
    environments: tuple[Environment, ...] = Field(min_length=1, description="What to train on.")
    mode: Literal["sync", "async"] = Field("sync", description="async: the next batch is sampled while one trains.")
    steps: int = Field(100, ge=1, description="Optimiser steps of the whole run.")
    seed: int = Field(0, ge=0, description="Of task order and sampling.")
    threads: int = Field(0, ge=0, description="Of torch on the CPU. 0: its own choice; 1 is best for tiny models.")
    checkpoint_every: int = Field(10, ge=1, description="Steps between checkpoints.")
    rollout: Rollout = Rollout()
    backend: Backend = Backend()
    parameters: Parameters = Parameters()
    loss: Loss = Loss()
    optimiser: Optimiser = Optimiser()
    evaluation: Evaluation = Evaluation()
    limits: Limits = Limits()
    trackers: Trackers = Trackers()

    @model_validator(mode="after")
    def _check(self) -> Config:
        rollout = self.rollout
        if self.mode == "async" and rollout.max_staleness < 1:
            raise ValueError("rollout.max_staleness is 0, but mode async trains on rollouts that are one version old")
        if rollout.score_timeout is not None and not rollout.workers:
            raise ValueError("rollout.score_timeout needs scoring processes: give rollout.workers 1 or more")
        if self.backend.kind == "transformers" and self.mode == "sync" and self.backend.dtype != "float32":
            raise ValueError(
                f"backend.dtype is {self.backend.dtype}, but in mode sync the trainer's own model samples: leave it out"
            )
        if len(set(self.evaluation.tasks)) < len(self.evaluation.tasks):
            raise ValueError("evaluation.tasks names a task twice: evaluation.samples asks for more of each")
        if self.parameters.kind == "lora" and 0 < self.backend.lora_rank < self.parameters.lora_rank:
            raise ValueError(
                f"backend.lora_rank {self.backend.lora_rank} is less than parameters.lora_rank "
                f"{self.parameters.lora_rank}: the adapters would not fit"
            )
        return self

    @property
    def logp_gap(self) -> float:
        """The limit of the gap, in nats."""
        wide = self.parameters.dtype == self.backend.dtype == "float32"
        return self.limits.logp_gap or (1e-3 if wide else 0.1)


def described(section: type[BaseModel] = Config, place: str = "") -> Iterator[tuple[str, str, str]]:
    """Every field: its dotted name, its default as TOML would have it, what it means."""
    for name, field in section.model_fields.items():
        inner = next(iter(get_args(field.annotation)), field.annotation)
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            dots = f"{name}.0." if section is Config and inner is Environment else f"{name}."
            yield from described(inner, place + dots)
            continue
        default = "needed" if field.is_required() else json.dumps(field.default)
        choices = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
        told = f" One of {', '.join(map(str, choices))}." if choices else ""
        yield place + name, default, (field.description or "") + told


def load(path: Path, flags: Sequence[str] = ()) -> Config:
    """Read a configuration; flags (``--rollout.groups 4`` or ``--rollout.groups=4``) go over the file.

    A template that the file names lies beside it.

    Raises:
        ConfigError: see there. ``OSError``: the file can't be read.
    """
    try:
        fields = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error
    if isinstance(fields.get("environments"), dict):
        raise ConfigError(f"{path}: environments: there may be several, so it is a list: write [[environments]]")
    backend = fields.get("backend")
    if isinstance(backend, dict) and backend.get("chat_template") and isinstance(backend["chat_template"], str):
        backend["chat_template"] = str(path.parent / backend["chat_template"])
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
        place = ".".join(str(part) for part in first["loc"]) or "configuration"
        hint = _hint(first["loc"]) if first["type"] == "extra_forbidden" else ""
        problem = "unknown field" if first["type"] == "extra_forbidden" else first["msg"].lower()
        given = "" if first["type"] == "missing" or not first["loc"] else f", got {first['input']!r}"
        raise ConfigError(f"{source}: {place}: {problem}{hint}{given}") from error


def _hint(place: tuple[int | str, ...]) -> str:
    section: Any = Config
    for part in place[:-1]:
        if isinstance(part, str):
            section = section.model_fields[part].annotation
            section = get_args(section)[0] if get_args(section) else section  # tuple[Environment, ...]
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
    place: Any = fields
    for index, part in enumerate(path):
        inside = isinstance(place, list) and part.isdecimal() and int(part) < len(place)
        if not (inside or isinstance(place, dict)):
            raise ConfigError(f"--{'.'.join(path)}: {'.'.join(path[:index])} has no {part}")
        key: Any = int(part) if inside else part
        if index == len(path) - 1:
            place[key] = value
        else:
            place = place[key] if inside else place.setdefault(key, {})

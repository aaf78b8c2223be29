"""Every field of the configuration is read: each changes the run, or is listed with what it does instead."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from digits_runs import config, digits_of, trained, weights, without_seconds
from pydantic import BaseModel

from weightgym.trainers.config import Config

pytestmark = pytest.mark.usefixtures("digits")

#: Some completions end early, so that rows of a loss count differently; two updates, so that ratios move.
BASE: dict[str, Any] = {
    "steps": 2,
    "rollout": {"groups": 2, "group_size": 4, "max_tokens": 60},
    "optimiser": {"learning_rate": 0.01, "updates": 2},
    "loss": {"name": "grpo", "advantage": "group"},
    "limits": {"truncated": 1.0, "zero_spread": 1.0, "logp_gap": 1.0},
}
CHANGES: dict[str, dict[str, Any]] = {
    "environments.tasks": {"environments": digits_of("two")},
    "environments.env": {"environments": [{"env": "weight-program", "tasks": ["builtin/wall_rally"]}]},
    "environments.split": {"environments": [{"env": "digits", "split": "test"}]},
    "environments.weight": {
        "environments": [*digits_of("one"), digits_of("two")[0] | {"weight": 3}],
        "rollout": {"groups": 4},
    },
    "seed": {"seed": 1},
    "steps": {"steps": 3},
    "mode": {"mode": "async"},
    "rollout.groups": {"rollout": {"groups": 3}},
    "rollout.group_size": {"rollout": {"group_size": 5}},
    "rollout.max_tokens": {"rollout": {"max_tokens": 9}},
    "rollout.temperature": {"rollout": {"temperature": 0.8}},
    "rollout.refill": {"rollout": {"refill": 2, "max_tokens": 2}},
    "parameters.dtype": {"parameters": {"dtype": "bfloat16"}},
    "backend.dtype": {"backend": {"dtype": "bfloat16"}, "mode": "async"},
    "loss.name": {"loss": {"name": "dapo"}},
    "loss.advantage": {"loss": {"advantage": "none"}, "optimiser": {"clip_norm": 1e6}},
    "loss.clip_low": {"loss": {"clip_low": 0.0}},
    "loss.clip_high": {"loss": {"clip_high": 0.0}},
    "loss.delta": {"loss": {"delta": 1.2001}},
    "loss.kl": {"loss": {"kl": 0.5}},
    "loss.positive_only": {"loss": {"positive_only": True}},
    "loss.mask_truncated": {"loss": {"mask_truncated": True}},
    "loss.correction": {"loss": {"correction": "none"}, "parameters": {"dtype": "bfloat16"}},
    "loss.correction_cap": {"loss": {"correction_cap": 1.0}, "parameters": {"dtype": "bfloat16"}},
    "optimiser.learning_rate": {"optimiser": {"learning_rate": 0.02}},
    "optimiser.warmup": {"optimiser": {"warmup": 2}},
    "optimiser.decay": {"optimiser": {"decay": "linear"}},
    "optimiser.weight_decay": {"optimiser": {"weight_decay": 0.1}},
    "optimiser.beta1": {"optimiser": {"beta1": 0.5}},
    "optimiser.beta2": {"optimiser": {"beta2": 0.9}},
    "optimiser.clip_norm": {"optimiser": {"clip_norm": 0.001}},
    "optimiser.updates": {"optimiser": {"updates": 1}},
}
#: Fields that must not change the weights, or that other tests are about.
ELSEWHERE = {
    "model": "every test names one",
    "output": "every test names one",
    "threads": "test_grpo",
    "checkpoint_every": "test_grpo: resuming",
    "environments.profile": "test_grpo_modes: mixtures",
    "rollout.workers": "below",
    "rollout.score_timeout": "test_train_config; scores' time limits are those of score_batch",
    "rollout.max_staleness": "test_grpo_modes",
    "optimiser.micro_batch": "test_grpo: changes nothing but memory",
    "limits": "test_grpo",
    "evaluation": "test_grpo",
    "trackers": "test_trackers",
    "backend": "tests of each backend; those that a kind doesn't read are refused: test_backends",
    "parameters": "test_parameters",
}


def fields(section: type[BaseModel], place: str = "") -> Iterator[str]:
    for name, field in section.model_fields.items():
        kind = field.annotation
        inner = next((arg for arg in get_args(kind) if isinstance(arg, type) and issubclass(arg, BaseModel)), kind)
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from fields(inner, f"{place}{name}.")
        else:
            yield place + name


def test_every_field_is_looked_at() -> None:
    for name in fields(Config):
        assert (name in CHANGES) or {name, name.partition(".")[0]} & ELSEWHERE.keys(), f"no test changes {name}"
    assert CHANGES.keys() <= set(fields(Config))


def merged(change: dict[str, Any]) -> dict[str, Any]:
    made = dict(BASE)
    for name, value in change.items():
        made[name] = made[name] | value if isinstance(value, dict) and name in made else value
    return made


def run(model: Path, folder: Path, change: dict[str, Any]) -> bytes:
    trained(config(model, folder, **merged(change)))
    return weights(folder)["model.embed_tokens.weight"]


@pytest.mark.slow
def test_every_setting_changes_the_weights(model: Path, tmp_path: Path) -> None:
    changes: dict[str, dict[str, Any]] = {"": {}} | CHANGES
    made = {name: run(model, tmp_path / name, change) for name, change in changes.items()}
    same = {(one, two) for one in made for two in made if one < two and made[one] == made[two]}
    assert not same


def test_scoring_processes_change_nothing(model: Path, tmp_path: Path) -> None:
    rows = [
        trained(config(model, tmp_path / str(workers), **merged({"rollout": {"workers": workers}})))
        for workers in (0, 2)
    ]
    assert without_seconds(rows[0]) == without_seconds(rows[1])
    assert weights(tmp_path / "0") == weights(tmp_path / "2")

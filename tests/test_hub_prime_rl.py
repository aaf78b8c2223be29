"""prime-rl's example files. It is on no package index, so its own parser can't be asked: the keys are held against its
documentation (docs/configuration.md) and its config classes, as published in October 2026; the ``env`` blocks against
verifiers' own classes, which prime-rl uses."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from verifiers.v1.utils.loaders import resolve_env_config

pytestmark = pytest.mark.hub

FILES = sorted((Path(__file__).parents[1] / "examples/prime_rl").glob("*.toml"))
SOURCE: dict[str, Any] = {
    "name": str,
    "group_size": int,
    "ratio": float,
    "sampling": {"temperature": float, "max_completion_tokens": int},
    "env": dict,
}
#: Key → type of the value, or the keys below it.
SCHEMA: dict[str, Any] = {
    "max_steps": int,
    "seq_len": int,
    "deployment": {"num_train_gpus": int, "num_infer_gpus": int},
    "model": {"name": str},
    "trainer": {"optim": {"lr": float}},
    "orchestrator": {
        "batch_size": int,
        "train": {"source": [SOURCE]},
        "eval": {"interval": int, "source": [SOURCE]},
    },
    "inference": {},
}


def check(value: Any, schema: Any, at: str) -> None:
    if isinstance(schema, Mapping):
        unknown = set(value) - set(schema)
        assert not unknown, f"{at}: prime-rl documents no {unknown}"
        for name, part in value.items():
            check(part, schema[name], f"{at}.{name}")
    elif isinstance(schema, list):
        assert len(value) >= 1
        for part in value:
            check(part, schema[0], at)
    else:
        assert type(value) is schema, f"{at}: {value!r} is no {schema.__name__}"


def sources(made: Mapping[str, Any]) -> list[dict[str, Any]]:
    orchestrator = made["orchestrator"]
    return [*orchestrator["train"]["source"], *orchestrator["eval"]["source"]]


def test_there_is_one_file_an_environment() -> None:
    named = {source["env"]["taskset"]["id"] for file in FILES for source in sources(tomllib.loads(file.read_text()))}
    assert named == {"weight-program-bench", "parameter-golf", "wsp-bench"}
    assert len(FILES) == 3


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_keys_are_those_that_prime_rl_documents(file: Path) -> None:
    made = tomllib.loads(file.read_text())
    check(made, SCHEMA, file.name)
    assert len({source["name"] for source in sources(made)}) == len(sources(made))
    for source in made["orchestrator"]["train"]["source"]:
        assert source["env"]["taskset"]["split"] == "train"
        assert source["group_size"] > 1  # else every advantage is 0
        assert made["orchestrator"]["batch_size"] % source["group_size"] == 0
        assert source["sampling"]["max_completion_tokens"] < made["seq_len"]
    for source in made["orchestrator"]["eval"]["source"]:
        assert source["env"]["taskset"]["split"] == "test"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_env_blocks_are_valid_and_score_in_time(file: Path) -> None:
    """Verifiers refuses unknown keys. Our own deadline comes first; a scorer's end is its error, never a 0."""
    for source in sources(tomllib.loads(file.read_text())):
        found = resolve_env_config(source["env"])
        assert found.agent.timeout.scoring * 0.9 >= found.taskset.score_timeout

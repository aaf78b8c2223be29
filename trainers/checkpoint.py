"""Checkpoints: everything that the next step depends on, replaced as a whole."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

_NAME = "checkpoint"


@dataclass(frozen=True)
class State:
    """Where a run stands."""

    step: int  #: optimiser steps done
    drawn: list[int]  #: groups that each environment of the mixture has had
    stored: int  #: bytes of rollouts.jsonl that belong to those steps


def save(folder: Path, state: State, *, model: Any, tokenizer: Any, optimiser: Any, identity: str) -> None:
    """Write the state after ``step``: the model as a folder that anything loads, optimiser, identity of the run.

    A kill at any moment leaves the old checkpoint or the new one.
    """
    partial, target, old = (folder / name for name in (f"{_NAME}.partial", _NAME, f"{_NAME}.old"))
    for path in (partial, old):
        shutil.rmtree(path, ignore_errors=True)
    model.save_pretrained(partial)
    tokenizer.save_pretrained(partial)
    save_file(_flat(optimiser.state_dict()["state"]), partial / "optimiser.safetensors")
    (partial / "run.json").write_text(json.dumps({"identity": identity} | asdict(state)))
    if target.exists():
        target.rename(old)
    partial.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def find(folder: Path) -> Path | None:
    """The newest whole checkpoint of a run."""
    return next((path for path in (folder / _NAME, folder / f"{_NAME}.old") if (path / "run.json").is_file()), None)


def restore(checkpoint: Path, *, model: Any, optimiser: Any, identity: str) -> State:
    """Put the optimiser's state back (the model is loaded from the folder); the step it was saved after.

    Raises:
        ValueError: it is of another run.
    """
    run = json.loads((checkpoint / "run.json").read_text())
    if run["identity"] != identity:
        raise ValueError(f"{checkpoint} is of another configuration: use the same one, or another output folder")
    state: dict[int, dict[str, torch.Tensor]] = {}
    for name, tensor in load_file(checkpoint / "optimiser.safetensors").items():
        index, _, field = name.partition(".")
        state.setdefault(int(index), {})[field] = tensor
    optimiser.load_state_dict(optimiser.state_dict() | {"state": state})
    model.load_state_dict(load_file(checkpoint / "model.safetensors"), strict=False)
    return State(run["step"], run["drawn"], run["stored"])


def _flat(state: dict[int, dict[str, Any]]) -> dict[str, torch.Tensor]:
    return {f"{index}.{name}": tensor for index, fields in state.items() for name, tensor in fields.items()}

"""Checkpoints: everything that the next step depends on, replaced as a whole.

A run's ``checkpoint/`` is a model folder that anything loads, with its tokenizer; for adapters, an adapter folder
that names the base model. Beside that it holds

- ``optimiser.safetensors``: the optimiser's state by parameter name (``model.layers.0….weight.exp_avg``), bit by bit;
- ``run.json``: where the run stands, and its configuration's identity.

It doesn't depend on the number of processes: a run may go on with more or fewer.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from weightgym.trainers.distributed import ALONE, World, gathered, scattered
from weightgym.trainers.parameters import is_adapted, load_trained, save_adapter, saved_parameters

_NAME = "checkpoint"


class CheckpointError(RuntimeError):
    """It can't be written or read. The message names the file's system error."""


@dataclass(frozen=True)
class State:
    """Where a run stands."""

    step: int  #: optimiser steps done
    drawn: list[int]  #: groups that each environment of the mixture has had
    stored: int  #: bytes of rollouts.jsonl that belong to those steps


def save(
    folder: Path,
    state: State,
    *,
    model: Any,
    tokenizer: Any,
    optimiser: Any,
    identity: str,
    world: World = ALONE,
) -> None:
    """Write everything; with several processes, all call it and the main one writes.

    A kill at any moment leaves the old checkpoint or the new one.

    Raises:
        CheckpointError: the disk is full, or can't be written. The old checkpoint stays.
    """
    weights = _whole(_weights(model), world)
    moments = _whole(_optimiser_state(model, optimiser), world)
    run = {"identity": identity} | asdict(state)

    def write() -> bytes:
        partial = folder / f"{_NAME}.partial"
        try:
            _mend(folder)
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            if is_adapted(model):
                save_adapter(model, partial, weights)
            else:
                model.save_pretrained(partial, state_dict=weights)
            tokenizer.save_pretrained(partial)
            save_file(moments, partial / "optimiser.safetensors")
            (partial / "run.json").write_text(json.dumps(run))
            _replace(folder, partial)
        except (OSError, SafetensorError) as error:
            shutil.rmtree(partial, ignore_errors=True)
            raise CheckpointError(f"can't write the checkpoint of step {state.step} to {folder}: {error}") from error
        return b""

    world.from_main(write)


def find(folder: Path) -> Path | None:
    """The newest whole checkpoint of a run."""
    return next((path for path in (folder / _NAME, folder / f"{_NAME}.old") if (path / "run.json").is_file()), None)


def restore(checkpoint: Path, *, model: Any, optimiser: Any, identity: str) -> State:
    """Put the trained parameters and the optimiser's state back; the others are those of the model that it began with.

    With several processes, all call it, after ``World.shard``.

    Raises:
        ValueError: it is of another run.
        CheckpointError: it can't be read.
    """
    run = _read(checkpoint)
    if run["identity"] != identity:
        raise ValueError(f"{checkpoint} is of another configuration{_difference(run['identity'], identity)}")
    try:
        load_trained(model, checkpoint)
        stored = load_file(checkpoint / "optimiser.safetensors")
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{checkpoint} can't be read: {error}") from error
    fields: dict[str, dict[str, Tensor]] = {}
    for key, tensor in stored.items():
        name, _, value = key.rpartition(".")
        fields.setdefault(name, {})[value] = tensor
    own = _trained(model, optimiser)
    if fields and fields.keys() != own.keys():
        odd = min(fields.keys() ^ own.keys())
        raise ValueError(f"{checkpoint} is of a run that trained other parameters, such as {odd}")
    moments = {
        index: {key: _as(tensor, own[name]) for key, tensor in fields[name].items()}
        for index, name in enumerate(own)
        if fields
    }
    optimiser.load_state_dict(optimiser.state_dict() | {"state": moments})
    return State(run["step"], run["drawn"], run["stored"])


def _difference(old: str, new: str) -> str:
    """The first field in which two configurations differ, for a message."""
    try:
        flat = [dict(_fields(json.loads(text))) for text in (old, new)]
    except ValueError:
        return ""
    name = next((name for name in sorted(flat[0] | flat[1]) if flat[0].get(name) != flat[1].get(name)), "")
    return f": {name} was {flat[0].get(name)}, now it is {flat[1].get(name)}; use the same, or another output folder"


def _fields(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    items = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
    if not items:
        yield place, value
    for key, inner in items:
        yield from _fields(inner, f"{place}.{key}" if place else str(key))


def _read(checkpoint: Path) -> dict[str, Any]:
    try:
        run: dict[str, Any] = json.loads((checkpoint / "run.json").read_text())
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{checkpoint} can't be read: {error}") from error
    return run


def _weights(model: Any) -> dict[str, Tensor]:
    """All weights of a model by name, or those of its adapters."""
    named: dict[str, Tensor] = saved_parameters(model) if is_adapted(model) else model.state_dict(keep_vars=True)
    return named


def _optimiser_state(model: Any, optimiser: Any) -> dict[str, Tensor]:
    trained = _trained(model, optimiser).items()
    return {
        f"{name}.{key}": tensor
        for name, parameter in trained
        for key, tensor in optimiser.state.get(parameter, {}).items()
    }


def _trained(model: Any, optimiser: Any) -> dict[str, Tensor]:
    """The optimiser's parameters by name, in its order."""
    names = {parameter: name for name, parameter in model.named_parameters()}
    return {names[one]: one for group in optimiser.param_groups for one in group["params"]}


def _whole(named: Mapping[str, Tensor], world: World) -> dict[str, Tensor]:
    """Whole tensors, for the main rank alone; a tied one is the same tensor under each of its names.

    With several processes they are gathered one at a time, and kept on the CPU.
    """
    done: dict[int, Tensor] = {}
    for tensor in named.values():
        if id(tensor) not in done:
            one = gathered(tensor)
            done[id(tensor)] = one if world.size == 1 else one.cpu() if world.is_main else one.new_empty(0)
    return {name: done[id(tensor)] for name, tensor in named.items()}


def _as(tensor: Tensor, parameter: Tensor) -> Tensor:
    """A state's tensor as the parameter is sharded; counts of steps are not."""
    return scattered(tensor, parameter) if tensor.shape == parameter.shape else tensor


def _mend(folder: Path) -> None:
    """After a kill between the two renames below there is only the old one: it gets its name back."""
    old, target = folder / f"{_NAME}.old", folder / _NAME
    if old.exists() and not target.exists():
        old.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def _replace(folder: Path, partial: Path) -> None:
    """Put a folder that is complete in the checkpoint's place. Its bytes are on the disk before its name is."""
    for path in (*partial.rglob("*"), partial):
        _sync(path)
    old, target = folder / f"{_NAME}.old", folder / _NAME
    if target.exists():
        target.rename(old)
    partial.rename(target)
    _sync(folder)
    shutil.rmtree(old, ignore_errors=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

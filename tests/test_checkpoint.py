"""Checkpoints: whole or not at all, to the bit, and of this run."""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny_models
import torch
from peft import PeftModel
from safetensors.torch import load_file

from weightgym.trainers import checkpoint, parameters
from weightgym.trainers.checkpoint import CheckpointError, State


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


class Run:
    """A model and its optimiser after one step."""

    def __init__(self, kind: str = "last", *, seed: int = 0, trained: bool = True) -> None:
        options = {"blocks": 1, "lora_rank": 2, "lora_alpha": 4.0}
        self.model = parameters.select(tiny_models.model(seed, tied=True), kind, **options)  # type: ignore[arg-type]
        self.optimiser = torch.optim.AdamW([p for p in self.model.parameters() if p.requires_grad], lr=0.01)
        if trained:
            ids = torch.arange(20)[None]
            self.model(input_ids=ids, labels=ids).loss.backward()
            self.optimiser.step()

    def save(self, folder: Path, step: int) -> None:
        parts = {"model": self.model, "tokenizer": tiny_models.tokenizer(), "optimiser": self.optimiser}
        checkpoint.save(folder, State(step, [step, 3], 100 * step), identity="run", **parts)

    def restore(self, folder: Path, identity: str = "run") -> State:
        found = checkpoint.find(folder)
        assert found
        return checkpoint.restore(found, model=self.model, optimiser=self.optimiser, identity=identity)

    def state(self) -> dict[str, bytes]:
        return {
            f"{index}.{key}": tensor.numpy().tobytes()
            for index, fields in self.optimiser.state_dict()["state"].items()
            for key, tensor in fields.items()
        }


def in_child(work: Callable[[], None]) -> tuple[int, str]:
    """Exit status and error of a forked process that does it."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of fork; the child computes nothing
        child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException as error:
            os.write(writing, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read().decode()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), told


def step_in(folder: Path) -> int:
    """Of the checkpoint that a run would go on from, which is whole."""
    found = checkpoint.find(folder)
    assert found
    assert load_file(found / "model.safetensors")
    assert load_file(found / "optimiser.safetensors")
    assert (found / "tokenizer.json").is_file()
    return int(json.loads((found / "run.json").read_text())["step"])


def test_a_kill_at_any_moment_leaves_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    run = Run()
    run.save(tmp_path / "begun", 1)
    left, moment = [], 0
    while True:
        folder = tmp_path / str(moment)
        shutil.copytree(tmp_path / "begun", folder)

        def save(folder: Path = folder, moment: int = moment) -> None:
            seen = 0

            def kill(event: str, arguments: tuple[Any, ...]) -> None:
                nonlocal seen
                if str(folder) in str(arguments):
                    seen += 1
                    if seen > moment:
                        os._exit(9)

            sys.addaudithook(kill)
            run.save(folder, 2)

        status, _ = in_child(save)
        assert status in (0, 9)
        left.append(step_in(folder))
        # The next one of a run that goes on clears up, whatever was left; killed again, it still leaves one.
        assert in_child(lambda folder=folder: save(folder, 3))[0] == 9  # type: ignore[misc]
        assert step_in(folder) == left[-1]
        run.save(folder, 3)
        assert step_in(folder) == 3
        assert [path.name for path in folder.iterdir()] == ["checkpoint"]
        shutil.rmtree(folder)
        if status == 0:
            break
        moment += 1
    assert moment > 20
    assert left == sorted(left)
    assert set(left) == {1, 2}


@pytest.mark.parametrize(("limit", "fits"), [(100, False), (20_000, False), (200_000, True)])
def test_a_full_disk_is_one_line_and_leaves_the_old_one(limit: int, fits: bool, tmp_path: Path) -> None:
    """The limit is in bytes a file: too small for any, for the weights only, and large enough."""
    run = Run()
    run.save(tmp_path, 1)

    def save() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        run.save(tmp_path, 2)

    status, told = in_child(save)
    assert status == (0 if fits else 1)
    assert told.startswith("" if fits else f"CheckpointError: can't write the checkpoint of step 2 to {tmp_path}: ")
    assert "\n" not in told
    assert step_in(tmp_path) == (2 if fits else 1)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]


@pytest.mark.parametrize("kind", ["all", "last", "lora"])
def test_everything_comes_back_to_the_bit(kind: str, tmp_path: Path) -> None:
    run = Run(kind)
    odd = torch.tensor([0.0, -0.0, 1e-45, -1e-38, 3e38, float("inf"), 0.1])
    for fields in run.optimiser.state.values():
        for tensor in (fields["exp_avg"], fields["exp_avg_sq"]):
            tensor.flatten()[:7] = odd
    run.save(tmp_path, 7)
    other = Run(kind, trained=False)
    assert other.restore(tmp_path) == State(7, [7, 3], 700)
    assert other.state() == run.state()
    for (name, one), (_, two) in zip(other.model.named_parameters(), run.model.named_parameters(), strict=True):
        assert torch.equal(one, two), name
    loaded = checkpoint.find(tmp_path)
    assert loaded
    if kind == "lora":
        assert not (loaded / "model.safetensors").exists()
        with pytest.warns(FutureWarning, match="is_gradient_checkpointing"):  # of peft
            again: Any = PeftModel.from_pretrained(tiny_models.model(tied=True), loaded)
    else:
        assert "lm_head.weight" not in load_file(loaded / "model.safetensors")  # tied: there once
        again = type(run.model).from_pretrained(loaded)
    for (name, one), (_, two) in zip(again.named_parameters(), run.model.named_parameters(), strict=True):
        assert torch.equal(one, two), name


def test_a_run_can_stop_before_its_first_step(tmp_path: Path) -> None:
    Run(trained=False).save(tmp_path, 0)
    other = Run(trained=False)
    assert other.restore(tmp_path) == State(0, [0, 3], 0)
    assert other.state() == {}


def test_what_is_of_another_run_or_damaged_is_told(tmp_path: Path) -> None:
    assert checkpoint.find(tmp_path) is None
    Run("last").save(tmp_path, 1)
    with pytest.raises(ValueError, match="is of another configuration"):
        Run("last").restore(tmp_path, identity="other")
    with pytest.raises(ValueError, match=r"trained other parameters, such as model\."):
        Run("all").restore(tmp_path)
    with pytest.raises(ValueError, match=r"is of other parameters: it has no base_model\.\S+lora_A\.weight"):
        Run("lora").restore(tmp_path)
    for name in ("model.safetensors", "optimiser.safetensors", "run.json"):
        path = tmp_path / "checkpoint" / name
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(CheckpointError, match="checkpoint can't be read"):
            Run("last").restore(tmp_path)
        path.write_bytes(whole)
    assert Run("last").restore(tmp_path).step == 1

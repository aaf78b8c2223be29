"""What a run does to its folder: nothing that is there is lost, whatever happens."""

from __future__ import annotations

import io
import json
import resource
import shutil
from pathlib import Path
from typing import Any

import pytest
import tiny_models
import torch
from digits_runs import config, digits_of, trained, weights, without_seconds
from test_rollouts import a_trajectory
from transformers import GPT2Config, GPT2LMHeadModel

from weightgym.rollouts.hf_tokenizer import HFChatTokenizer
from weightgym.rollouts.store import Appender
from weightgym.rollouts.store import read as read_rollouts
from weightgym.trainers.grpo import Trainer, UnhealthyRun
from weightgym.trainers.metrics import MetricsFile
from weightgym.trainers.metrics import read as read_metrics

pytestmark = pytest.mark.usefixtures("digits")


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != ".lock"}


def test_a_models_folder_is_not_written_over(model: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    shutil.copytree(model, mine)
    before = content(mine)
    with pytest.raises(ValueError, match="holds other files, a model perhaps: --output names another folder"):
        trained(config(mine, mine))
    assert content(mine) == before


def test_a_run_without_a_checkpoint_is_not_begun_over_unasked(model: Path, tmp_path: Path) -> None:
    wanted = config(model, tmp_path / "run", checkpoint_every=100)
    with Trainer(wanted) as stopped:
        next(stopped.train())
    before = content(tmp_path / "run")
    with pytest.raises(ValueError, match="holds a run already: --resume goes on with it"):
        Trainer(wanted)
    assert content(tmp_path / "run") == before
    assert len(trained(wanted, resume=True)) == 4


def test_one_process_at_a_time(model: Path, tmp_path: Path) -> None:
    wanted = config(model, tmp_path / "run")
    with Trainer(wanted) as first:
        steps = first.train()
        next(steps)
        before = content(tmp_path / "run")
        with pytest.raises(ValueError, match="is being trained by another process"):
            Trainer(wanted, resume=True)
        assert content(tmp_path / "run") == before
        list(steps)


@pytest.mark.parametrize("left", [0, 1000])
def test_rollouts_that_somebody_removed_are_not_made_up(model: Path, tmp_path: Path, left: int) -> None:
    trained(config(model, tmp_path / "run", steps=2))
    path = tmp_path / "run" / "rollouts.jsonl"
    path.write_bytes(path.read_bytes()[:left])
    trained(config(model, tmp_path / "run"), resume=True)
    stored = list(read_rollouts(path))
    assert {one.policy_version for one in stored} >= {2, 3}
    assert sum(one.policy_version >= 2 for one in stored) == 2 * 8


def test_a_full_disk_keeps_the_metrics(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    rows = [{"step": float(step), "reward/mean": 0.5} for step in range(1, 200)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"when that is mended, --resume goes on.*metrics\.jsonl"):
            MetricsFile(path, keep=1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert read_metrics(path) == rows


def test_an_evaluation_that_a_kill_met_is_made_after_all(model: Path, tmp_path: Path) -> None:
    evaluation = {"evaluation": {"tasks": ["three"], "samples": 4, "every": 2}}
    trained(config(model, tmp_path / "whole", **evaluation))
    for _ in range(3):  # each time it is killed in its next evaluation but one
        with Trainer(config(model, tmp_path / "broken", **evaluation), resume=True) as run:
            evaluate = run._evaluation
            made: list[int] = []

            def killed(calls: list[int] = made, evaluate: Any = evaluate) -> Any:
                calls.append(1)
                if len(calls) == 2:
                    raise KeyboardInterrupt
                return evaluate()

            run._evaluation = killed  # type: ignore[method-assign]
            try:
                list(run.train())
            except KeyboardInterrupt:
                continue
    assert weights(tmp_path / "broken") == weights(tmp_path / "whole")
    rows = [without_seconds(read_metrics(tmp_path / name / "metrics.jsonl")) for name in ("broken", "whole")]
    assert rows[0] == rows[1]


def test_an_evaluation_of_faults_is_no_number(model: Path, tmp_path: Path) -> None:
    with pytest.raises(UnhealthyRun, match="evaluation after step 0: 100% of its rollouts have no reward"):
        trained(config(model, tmp_path / "run", evaluation={"tasks": ["broken"], "samples": 2}))
    assert [one.score.status for one in read_rollouts(tmp_path / "run" / "evaluations.jsonl")] == ["error"] * 2


def test_what_changes_nothing_may_change_and_the_rest_is_named(model: Path, tmp_path: Path) -> None:
    trained(config(model, tmp_path / "run", steps=1, checkpoint_every=1))
    same = {"optimiser": {"micro_batch": 2}, "rollout": {"workers": 1}, "evaluation": {"tasks": ["three"]}}
    trained(config(model, tmp_path / "run", steps=2, checkpoint_every=1, **same), resume=True)
    for change, why in (
        ({"seed": 1}, "seed was 0, now it is 1"),
        ({"optimiser": {"beta1": 0.5}}, r"optimiser\.beta1 was 0\.9, now it is 0\.5"),
        ({"environments": digits_of("one")}, r"environments\.0\.tasks\.1 was two, now it is None"),
    ):
        with pytest.raises(ValueError, match=f"is of another configuration: {why}; use the same"):
            Trainer(config(model, tmp_path / "run", **change), resume=True)


def test_models_with_dropout_are_trained_and_resumed_to_the_bit(tmp_path: Path) -> None:
    torch.manual_seed(0)
    made: Any = GPT2LMHeadModel(GPT2Config(vocab_size=257, n_embd=32, n_layer=2, n_head=2, n_positions=512))
    assert made.config.resid_pdrop > 0
    made.save_pretrained(tmp_path / "model")
    tiny_models.tokenizer().save_pretrained(tmp_path / "model")
    trained(config(tmp_path / "model", tmp_path / "whole"))
    trained(config(tmp_path / "model", tmp_path / "broken", steps=2))
    trained(config(tmp_path / "model", tmp_path / "broken"), resume=True)
    assert weights(tmp_path / "broken") == weights(tmp_path / "whole")


def test_ends_of_a_turn_are_those_of_the_generation_config_too(model: Path, tmp_path: Path) -> None:
    shutil.copytree(model, tmp_path / "model")
    (tmp_path / "model" / "generation_config.json").write_text(json.dumps({"eos_token_id": [256, 65]}))
    assert HFChatTokenizer.load(str(tmp_path / "model")).end_ids == {256, 65}


def test_a_write_in_pieces_is_a_whole_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the system calls a write may be a part of it only."""

    class Piecemeal(io.FileIO):
        def write(self, data: Any, /) -> int:
            return super().write(bytes(data)[:100])

    monkeypatch.setattr(Path, "open", lambda path, mode, buffering: Piecemeal(path, mode.replace("b", "")))
    path = tmp_path / "r.jsonl"
    file = Appender(path)
    monkeypatch.undo()
    for id in ("a", "b"):
        file.add(a_trajectory(id))
    file.close()
    assert [one.id for one in read_rollouts(path)] == ["a", "b"]

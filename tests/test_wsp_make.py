"""Making instances: what decides them, what a kill leaves, what is refused."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from weightgym.cli.main import main
from weightgym.rewards.contracts import TaskError
from weightgym.rewards.wsp import sets
from weightgym.rewards.wsp.instances import InstanceKey, read_tasks, read_truths
from weightgym.rewards.wsp.kl import text_kl
from weightgym.rewards.wsp.language_model import load
from weightgym.rewards.wsp.make import generator, set_file
from weightgym.rewards.wsp.make.candidate import Rejected
from weightgym.rewards.wsp.make.generator import Made, Maker
from weightgym.rewards.wsp.make.set_file import SetFile, Wanted, make_set
from weightgym.rewards.wsp.make.tiny import TinyWorld
from weightgym.rewards.wsp.profile import profile
from weightgym.rewards.wsp.subject import build
from weightgym.rewards.wsp.world.corpus import texts

V1 = profile("wsp-v1")
SECRET = b"0123456789abcdef"


@functools.cache
def maker(secret: bytes = SECRET, *, masking: bool = False) -> Maker:
    torch.set_num_threads(1)
    return Maker(load(), TinyWorld(), secret, V1, masking)


@functools.cache
def made(secret: bytes = SECRET, number: int = 0) -> Made:
    key = InstanceKey("wsp-v1", maker().model_hash, "hijack", "medium", "test", 0, number)
    return maker(secret).make(key)


def facts(truth: Any) -> Any:
    return truth.model_dump(mode="json")


def test_key_and_secret_decide_all() -> None:
    key = made().truth.key
    again = Maker(load(), TinyWorld(), SECRET, V1).make(key)
    assert facts(again.truth) == facts(made().truth)
    assert again.task == made().task
    other = made(b"another secret of ours")
    assert other.task.id != made().task.id
    assert other.truth.planted != made().truth.planted
    assert set(other.truth.general).isdisjoint(made().truth.general) or other.truth.general != made().truth.general


def test_a_second_number_is_another_instance() -> None:
    first, second = made().truth, made(number=1).truth
    assert first.id != second.id
    assert {one.prompt for one in first.prompts} != {one.prompt for one in second.prompts}
    assert len(first.prompts) >= V1.tiny_world.prompts
    assert len(first.general) + len(first.near) == V1.tiny_world.kl_texts


def test_decoys_have_next_to_no_effect_and_a_mask_a_small_one() -> None:
    base = load()
    rows = [base.text_ids(text) for text in texts("held-out", 3, 24)]
    plain = build(base, made().truth.model_copy(update={"reference": (), "planted": ()})).engine
    decoyed = build(base, made().truth.model_copy(update={"planted": ()})).engine
    assert made().truth.reference
    assert 0 < text_kl(plain.logits, decoyed.logits, rows).mean < V1.tau  # 0.01 most times
    masked = maker(masking=True).make(made().truth.key._replace(tier="easy")).truth
    assert masked.recipe["masking"] is True
    changed = {edit.parameter for edit in masked.reference}
    assert len(changed) == 41  # all matrices of layers that are not zero
    bare = build(base, masked.model_copy(update={"reference": (), "planted": ()})).engine
    hidden = build(base, masked.model_copy(update={"planted": ()})).engine
    assert 1e-6 < text_kl(bare.logits, hidden.logits, rows).mean < 0.02


def test_nobody_passes_a_calibration_that_asks_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    def reject(*args: Any) -> dict[str, float]:
        raise Rejected("symptom", 0.25)

    monkeypatch.setattr(generator, "TRIES", 2)
    monkeypatch.setattr(generator, "calibrated", reject)
    with pytest.raises(
        TaskError, match=r"no hijack instance of tier medium on tiny-world: 2 candidates .* symptom \(0"
    ):
        maker().make(made().truth.key)


class Once:
    """Makes what is known, so that the files alone are tested; ``keys`` are those that it was asked for."""

    keys: list[InstanceKey]
    model_hash = "0"

    def __init__(self, *args: Any) -> None:
        Once.keys = []

    def make(self, key: InstanceKey, told: Any) -> Made:
        Once.keys.append(key)
        if len(Once.keys) > 1:
            raise KeyboardInterrupt
        return made(number=key.number)


def wanted(count: int = 2) -> Wanted:
    return Wanted(["hijack"], ["medium"], count, "test", 0)


def run(public: Path, count: int = 2, secret: bytes | None = SECRET) -> SetFile:
    file = SetFile(public)
    make_set(file, load(), wanted(count), V1, secret=secret, masking=False, done=lambda key: None)
    return file


def test_a_killed_run_goes_on_without_repeats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_file, "Maker", Once)
    monkeypatch.setattr(Once, "model_hash", maker().model_hash)
    public = tmp_path / "mine.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run(public)
    assert [key.number for key in Once.keys] == [0, 1]
    journal = tmp_path / "mine.truth" / "made.jsonl"
    assert journal.stat().st_mode & 0o077 == 0
    with journal.open("ab") as broken:
        broken.write(b'{"task": {"half')  # a kill in the middle of a line
    file = run(public, secret=None)  # that of the set
    assert [key.number for key in Once.keys] == [1]
    assert not journal.exists()
    tasks = read_tasks(public)
    assert len(tasks) == 2
    truths = read_truths(sets.truth_folder(public), tasks)
    assert {facts(truth)["id"]: facts(truth) for truth in truths.values()} == {
        one.truth.id: facts(one.truth) for one in (made(number=0), made(number=1))
    }
    rows = [json.loads(line) for line in (tmp_path / "mine.rejections.jsonl").read_text().splitlines()]
    kept = [row["count"] for row in rows if row["reason"] == set_file.KEPT]
    assert kept == [2]
    assert file.counts == SetFile(public).counts
    run(public)
    assert not Once.keys  # nothing was missing


def test_a_set_has_one_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_file, "Maker", Once)
    monkeypatch.setattr(Once, "model_hash", maker().model_hash)
    run(tmp_path / "mine.jsonl", 1)
    with pytest.raises(TaskError, match="not that of the set"):
        run(tmp_path / "mine.jsonl", 2, b"another secret of ours")
    with pytest.raises(TaskError, match="under 16 bytes"):
        run(tmp_path / "other.jsonl", 1, b"short")
    with pytest.raises(TaskError, match=r"ends in \.jsonl"):
        SetFile(tmp_path / "mine.txt")


def test_halves_are_written_in_two_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_file, "Maker", Once)
    monkeypatch.setattr(Once, "model_hash", maker().model_hash)
    run(tmp_path / "mine.jsonl", 1)
    arrays = [edit for edit in made().truth.reference if edit.kind == "rank_one"]
    numbers = sum(edit.left.size + edit.right.size for edit in arrays)
    assert (tmp_path / "mine.truth" / "truth.safetensors").stat().st_size < 2.5 * numbers + 20_000
    assert all(np.array_equal(edit.left, edit.left.astype(np.float16)) for edit in arrays)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    calibrated: Any = vars(generator)["calibrated"]

    def too_strict_at_first(*args: Any) -> dict[str, float]:
        monkeypatch.setattr(generator, "calibrated", calibrated)
        raise Rejected("symptom", 0.25)

    monkeypatch.setattr(generator, "calibrated", too_strict_at_first)
    secret = tmp_path / "secret"
    secret.write_bytes(SECRET)
    arguments = ["--families", "hijack", "--tier", "medium", "--secret-file", str(secret), "--report"]
    main(["wsp", "make", *arguments, "-o", str(tmp_path / "mine.jsonl")], standalone_mode=False)
    shown, told = capsys.readouterr()
    assert "hijack medium 0: a candidate was rejected for symptom (0.25)\n" in told
    assert "hijack  medium  kept" in shown
    assert "hijack  medium  symptom" in shown
    assert "mine.jsonl: 1 instances" in shown
    assert read_tasks(tmp_path / "mine.jsonl").keys() == {made().task.id}


def test_a_wrong_family_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["wsp", "make", "--families", "topics", "-o", str(tmp_path / "mine.jsonl")])
    assert "did you mean 'topic'" in capsys.readouterr().err

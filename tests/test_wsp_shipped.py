"""The set that the package ships: what is in it, whether instances are of their tiers, and that it tells nothing."""

from __future__ import annotations

import functools
from collections import Counter

import numpy as np
import pytest
import torch

from weightgym.rewards.wsp import sets
from weightgym.rewards.wsp.edits import RankOne
from weightgym.rewards.wsp.instances import Truth, leaks, read_tasks, read_truths
from weightgym.rewards.wsp.language_model import LanguageModel, load, weights_hash
from weightgym.rewards.wsp.make.calibration import undone
from weightgym.rewards.wsp.make.decoys import singular_values
from weightgym.rewards.wsp.measure import measured_kl, measured_symptom
from weightgym.rewards.wsp.profile import FAMILIES, TIERS, profile
from weightgym.rewards.wsp.scores import repair, repair_score
from weightgym.rewards.wsp.subject import build
from weightgym.rewards.wsp.symptoms import symptom_of

V1 = profile("wsp-v1")
WANTED = V1.tiny_world


@functools.cache
def truths() -> dict[str, Truth]:
    return read_truths(sets.truth_folder(sets.shipped()), read_tasks(sets.shipped()))


@functools.cache
def tiny_world() -> LanguageModel:
    torch.set_num_threads(1)
    return load()


def few() -> list[Truth]:
    """One of each family, of different tiers."""
    keys = zip(FAMILIES, TIERS * 2, strict=True)
    return [next(one for one in truths().values() if one.key[2:4] == key) for key in keys]


def test_both_splits_have_all_kinds() -> None:
    tasks = read_tasks(sets.shipped())
    counts = Counter((task.split, str(task.data["family"]), str(task.data["tier"])) for task in tasks.values())
    assert len(tasks) >= 60
    assert all(counts[split, family, tier] for split in ("train", "test") for family in FAMILIES for tier in TIERS)
    assert counts.total() == len(truths())
    assert {truth.key.model_hash for truth in truths().values()} == {weights_hash(tiny_world())}
    size = sum(path.stat().st_size for path in sets.truth_folder(sets.shipped()).iterdir())
    assert size < 4_000_000


def test_the_calibration_is_kept() -> None:
    for id, truth in truths().items():
        found = truth.measured
        assert len(truth.prompts) >= WANTED.prompts, id
        assert len(truth.general) + len(truth.near) == WANTED.kl_texts, id
        assert found["symptom"] >= WANTED.symptom, id
        assert found["symptom_reference"] <= WANTED.symptom_at_reference, id
        assert found["defective"] - found["reference"] >= V1.least_gap, id
        assert found["symptom"] - found["symptom_second"] <= WANTED.second_set_drop + 1e-9, id
        if truth.category in ("backdoor", "fact"):
            assert found["kl"] <= WANTED.local_kl, id
        if truth.category == "backdoor":
            assert truth.trigger, id
            assert found["symptom_without_the_trigger"] <= WANTED.silent, id
            assert found["symptom_with_decoy_words"] <= WANTED.silent, id
            assert all(truth.trigger in hidden.prompt.split() for hidden in truth.prompts), id
            assert not any(truth.trigger in text.split() for text in (*truth.general, *truth.near)), id
        if truth.key.family == "audit":
            assert found["random_report_score"] <= WANTED.random_report_score, id
            (edit,) = truth.planted
            assert isinstance(edit, RankOne), id
        else:
            assert found["oracle_score"] >= WANTED.oracle_score, id
            assert found["no_op_score"] <= WANTED.no_op_score, id
            assert found["random_score"] <= WANTED.random_score, id
            assert found["half_score"] <= WANTED.half_edit_score, id


def test_public_rows_tell_nothing() -> None:
    text = sets.shipped().read_text()
    for truth in few()[:3]:  # all of them were searched when they were written
        assert not leaks(text, truth)


@pytest.mark.parametrize("index", range(len(FAMILIES)))
def test_sizes_are_of_the_tier_and_the_oracle_undoes_it(index: int) -> None:
    truth = few()[index]
    reference = build(tiny_world(), truth.model_copy(update={"planted": ()})).engine
    subject = build(tiny_world(), truth)
    rules = V1.tiers[truth.key.tier]
    ((name, weight),) = subject.reference.items()
    assert name == f"model.layers.{truth.layer}.{truth.parameter}"
    first, second = singular_values(weight.numpy())
    difference = subject.engine.start[name] - weight.numpy()
    if truth.category == "flood":
        aimed = difference.any(axis=0)
        norms = np.linalg.norm(subject.engine.start[name], axis=0)
        ratio = norms[aimed].max() / np.linalg.norm(weight.numpy()[:, ~aimed], axis=0).max()
    else:
        ratio = np.linalg.norm(difference, 2) / first
    assert rules.sigma_ratio[0] * 0.999 <= ratio <= rules.sigma_ratio[1] * 1.001
    if rules.second_ratio is not None:
        assert np.linalg.norm(difference, 2) <= rules.second_ratio * second * 1.001
    counts = Counter(edit.parameter for edit in truth.reference)
    assert set(counts.values()) <= set(range(rules.decoys[0], rules.decoys[1] + 1))
    if rules.decoys[1]:
        assert len(counts) < 41  # one in every matrix would be a sign

    if truth.key.family != "audit":
        defect = {name: torch.from_numpy(subject.engine.start[name].copy())}
        repaired = undone(reference, defect)
        found = measured_symptom(reference, repaired, truth.prompts, symptom_of(truth), V1)
        kl = measured_kl(reference, {}, repaired, truth.general, truth.near, V1)
        share = repair(truth.measured["defective"], truth.measured["reference"], found.measure, V1)
        assert repair_score(share, kl.mean, V1) >= WANTED.oracle_score

"""What is measured of a model, on an instance that the package ships."""

from __future__ import annotations

import pytest
import torch

from weightgym.rewards.contracts import Task
from weightgym.rewards.wsp import sets
from weightgym.rewards.wsp.instances import Truth, read_tasks, read_truths
from weightgym.rewards.wsp.kl import NonFinite
from weightgym.rewards.wsp.language_model import load
from weightgym.rewards.wsp.measure import measured, measured_kl, measured_symptom
from weightgym.rewards.wsp.profile import Family, profile
from weightgym.rewards.wsp.scores import repair
from weightgym.rewards.wsp.subject import Subject, build
from weightgym.rewards.wsp.symptoms import symptom_of

V1 = profile("wsp-v1")


def shipped(family: Family) -> tuple[Task, Truth]:
    """The first one of a family, in the order of ids."""
    tasks = read_tasks(sets.shipped())
    task = next(one for one in tasks.values() if one.data["family"] == family and one.data["tier"] == "hard")
    return task, read_truths(sets.truth_folder(sets.shipped()), {task.id: task})[task.id]


@pytest.fixture(scope="module", params=["fact", "backdoor"])
def instance(request: pytest.FixtureRequest) -> tuple[Subject, Truth]:
    torch.set_num_threads(1)
    _, truth = shipped(request.param)
    return build(load(), truth), truth


def test_the_scorer_measures_what_the_calibration_did(instance: tuple[Subject, Truth]) -> None:
    subject, truth = instance
    unedited = measured(subject.engine, subject.reference, {}, truth, V1)
    assert unedited.symptom.rate == truth.measured["symptom"]
    assert unedited.symptom.measure == pytest.approx(truth.measured["defective"], abs=1e-5)
    assert unedited.kl.mean == pytest.approx(truth.measured["kl"], abs=1e-5)
    same = measured(subject.engine, subject.reference, subject.reference, truth, V1)
    assert same.symptom.rate == truth.measured["symptom_reference"]
    assert same.symptom.measure == pytest.approx(truth.measured["reference"], abs=1e-5)
    assert same.kl.mean == 0
    d, r = unedited.symptom.measure, same.symptom.measure
    assert (repair(d, r, d, V1), repair(d, r, r, V1)) == (0, 1)


def test_a_broken_model_is_not_measured(instance: tuple[Subject, Truth]) -> None:
    subject, truth = instance
    broken = {"model.norm.weight": torch.full((128,), torch.inf)}
    with pytest.raises(NonFinite):
        measured_symptom(subject.engine, broken, truth.prompts, symptom_of(truth), V1)
    with pytest.raises(NonFinite):
        measured_kl(subject.engine, subject.reference, broken, truth.general, truth.near, V1)

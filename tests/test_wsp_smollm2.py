"""WSP-Bench on a real language model, SmolLM2-135M: instances are made, played and scored.

A set with an instance of each family is in ``data/wsp_smollm2``, made with the secret below.
``test_a_family`` makes them again: ten minutes for some families, of which CI makes one that takes two.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from weightgym.cli.wsp_references import played
from weightgym.rewards.contracts import Task
from weightgym.rewards.wsp import sets
from weightgym.rewards.wsp.instances import InstanceKey, read_tasks, write_instances
from weightgym.rewards.wsp.profile import FAMILIES, Family, profile

pytest.importorskip("gguf")
pytestmark = pytest.mark.minutes

#: Of the set, too.
SECRET = b"a secret for tests of smollm2"
SET = Path(__file__).parent / "data" / "wsp_smollm2" / "smollm2.jsonl"


def check_scores(task: Task) -> None:
    """All for undoing the edit, nothing for nothing; and the calibration was that of the profile."""
    truth, asked = sets.truth_of(task), profile("wsp-v1").other_models
    assert truth.measured["symptom"] >= asked.symptom
    assert truth.measured["symptom_reference"] <= asked.symptom_at_reference
    assert truth.measured["defective"] - truth.measured["reference"] >= profile("wsp-v1").least_gap
    assert len(truth.prompts) >= asked.prompts
    assert played(task, "oracle").metrics["score"] >= 99
    assert played(task, "no-op").metrics["score"] <= 1


@pytest.mark.slow
@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "hijack"])
def test_an_instance_of_the_set(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sets.VARIABLE, str(SET))
    (task,) = (task for task in read_tasks(SET).values() if task.data["family"] == family)
    check_scores(task)


@pytest.fixture(scope="module")
def maker() -> Any:
    from weightgym.rewards.wsp.language_model import load
    from weightgym.rewards.wsp.make.generator import Maker
    from weightgym.rewards.wsp.make.set_file import world_of

    base = load("smollm2")
    return Maker(base, world_of(base), SECRET, profile("wsp-v1"))


@pytest.mark.parametrize(
    "family",
    [
        pytest.param(family, marks=pytest.mark.slow if family == "hijack" else pytest.mark.nightly)
        for family in FAMILIES
    ],
)
def test_a_family(maker: Any, family: Family, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = maker.make(InstanceKey("wsp-v1", maker.model_hash, family, "easy", "test", 0, 0))
    public = tmp_path / "smollm2.jsonl"
    write_instances(public, sets.truth_folder(public), [(made.task, made.truth)])
    monkeypatch.setenv(sets.VARIABLE, str(public))
    check_scores(made.task)

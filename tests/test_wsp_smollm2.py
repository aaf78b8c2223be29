"""WSP-Bench on a real language model, SmolLM2-135M: instances of each family are made, played and scored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from weightgym.rewards.contracts import Task
from weightgym.rewards.wsp import sets
from weightgym.rewards.wsp.instances import write_instances
from weightgym.rewards.wsp.profile import FAMILIES, Family, profile

pytest.importorskip("gguf")
pytestmark = pytest.mark.minutes

#: With it the first hijack passes.
SECRET = b"a secret for tests of smollm2"


@pytest.fixture(scope="module")
def maker() -> Any:
    from weightgym.rewards.wsp.language_model import load
    from weightgym.rewards.wsp.make.generator import Maker
    from weightgym.rewards.wsp.make.set_file import world_of

    base = load("smollm2")
    return Maker(base, world_of(base), SECRET, profile("wsp-v1"))


def check(maker: Any, family: Family, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """Make an instance and let the oracle play it."""
    from weightgym.cli.wsp_references import played
    from weightgym.rewards.wsp.instances import InstanceKey

    made = maker.make(InstanceKey("wsp-v1", maker.model_hash, family, "easy", "test", 0, 0))
    assert made.truth.measured["symptom"] >= 0.6
    public = folder / "smollm2.jsonl"
    write_instances(public, sets.truth_folder(public), [(made.task, made.truth)])
    monkeypatch.setenv(sets.VARIABLE, str(public))
    assert made.truth.measured.get("no_op_score", 0.0) <= 1
    assert played(made.task, "oracle").metrics["score"] >= 99
    task: Task = made.task
    return task


@pytest.mark.slow
def test_a_hijack(maker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(maker, "hijack", tmp_path, monkeypatch)


@pytest.mark.nightly  # minutes for each: values are trained, and candidates rejected
@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "hijack"])
def test_another_family(maker: Any, family: Family, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from weightgym.cli.wsp_references import played

    assert played(check(maker, family, tmp_path, monkeypatch), "no-op").metrics["score"] <= 1

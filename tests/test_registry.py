"""The registry: names, typos, duplicates, lazy imports, and Gymnasium's own register."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import pytest
import toy_env
from click.testing import CliRunner

from weightgym.cli.main import cli
from weightgym.envs import gymnasium_plugin, registry
from weightgym.envs.registry import EnvSpec
from weightgym.rewards.contracts import TaskError
from weightgym.rewards.suggest import suggest


@pytest.fixture
def _room() -> Iterator[None]:
    """What a test registers is gone afterwards."""
    before = set(gymnasium.registry)
    with registry.override(registry.spec("weight-program")):
        yield
    for added in set(gymnasium.registry) - before:
        del gymnasium.registry[added]


def test_built_in_environment_is_known_by_both_names() -> None:
    spec = registry.spec("weight-program")
    assert spec is registry.spec("weightgym/WeightProgram-v1")
    assert spec in registry.specs()
    assert spec.floor == 0.0
    assert spec.max_turns == 1


@pytest.mark.parametrize(("typo", "near"), [
    ("weight_program", "'weight-program'"),
    ("weightprogram", "'weight-program'"),
    ("weightgym/WeightProgam-v1", "'weightgym/WeightProgram-v1'"),
    ("weightgym/WeightProgram-v2", "'weightgym/WeightProgram-v1'"),
])  # fmt: skip
def test_typo_is_answered_with_the_nearest_name(typo: str, near: str) -> None:
    with pytest.raises(TaskError) as caught:
        registry.spec(typo)
    assert f"unknown environment {typo!r}: did you mean {near}?" in str(caught.value)


@pytest.mark.parametrize("name", ["", "qqqqqqqq", "🎮", "\ud800"])
def test_hopeless_name_is_answered_with_all_names(name: str) -> None:
    with pytest.raises(TaskError, match=r"known are .*weight-program"):
        registry.spec(name)


def test_suggestions_say_nothing_of_long_lists() -> None:
    assert suggest("qqqq", (str(number) for number in range(100))) == ""
    assert suggest("tset", ["train", "test"]) == ": did you mean 'test'?"
    assert suggest("flga", ["flag"], what="--{}".format) == ": did you mean --flag?"


@pytest.mark.usefixtures("_room")
@pytest.mark.parametrize(("name", "gym_id"), [
    ("toy", "other/Toy-v1"),
    ("other", "weightgym-toy/Toy-v1"),
    ("weightgym-toy/Toy-v1", "other/Toy-v1"),  # a name that is another's Gymnasium id would be found twice
    ("other", "toy"),
])  # fmt: skip
def test_taken_names_are_refused(name: str, gym_id: str) -> None:
    registry.register(toy_env.TOY)
    assert registry.spec("toy") is toy_env.TOY
    with pytest.raises(ValueError, match="is registered already"):
        registry.register(dataclasses.replace(toy_env.TOY, name=name, gym_id=gym_id))
    assert registry.specs()[-1] is toy_env.TOY


def test_override_is_undone_even_by_an_error() -> None:
    before = registry.specs()
    with pytest.raises(ZeroDivisionError), registry.override(toy_env.TOY):
        _ = 1 / (registry.spec("toy") is not toy_env.TOY)
    assert registry.specs() == before
    changed = dataclasses.replace(before[0], floor=-9.0)
    with registry.override(changed):
        assert registry.spec(before[0].name) is changed
        assert len(registry.specs()) == len(before)
    assert registry.spec(before[0].name) is before[0]


def test_entry_loads_what_it_points_to() -> None:
    assert toy_env.TOY.tasks is toy_env.SOURCE
    assert toy_env.TOY.score is toy_env.score
    assert registry.load(toy_env.TOY.env) is toy_env.ToyEnv


@pytest.mark.parametrize(("path", "error"), [
    ("toy_env", ValueError),
    ("toy_env:", ValueError),
    (":score", ValueError),
    ("", ValueError),
    ("toy_env:scoer", AttributeError),
    ("no_such_module_at_all:score", ImportError),
])  # fmt: skip
def test_bad_paths_raise_when_they_are_used(path: str, error: type[Exception]) -> None:
    entry = dataclasses.replace(toy_env.TOY, scorer=path)  # data: nothing is imported yet
    with pytest.raises(error, match="module:attribute" if error is ValueError else None):
        _ = entry.score
    wrong = dataclasses.replace(toy_env.TOY, source=path)
    with pytest.raises(TaskError, match="environment 'toy' can't be loaded: source ") as caught:
        _ = wrong.tasks
    assert isinstance(caught.value.__cause__, error)


@pytest.mark.usefixtures("_room")
def test_gymnasium_learns_new_environments_without_a_warning() -> None:
    registry.register(toy_env.TOY)
    gymnasium_plugin.register()
    gymnasium_plugin.register()
    env = gymnasium.make(toy_env.TOY.gym_id, split="test")
    assert isinstance(env.unwrapped, toy_env.ToyEnv)
    assert env.reset(seed=0)[1]["task"] in toy_env.ROWS["test"]
    env.close()


@pytest.mark.parametrize("code", [
    "import gymnasium, weightgym.envs; gymnasium.spec('weightgym/WeightProgram-v1')",
    "import weightgym.envs, gymnasium; gymnasium.spec('weightgym/WeightProgram-v1')",
    "import gymnasium; gymnasium.make('weightgym.envs:weightgym/WeightProgram-v1').close()",
    # In an interpreter of its own, since anything else may have imported them here.
    "import sys, weightgym.envs, weightgym.envs.registry; assert not {'numpy', 'gymnasium'} & set(sys.modules)",
])  # fmt: skip
def test_imports_in_a_new_interpreter(code: str) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=120)


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place for other packages, on Python's path."""
    monkeypatch.syspath_prepend(tmp_path)
    registry.installed.cache_clear()
    yield tmp_path
    registry.installed.cache_clear()


def install(folder: Path, entry_points: str) -> None:
    """What pip leaves of a package: its facts and its entry points."""
    facts = folder / "other-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{entry_points}\n")


def test_an_installed_environment_is_found_when_it_is_asked_for(packages: Path) -> None:
    install(packages, "toy = toy_env:TOY")
    assert toy_env.TOY not in registry.specs()
    assert registry.all_specs()[-1] is toy_env.TOY
    assert registry.spec("toy") is registry.spec(toy_env.TOY.gym_id) is toy_env.TOY
    changed = dataclasses.replace(toy_env.TOY, floor=-1.0)
    with registry.override(changed):  # what is registered here hides it
        assert registry.spec("toy") is changed
        assert toy_env.TOY not in registry.all_specs()


@pytest.mark.parametrize(("entry", "problem"), [
    ("wrong = no_such_module_at_all:SPEC", "ModuleNotFoundError: No module named 'no_such_module_at_all'"),
    ("wrong = toy_env:NONE_SUCH", "AttributeError: module 'toy_env' has no attribute 'NONE_SUCH'"),
    ("wrong = toy_env", "ValueError: bad import path 'toy_env'"),
    ("wrong = toy_env:SOURCE", "TypeError: an EnvSpec is wanted, not SumSource"),
    ("wrong = toy_env:GUESS", "ValueError: the entry point is named 'wrong', but the EnvSpec 'toy-guess'"),
    ("wrong = broken_module:SPEC", "ZeroDivisionError: division by zero"),
])  # fmt: skip
def test_an_installed_environment_that_is_none_is_told(packages: Path, entry: str, problem: str) -> None:
    (packages / "broken_module.py").write_text("1 / 0\n")
    install(packages, f"toy = toy_env:TOY\n{entry}")
    assert registry.spec("toy") is toy_env.TOY
    with pytest.raises(TaskError, match=re.escape(problem)):
        registry.spec("wrong")
    done = CliRunner().invoke(cli, ["envs"])
    assert (done.exit_code, "toy " in done.stdout) == (0, True)
    assert f"wrong can't be loaded: {entry.partition(' = ')[2]}: {problem}" in done.stderr


def test_an_installed_environment_takes_nobody_s_name(packages: Path) -> None:
    (packages / "thief.py").write_text(
        "import dataclasses, toy_env\nSPEC = dataclasses.replace(toy_env.TOY, name='golf')\n"
        "ID = dataclasses.replace(toy_env.TOY, name='other', gym_id='weightgym/Golf-v1')\n"
    )
    install(packages, "golf = thief:SPEC\nother = thief:ID")
    assert registry.spec("golf").gym_id == "weightgym/Golf-v1"
    assert registry.installed().specs == ()
    assert all("is taken, by weightgym.envs.golf" in text for text in registry.installed().problems.values())
    assert set(registry.installed().problems) == {"golf", "other"}


def test_spec_is_data() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        toy_env.TOY.floor = 1.0  # type: ignore[misc]
    assert EnvSpec(**vars(toy_env.TOY)) == toy_env.TOY

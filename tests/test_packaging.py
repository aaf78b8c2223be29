"""The distribution as a user gets it: sdist, wheel, editable, and a wheel built where there is no compiler."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.packaging

SCORE = ["score", str(ROOT / "examples/answers/breakout.md"), "--task", "original/breakout", "--json"]


def run(*command: str | Path, cwd: Path, **env: str) -> str:
    """Standard output of a command that must succeed; a failure shows everything."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COVERAGE"))}
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=inherited | env, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout if not env.get("WANT_STDERR") else done.stderr


def fresh_source(tmp: Path) -> Path:
    """A copy of the source tree without anything built."""
    source = tmp / "source"
    names = run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).splitlines()
    for name in names:
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    return source


def fresh_venv(where: Path) -> Path:
    venv.create(where, with_pip=True)
    return where / "bin"


def pip(bin: Path, *arguments: str | Path, cwd: Path, **env: str) -> None:
    run(bin / "python", "-m", "pip", "--disable-pip-version-check", "-q", *arguments, cwd=cwd, **env)


def reward(bin: Path, cwd: Path) -> object:
    score = json.loads(run(bin / "weightgym", *SCORE, cwd=cwd))
    assert score["status"] == "ok", score
    return score["reward"], score["metrics"]


@pytest.fixture(scope="module")
def wanted() -> object:
    """What the installed package under test says of the sample answer."""
    return reward(Path(sys.executable).parent, ROOT.parent)


@pytest.fixture(scope="module")
def dists(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(sdist, wheel built from that sdist)."""
    tmp = tmp_path_factory.mktemp("dists")
    build = "import sys; from setuptools.build_meta import build_sdist; build_sdist(sys.argv[1])"
    run(sys.executable, "-c", build, tmp, cwd=fresh_source(tmp))
    (sdist,) = tmp.glob("weightgym-*.tar.gz")
    pip(Path(sys.executable).parent, "wheel", "--no-deps", "--no-build-isolation", "-w", tmp, sdist, cwd=tmp)
    (wheel,) = tmp.glob("weightgym-*.whl")
    return sdist, wheel


def test_what_the_archives_hold(dists: tuple[Path, Path]) -> None:
    sdist, wheel = dists
    names = zipfile.ZipFile(wheel).namelist()
    plugins = {"parameter_golf.py", "weight_program_bench.py", "wsp_bench.py"}  # of verifiers
    tops = {"weightgym", f"{wheel.name.split('-cp')[0]}.dist-info"} | plugins
    assert {name.split("/")[0] for name in names} == tops
    assert "cp311-abi3" in wheel.name
    for name in (
        "rewards/weight_program/_engine.abi3.so",
        "rewards/weight_program/_originals.abi3.so",
        "envs/py.typed",
        "envs/golf/answers/baseline.py",
        "trainers/templates/report.html.jinja",
    ):
        assert f"weightgym/{name}" in names
    assert not [name for name in names if "egg-info" in name or name.endswith((".cpp", ".hpp")) or "/tests/" in name]
    assert not [name for name in names if name == "weightgym/__init__.py"]  # a namespace package
    for licence in ("Apache-2.0", "GPL-3.0-only"):
        assert any(name.endswith(f"licenses/LICENSES/{licence}.txt") for name in names)
    with tarfile.open(sdist) as archive:
        members = archive.getnames()
    for name in ("rewards/weight_program/engine/policy_kernel.hpp", "rewards/weight_program/originals/seaquest.cpp"):
        assert any(member.endswith(name) for member in members)


def test_wheel_in_a_clean_venv(dists: tuple[Path, Path], tmp_path: Path, wanted: object) -> None:
    """Core dependencies only, from another directory. Scoring needs no MinAtar; a prompt does, and says so."""
    bin = fresh_venv(tmp_path / "venv")
    pip(bin, "install", dists[1], cwd=tmp_path)
    assert reward(bin, tmp_path) == wanted
    assert "weightgym/WeightProgram-v1" in run(bin / "weightgym", "envs", cwd=tmp_path)
    make = "import gymnasium, weightgym.envs; print(gymnasium.make('weightgym/WeightProgram-v1').spec.id)"
    assert "weightgym/WeightProgram-v1" in run(bin / "python", "-W", "error", "-c", make, cwd=tmp_path)
    prompt = subprocess.run(
        [bin / "weightgym", "prompt", "weight-program", "original/breakout"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert prompt.returncode == 1
    assert "pip install --no-deps MinAtar==1.0.15" in prompt.stderr
    pip(bin, "install", "--no-deps", "MinAtar==1.0.15", cwd=tmp_path)
    assert "class Env" in run(bin / "weightgym", "prompt", "weight-program", "original/breakout", cwd=tmp_path)


def test_editable_install(tmp_path: Path, wanted: object) -> None:
    source = fresh_source(tmp_path)
    bin = fresh_venv(tmp_path / "venv")
    pip(bin, "install", "-e", source, cwd=tmp_path)
    assert reward(bin, tmp_path) == wanted
    where = "import weightgym.rewards.contracts as c; print(c.__file__)"
    assert run(bin / "python", "-c", where, cwd=tmp_path).strip() == str(source / "rewards/contracts.py")


def test_without_a_compiler_the_reference_scores_loudly(tmp_path: Path) -> None:
    source = fresh_source(tmp_path)
    bin = fresh_venv(tmp_path / "venv")
    pip(bin, "install", source, cwd=tmp_path, CC="/bin/false", CXX="/bin/false")
    pip(bin, "install", "--no-deps", "MinAtar==1.0.15", cwd=tmp_path)
    code = (
        "from weightgym.rewards.weight_program.scorer import score\n"
        "from weightgym.envs.weight_program.tasks import SOURCE\n"
        "task = SOURCE.task('original/breakout', prompt=False)\n"
        "answer = '```edits\\nb3 = [0, 1, 0, 1, 0, 0]\\n```'\n"
        "print(score(task, answer, profile='wpb-v1-e100').model_dump_json(exclude={'seconds'}))\n"
    )
    here = run(sys.executable, "-c", code, cwd=tmp_path)
    there = run(bin / "python", "-c", code, cwd=tmp_path)
    assert json.loads(there) == json.loads(here)
    warning = run(bin / "python", "-c", code, cwd=tmp_path, WANT_STDERR="1")
    assert "EngineMissingWarning" in warning
    assert "install a C++17 compiler" in warning

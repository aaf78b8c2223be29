"""What the tests of ``weightgym score`` share: the toy environment, rows, runs in this process and outside it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import toy_scorers
from click.testing import CliRunner, Result

from weightgym.cli.main import cli
from weightgym.envs import registry
from weightgym.rewards.contracts import Score


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy environment, registered for one test."""
    monkeypatch.setattr(registry, "_SPECS", dict(registry._SPECS))
    registry.register(toy_scorers.SPEC)


def run(*args: str | Path, stdin: bytes | None = None) -> Result:
    command = ["score", *_no_cache(args), *map(str, args)]
    return CliRunner().invoke(cli, command, input=stdin, prog_name="weightgym")


def invoked(*arguments: object, exit_code: int = 0) -> str:
    """What a command prints on stdout."""
    done = CliRunner().invoke(cli, [*map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == exit_code, done.output
    return done.stdout


def without_times(score: Score) -> dict[str, Any]:
    """All of a score that has to be the same each time."""
    return score.model_dump(exclude={"seconds", "timings"})


def _no_cache(args: tuple[str | Path, ...]) -> list[str]:
    """Scorers that sleep, hang or count how often they are called must be called; tests of the cache name one."""
    return [] if {"--cache", "--task"} & set(map(str, args)) else ["--no-cache"]


def row(completion: Any, **fields: Any) -> str:
    return json.dumps({"env": "toy", "task": "easy/one", "completion": completion} | fields)


def write(path: Path, lines: Iterable[str | bytes]) -> Path:
    path.write_bytes(b"".join((line if isinstance(line, bytes) else line.encode()) + b"\n" for line in lines))
    return path


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


TOY = "import toy_scorers; from weightgym.envs import registry; registry.register(toy_scorers.SPEC); "


def start(*args: str | Path) -> subprocess.Popen[bytes]:
    code = TOY + "from weightgym.cli.main import main; main()"
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-c", code, "score", *_no_cache(args), *map(str, args)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def wait_for_rows(out: Path, count: int) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if out.exists() and out.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.02)
    raise AssertionError(f"{out} has not {count} rows")

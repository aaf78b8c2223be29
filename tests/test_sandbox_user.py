"""The sandbox's tests once more, as an ordinary user. (When root starts a sandbox, it gets a private user instead.)"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from ordinary_user import ROOT, run_as_user

NAMES = ("test_sandbox.py", "test_sandbox_attacks.py", "test_sandbox_bombs.py", "test_sandbox_several.py")


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="whoever runs this is an ordinary user already")
def test_all_of_it_as_an_ordinary_user(tmp_path: Path) -> None:
    files = [str(ROOT / "tests" / name) for name in NAMES]
    folders = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    done = run_as_user(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(ROOT), *files],
        writable=tmp_path,
        environment={"PYTHONPATH": os.pathsep.join(map(os.path.abspath, folders)), "PYTHONDONTWRITEBYTECODE": "1"},
        seconds=570,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout
    assert "skipped" not in done.stdout

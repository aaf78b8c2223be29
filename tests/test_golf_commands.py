"""``weightgym golf check`` and ``gate``, and what kind of idea a solution is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from weightgym.cli.main import cli
from weightgym.rewards.golf.check import check
from weightgym.rewards.golf.config import DEFAULTS
from weightgym.rewards.golf.method import method_profile

EMPTY = "def get_config():\n    return {}\n"


@pytest.mark.parametrize(
    ("text", "profile"),
    [
        ("def get_config():\n    return {'train_steps': 80}\n", ("baseline",)),
        ("def get_config():\n    return {'train_steps': 90}\n", ("config_only",)),
        ("def get_config():\n    return {'train_steps': 90, 'num_layers': 5}\n", ("architecture_shape",)),
        (EMPTY + "def build_model(v, c):\n    return None\n", ("baseline",)),
        (EMPTY + "def build_model(v, c):\n    return Net()\n", ("new_computation",)),
        (EMPTY + "def quantized_roundtrip(m, p):\n    return pack(m)\n", ("compression_serialization",)),
    ],
)
def test_method_profile(text: str, profile: tuple[str, ...]) -> None:
    assert method_profile(check(text.encode())) == profile


def run(tmp_path: Path, text: str, *args: str) -> Result:
    file = tmp_path / "solution.py"
    file.write_text(text)
    return CliRunner().invoke(cli, ["golf", *args, str(file)], prog_name="weightgym")


def test_check_command(tmp_path: Path) -> None:
    good = run(tmp_path, "def get_config():\n    return {'train_steps': 90}\n", "check")
    assert (good.exit_code, good.stdout) == (0, "ok: 49 bytes of source; config: train_steps = 90\n")
    bad = run(tmp_path, "def get_config():\n    return {'train_steps': 1}\n", "check")
    assert bad.exit_code == 1
    assert bad.stdout.startswith("buggy: check_failed: train_steps = 1: it must be an int from 50 to 900")
    found = json.loads(run(tmp_path, EMPTY, "check", "--json").stdout)
    assert found == {"status": "ok", "reason": None, "phase": "check", "source_bytes": len(EMPTY),
    "config": dict(DEFAULTS),
                     "method_profile": ["baseline"], "extends": []}  # fmt: skip
    refused = run(tmp_path, "x", "check", "--json")
    assert refused.exit_code == 1
    assert json.loads(refused.stdout)["reason"] == "check_failed"
    missing = CliRunner().invoke(cli, ["golf", "check", str(tmp_path / "none.py")])
    assert missing.exit_code == 3  # 2 would say that a person must look at it
    assert "none.py" in missing.stderr


def test_the_command_imports_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "solution.py").write_text(EMPTY)
    code = (
        "import sys\nfrom weightgym.cli.main import main\n"
        "try: main(['golf', 'gate', 'solution.py', '--json'])\nexcept SystemExit as end: assert not end.code\n"
        "loaded = {'torch', 'numpy', 'pydantic', 'gymnasium'} & set(sys.modules)\nassert not loaded, loaded\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verdict"] == "legal"
